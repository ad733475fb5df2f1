"""The whole repository keeps the house rules; a failure lists every place that does not."""

import subprocess
import sys
from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

import pytest

from tests.tidy import rules

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = (
    "proto/",
    "telemetry/",
    "master/",
    "agent/",
    "framework_sdk/",
    "local/",
    "simulator/",
    "laboratory/",
    "benchmarks/fairlead_bench/",
    "cli/",
)
GENERATED = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py")


@cache
def written_files() -> tuple[tuple[str, str], ...]:
    """Return (path, text) of each file written by hand that is, or by `git add .` would be, tracked."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if not (REPOSITORY / ".git").exists():
        pytest.skip("not a git checkout: which files are tracked is unknown")
    listing = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    paths = sorted({path for path in listing.split("\0") if path and not path.endswith(GENERATED)})
    return tuple(
        (path, content.decode())
        for path in paths
        if (REPOSITORY / path).is_file() and b"\0" not in (content := (REPOSITORY / path).read_bytes())[:8192]
    )


def python_files(*folders: str) -> list[tuple[str, str]]:
    """Return (path, text) of the hand-written Python files below `folders`, or of all if none is given."""
    return [
        (path, text)
        for path, text in written_files()
        if path.endswith(".py") and path.startswith(folders or "")
    ]


def findings(files: list[tuple[str, str]], rule: Callable[[str, str], list[str]]) -> str:
    """Apply `rule` to each file and return one line for each place that breaks it."""
    return "\n".join(finding for path, text in files for finding in rule(path, text))


def test_functions_fit_a_screen() -> None:
    found = findings(python_files(), rules.long_functions)
    assert not found, f"functions that are too long:\n{found}"


def test_files_tell_one_story() -> None:
    found = findings(python_files(*PACKAGES), rules.long_file)
    assert not found, f"files that are too long:\n{found}"


def test_public_names_have_docstrings() -> None:
    found = findings(python_files(*PACKAGES), rules.missing_docstrings)
    assert not found, f"public names without a docstring:\n{found}"


def test_module_names_say_what_is_inside() -> None:
    found = findings(python_files(), lambda path, _: rules.banned_module_name(path))
    assert not found, f"module names that say nothing:\n{found}"


def test_every_todo_has_a_name() -> None:
    code = [(path, text) for path, text in written_files() if not path.endswith((".md", ".lock", ".txt"))]
    found = findings(code, rules.unnamed_todos)
    assert not found, f"TODOs without a name:\n{found}"


def test_no_registry_host_or_machine_path_is_tracked() -> None:
    found = findings(list(written_files()), rules.addresses)
    assert not found, f"addresses that belong to one machine or installer:\n{found}"


def test_documents_name_only_commands_that_exist() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    documents = [(path, text) for path, text in written_files() if path.endswith(".md")]
    assert documents, "no document found: is the listing of files broken?"

    found = findings(documents, lambda path, text: rules.unknown_make_commands(path, text, makefile=makefile))

    assert not found, f"commands that do not exist:\n{found}"


def test_documents_name_only_tests_that_exist() -> None:
    tests = {path: text for path, text in written_files() if path.startswith("tests/")}
    documents = [(path, text) for path, text in written_files() if path.endswith(".md")]

    found = findings(documents, lambda path, text: rules.unknown_tests(path, text, tests=tests))

    assert not found, f"tests that do not exist:\n{found}"


def test_documents_name_only_python_that_exists() -> None:
    """But for the changelog and the records of decisions, which tell of names that were."""
    documents = [
        (path, text)
        for path, text in written_files()
        if path.endswith(".md") and path != "CHANGELOG.md" and not path.startswith("docs/adr/")
    ]

    found = findings(documents, partial(rules.unknown_python_names, is_there=is_importable))

    assert not found, f"names that cannot be imported:\n{found}"


def is_importable(name: str) -> bool:
    """Whether `name` is a module, or an attribute of a module or class."""
    module, _, last = name.rpartition(".")
    try:
        return hasattr(resolve_name(module), last) or find_spec(name) is not None
    except (ImportError, AttributeError, ValueError):
        return False


def test_import_contracts_hold() -> None:
    """The roles stay apart and the cores pure, for indirect imports too."""
    lint_imports = str(Path(sys.executable).with_name("lint-imports"))
    command = [lint_imports, "--no-cache", "--config", "pyproject.toml"]
    outcome = subprocess.run(
        command, check=False, cwd=REPOSITORY, capture_output=True, text=True, timeout=100
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
