"""Generates the Python stubs of the wire schema; run by the schema compiler's own environment.

Both `make protos` and the drift test call it, so that what is committed and what is compared can only
be made in one way. It is a script and not a test: it needs `grpc_tools`, which the project's environment lacks.
"""

import sys
from pathlib import Path

INCLUDE_ROOT = Path(__file__).resolve().parents[2] / "proto"


def main(repository_root: Path) -> int:
    """Write the stubs below `repository_root`/proto, and return the compiler's exit code (0 is success)."""
    from grpc_tools import protoc  # noqa: PLC0415  only this script's environment has it

    output = repository_root / "proto"
    output.mkdir(parents=True, exist_ok=True)
    schema = sorted(path.relative_to(INCLUDE_ROOT).as_posix() for path in INCLUDE_ROOT.glob("fairlead_proto/v1/*.proto"))
    options = [f"--proto_path={INCLUDE_ROOT}", f"--python_out={output}", f"--pyi_out={output}", f"--grpc_python_out={output}"]
    return int(protoc.main(["protoc", *options, *schema]))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
