"""The committed stubs are what the oldest supported compiler makes of the committed schema."""

import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
STUBS = REPOSITORY / "proto"
COMPILER_PYTHON = REPOSITORY / ".venv-protos" / "bin" / "python"
COMPILER_IS_READY = (REPOSITORY / ".venv-protos" / ".ready").exists()


def generated_files(root: Path) -> dict[str, bytes]:
    """Return the content of each generated file below `root`, by its path relative to `root`."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.glob("fairlead_proto/v1/*_pb2*"))
    }


@pytest.mark.skipif(not COMPILER_IS_READY, reason="the schema compiler is not installed: make protos-venv")
def test_committed_stubs_are_what_the_schema_generates(tmp_path: Path) -> None:
    script = Path(__file__).with_name("generate_stubs.py")
    subprocess.run([COMPILER_PYTHON, script, tmp_path], check=True, timeout=60)

    committed, generated = generated_files(STUBS), generated_files(tmp_path)

    assert generated, "the compiler wrote nothing"
    stale = [path for path in sorted(committed | generated) if committed.get(path) != generated.get(path)]
    assert not stale, f"run `make protos` and commit: {', '.join(stale)}"
