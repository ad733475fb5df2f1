"""What a build machine runs is what `make check` runs, and one failure hides no other."""

import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

FAKE_TOOL = """#!/bin/sh
case $0 in */make) echo "$@" >> calls;; *) exit;; esac
case "$*" in *$FAILS*) exit 2;; esac
"""


@pytest.mark.parametrize(
    ("fails", "told"),
    [
        ("nothing at all", ""),
        (" checks", "ci: failed: make checks (see above)\n"),
        (" test", "ci: failed: make test (see above)\n"),
        ("s", None),
    ],
)
def test_checks_and_tests_run_whichever_of_them_fails(tmp_path: Path, fails: str, told: str | None) -> None:
    outcome = _ci(tmp_path, fails)

    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[0] == "--no-print-directory setup"
    if told is None:
        assert calls[1:] == [], "without the tools nothing can be checked"
        assert outcome.returncode == 2
        return
    assert calls[1:] == ["--no-print-directory --keep-going checks", "--no-print-directory test ONE=1 TWO=2"]
    assert outcome.stderr == told
    assert outcome.returncode == bool(told)


def test_a_clone_without_the_commit_of_the_baseline_fetches_it(tmp_path: Path) -> None:
    (tmp_path / "tests/proto").mkdir(parents=True)
    (tmp_path / "tests/proto/baseline.txt").write_text("commit 39edbb5\nAccept.1: offer_id string\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text('#!/bin/sh\necho "$@" >> asked; exit 1\n')
    (tmp_path / "bin/git").chmod(0o755)

    outcome = _ci(tmp_path, "nothing at all")

    asked = [
        line.partition(" ")[2].partition(" ")[2] for line in (tmp_path / "asked").read_text().splitlines()
    ]
    assert asked == ["cat-file -e 39edbb5^{commit}", "fetch --quiet --depth=1 origin 39edbb5"]
    assert "commit 39edbb5 of the protocol's baseline is not in this clone" in outcome.stderr
    assert outcome.returncode == 0


def test_make_check_is_what_ci_runs() -> None:
    command = ["make", "--dry-run", "--assume-old=setup", "check"]
    planned = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout

    for tool in ("ruff format --check", "ruff check", "mypy", "lint-imports", "tests/tidy", "pytest -n"):
        assert tool in planned


def _ci(folder: Path, fails: str) -> "subprocess.CompletedProcess[str]":
    """Run the script in a folder of its own, with a `make` that only notes what it was called with."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    for name in ("bash", "sh", "env", "dirname"):
        found = shutil.which(name)
        assert found is not None, f"{name} is not there"
        (tools / name).symlink_to(found)
    for name in ("make", "ps", "chromium", "python3"):
        (tools / name).write_text(FAKE_TOOL)
        (tools / name).chmod(0o755)
    (folder / ".ci").mkdir()
    script = shutil.copy(REPOSITORY / ".ci" / "run", folder / ".ci")
    environment = {"PATH": str(tools), "FAILS": fails}
    return subprocess.run(
        [script, "ONE=1", "TWO=2"], check=False, env=environment, capture_output=True, text=True
    )
