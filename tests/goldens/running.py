"""Runs a case in a process of its own: forked, so that libraries are imported once for all of them."""

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from shutil import copy, rmtree
from tempfile import mkdtemp
from typing import Final

from tests.goldens.recorded import Left

REPOSITORY: Final = Path(__file__).resolve().parents[2]
INPUTS: Final = Path(__file__).parent / "inputs"

ENVIRONMENT: Final = {"COLUMNS": "120", "SOURCE_DATE_EPOCH": "0", "TZ": "UTC", "NO_COLOR": "1"}
FORGOTTEN: Final = ("FAIRLEAD_MASTER", "FAIRLEAD_DEBUG", "FAIRLEAD_TRACES", "LINES", "FORCE_COLOR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One command line, or a function that prints."""

    group: str
    """The file that keeps what it leaves."""
    command: str
    """As typed, unique; a file after ``<`` is standard input."""
    arguments: tuple[str, ...] = ()
    stdin: str = ""
    call: Callable[[], object] | None = None
    """In place of the command line's own main function."""
    is_quick: bool = False


def traces_folder() -> Path | None:
    """Where the public traces are, as ``fairlead reproduce`` looks for them; None if they are not there."""
    named = os.environ.get("FAIRLEAD_TRACES")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "traces"
    return folder.resolve() if (folder / "fb2010.csv.gz").is_file() else None


def run_all(cases: Iterable[Case], *, processes: int, keep: Path | None) -> Iterator[tuple[Case, Left]]:
    """What each case leaves behind, as they end.

    Args:
        cases: what is run.
        processes: so many at a time.
        keep: a folder that gets all that was produced, as it was.
    """
    waiting = list(reversed(list(cases)))
    running: dict[int, tuple[Case, Path]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                case = waiting.pop()
                folder = Path(mkdtemp(prefix="fairlead-golden-"))
                running[_start(case, folder)] = (case, folder)
            pid, status = os.wait()
            case, folder = running.pop(pid)
            left = Left(os.waitstatus_to_exitcode(status), _outputs(folder))
            rmtree(folder)
            if keep is not None:
                _keep(keep, case, left)
            yield case, left
    finally:
        for pid, (_, folder) in running.items():
            os.kill(pid, 15)
            os.waitpid(pid, 0)
            rmtree(folder)


def _start(case: Case, folder: Path) -> int:
    _furnish(folder / "work")
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        code = _run(case, folder)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _furnish(work: Path) -> None:
    """What every case finds in its working directory."""
    work.mkdir()
    for path in (*INPUTS.iterdir(), *(REPOSITORY / "laboratory/fairlead_lab/workloads/data").glob("*.csv")):
        copy(path, work)
    (work / "examples").symlink_to(REPOSITORY / "examples")
    (work / "samples").symlink_to(REPOSITORY / "tests/laboratory/workloads/samples")
    traces = traces_folder()
    if traces is not None:
        (work / "traces").symlink_to(traces)


def _run(case: Case, folder: Path) -> int:
    """In the child: the exit code."""
    os.chdir(folder / "work")
    for number, name in ((1, "stdout"), (2, "stderr")):
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT)
        os.dup2(descriptor, number)
    os.dup2(os.open(case.stdin or os.devnull, os.O_RDONLY), 0)
    sys.stdin = TextIOWrapper(BufferedReader(FileIO(0, closefd=False)), encoding="utf-8")
    sys.stdout, sys.stderr = (
        TextIOWrapper(BufferedWriter(FileIO(number, "w", closefd=False)), encoding="utf-8")
        for number in (1, 2)
    )
    for name in FORGOTTEN:
        os.environ.pop(name, None)
    os.environ.update(ENVIRONMENT)
    if Path("traces").exists():
        os.environ["FAIRLEAD_TRACES"] = "traces"
    sys.argv = ["fairlead", *case.arguments]
    if case.call is not None:
        case.call()
        return 0
    from fairlead_cli.main import main

    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def _outputs(folder: Path) -> dict[str, bytes]:
    found = {name: (folder / name).read_bytes() for name in ("stdout", "stderr")}
    found = {name: content for name, content in found.items() if content}
    given = {path.name for path in INPUTS.iterdir()} | {"sample.csv", "sample_nodes.csv"}
    for path in sorted((folder / "work").rglob("*")):
        name = str(path.relative_to(folder / "work"))
        if (
            name not in given
            and path.is_file()
            and name.partition("/")[0] not in {"examples", "samples", "traces"}
        ):
            found[name] = path.read_bytes()
    return found


def _keep(keep: Path, case: Case, left: Left) -> None:
    place = keep / case.group / case.command.replace("/", "_")[:200]
    for name, content in left.outputs.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
