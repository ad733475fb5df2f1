"""The house rules no linter knows, each a function from one file's text to the places that break it.

A finding is one line, "path:line: what was found and what is expected", so that an editor can jump to it. The
rules take text and not files: `test_rules.py` shows that each finds what it is for, `test_repository.py`
applies them to the repository.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

FUNCTION_LINES_MAX: Final = 60
"""One screen: past it nobody sees the beginning and the end together."""

FILE_LINES_MAX: Final = 500
"""Past it a file usually tells two stories."""

BANNED_MODULE_NAMES: Final = frozenset(
    {"utils", "util", "helpers", "helper", "common", "base", "manager", "misc"}
)
"""Names that say nothing of what is inside, so that anything may be put there."""

TEST_MODULE_NAMES: Final = frozenset({"helpers", "helper"})
"""Banned names that tests may use: there a helper is only ever a helper of tests."""

_TEST_NAME: Final = re.compile(r"`(?=tests/|::)(tests/[\w/]+\.py)?(?:::(test_\w+))?`")
_PYTHON_NAME: Final = re.compile(
    r"\bfairlead_\w+(?:\.[A-Za-z_]\w*)+|(?<=`)[a-z_]+(?:\.[a-z_]+)*\.(?:[A-Z]\w+|[a-z_]+\.[a-z_]+)(?=[`(])"
)
"""A dotted name below one of our packages; or in backticks one of three parts, or one that ends in a class."""
_FUNCTION: Final = (ast.FunctionDef, ast.AsyncFunctionDef)

# Put together from parts, since the rule applies to this file as well.
REGISTRY_HOSTS: Final = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("crates", "io"),
        ("docker", "io"),
        ("ghcr", "io"),
        ("quay", "io"),
        ("golang", "org"),
    )
)
_MACHINE_PATH: Final = re.compile(r"(?<![\w.$}/-])/(?:root|work|home/\w+|Users/\w+)/\w")
_TODO: Final = re.compile("TODO|FIXME|XXX")
_UNNAMED_TODO: Final = re.compile(r"^[#/\s]*(?:TODO\b(?!\([\w.@-]+\): \S)|FIXME\b|XXX\b)")
_MAKE_COMMAND: Final = re.compile(r"(?:^|`|\$ |&& )make ([a-z][a-z-]*)", re.MULTILINE)
_MAKE_TARGET: Final = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


def long_functions(path: str, text: str) -> list[str]:
    """Find the functions longer than `FUNCTION_LINES_MAX` lines, decorators not counted."""
    sizes = [
        (node.lineno, node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, _FUNCTION)
    ]
    return [
        f"{path}:{line}: {name} has {size} lines, expected at most {FUNCTION_LINES_MAX}: split it"
        for line, name, size in sorted(sizes)
        if size > FUNCTION_LINES_MAX
    ]


def long_file(path: str, text: str) -> list[str]:
    """Find out whether the file is longer than `FILE_LINES_MAX` lines."""
    size = len(text.splitlines())
    if size <= FILE_LINES_MAX:
        return []
    return [
        f"{path}:{FILE_LINES_MAX + 1}: {size} lines, expected at most {FILE_LINES_MAX}: is it two stories?"
    ]


def missing_docstrings(path: str, text: str) -> list[str]:
    """Find the module, public classes, functions and methods that have no docstring.

    Exempt are methods marked `@override`, whose promise is written where they are first declared; the second
    and later parts of a property or overload; and the handlers of a gRPC servicer, which the schema describes.
    """
    tree = ast.parse(text)
    found = [] if ast.get_docstring(tree) else [f"{path}:1: the module has no docstring"]
    return found + [
        f"{path}:{node.lineno}: {name} has no docstring"
        for name, node in _public_definitions(tree)
        if not ast.get_docstring(node)
    ]


def _public_definitions(
    parent: ast.Module | ast.ClassDef, prefix: str = ""
) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    is_servicer = isinstance(parent, ast.ClassDef) and any(
        "Servicer" in ast.unparse(base) for base in parent.bases
    )
    for node in parent.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield prefix + node.name, node
            yield from _public_definitions(node, f"{prefix}{node.name}.")
        elif isinstance(node, _FUNCTION) and not (
            node.name.startswith("_") or is_servicer or _is_documented_elsewhere(node)
        ):
            yield prefix + node.name, node


def _is_documented_elsewhere(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    return any(name.split(".")[-1] in {"override", "overload", "setter", "deleter"} for name in decorators)


def banned_module_name(path: str) -> list[str]:
    """Find out whether the file, or a folder it is in, has a name that says nothing."""
    parts = PurePosixPath(path).with_suffix("").parts
    banned = BANNED_MODULE_NAMES - TEST_MODULE_NAMES if parts[0] == "tests" else BANNED_MODULE_NAMES
    return [
        f"{path}:1: the name {part!r} says nothing: name what is inside" for part in parts if part in banned
    ]


def unnamed_todos(path: str, text: str) -> list[str]:
    """Find the comments that say TODO without a name and a condition, in the form `TODO(name): what, when`."""
    if not _TODO.search(text):
        return []
    comments = _python_comments(text) if path.endswith(".py") else _line_comments(text)
    return [
        f"{path}:{line}: expected `TODO(name): what, and when it matters`, got {comment.strip()!r}"
        for line, comment in comments
        if _UNNAMED_TODO.match(comment)
    ]


def _python_comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _line_comments(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.search(r"(?:^|\s)(?:#|//)(.*)", line)
        if comment:
            yield number, comment[1]


def addresses(path: str, text: str) -> list[str]:
    """Find host names of package registries and paths of somebody's machine.

    Which registry or mirror serves a package is the business of whoever installs it; a path of one machine
    is wrong on every other.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        hosts = [host for host in REGISTRY_HOSTS if host in line]
        found += [f"{path}:{number}: names the package registry {host}" for host in hosts]
        found += [
            f"{path}:{number}: names a path of one machine: {line.strip()}"
            for _ in _MACHINE_PATH.findall(line)
        ]
    return found


def unknown_make_commands(path: str, text: str, *, makefile: str) -> list[str]:
    """Find the `make` commands a document tells its reader to run that `makefile`, a Makefile's text, lacks."""
    targets = set(_MAKE_TARGET.findall(makefile))
    return [
        f"{path}:{text.count(chr(10), 0, match.start()) + 1}: `make {match[1]}` is no target of the Makefile"
        for match in _MAKE_COMMAND.finditer(text)
        if match[1] not in targets
    ]


def unknown_tests(path: str, text: str, *, tests: Mapping[str, str]) -> list[str]:
    """Find the tests a document names that `tests`, their files' texts by path, lack.

    A name is `tests/a/test_b.py::test_c`; those behind it in the same list may leave the file out: `::test_d`.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        file = ""
        for named, test in _TEST_NAME.findall(line):
            file = named or file
            if file not in tests or (test and f"def {test}(" not in tests[file]):
                found.append(f"{path}:{number}: `{file}::{test}` is no test")
    return found


def unknown_python_names(path: str, text: str, *, is_there: Callable[[str], bool]) -> list[str]:
    """Find the dotted names of modules, classes and functions in a document for which `is_there` says no."""
    return [
        f"{path}:{text.count(chr(10), 0, match.start()) + 1}: `{match[0]}` cannot be imported"
        for match in _PYTHON_NAME.finditer(text)
        if not is_there(match[0])
    ]
