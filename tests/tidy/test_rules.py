"""Each house rule finds what it is for, and leaves alone what it must."""

from pathlib import PurePosixPath

import pytest

from tests.tidy import rules


def test_function_past_the_limit_is_found_and_one_at_the_limit_is_not() -> None:
    at_limit = "def short():\n" + "    pass\n" * (rules.FUNCTION_LINES_MAX - 1)
    past_limit = "async def long():\n" + "    pass\n" * rules.FUNCTION_LINES_MAX

    found = rules.long_functions("a.py", at_limit + past_limit)

    assert found == ["a.py:61: long has 61 lines, expected at most 60: split it"]


def test_file_past_the_limit_is_found_and_one_at_the_limit_is_not() -> None:
    assert rules.long_file("a.py", "x = 1\n" * 500) == []
    assert rules.long_file("a.py", "x = 1\n" * 501) == [
        "a.py:501: 501 lines, expected at most 500: is it two stories?"
    ]


def test_public_definitions_without_docstring_are_found() -> None:
    text = """
class Public:
    def method(self): ...
    def _private(self): ...
class _Private:
    def method(self): ...
async def function(): ...
"""

    found = rules.missing_docstrings("a.py", text)

    assert found == [
        "a.py:1: the module has no docstring",
        "a.py:2: Public has no docstring",
        "a.py:3: Public.method has no docstring",
        "a.py:7: function has no docstring",
    ]


def test_definitions_documented_elsewhere_need_no_docstring() -> None:
    text = '''"""A module."""
class Files(files_pb2_grpc.FilesServiceServicer):
    """Serves files."""
    async def ReadFile(self, request, context): ...
class Child(Parent):
    """A child."""
    @typing.override
    def method(self): ...
    @name.setter
    def name(self, value): ...
'''

    assert rules.missing_docstrings("a.py", text) == []


@pytest.mark.parametrize("path", ["master/fairlead_master/utils.py", "agent/common/x.py", "tests/manager.py"])
def test_module_name_that_says_nothing_is_found(path: str) -> None:
    assert rules.banned_module_name(path)


@pytest.mark.parametrize("path", ["tests/core/helpers.py", "master/fairlead_master/core/offers.py"])
def test_other_module_names_are_allowed(path: str) -> None:
    assert not rules.banned_module_name(path)


def test_todo_needs_a_name_in_comments_only() -> None:
    python = 'x = "TODO"  # TODO(ann): halve it, once it is large\ny = 2  # TODO later\nz = 3  # FIXME\nv = 4  # see the TODO\n'
    schema = "// TODO: name the unit\nstring todo = 1;\n"

    assert [finding.split(" ")[0] for finding in rules.unnamed_todos("a.py", python)] == [
        "a.py:2:",
        "a.py:3:",
    ]
    assert [finding.split(" ")[0] for finding in rules.unnamed_todos("a.proto", schema)] == ["a.proto:1:"]


def test_registry_hosts_and_machine_paths_are_found() -> None:
    registry = rules.REGISTRY_HOSTS[0]
    machine = PurePosixPath("/", "home", "ann", "fairlead")
    text = f"--index-url https://{registry}/simple\nfine = /var/lib/fairlead and $HOME/work/x\ncd {machine}\n"

    assert rules.addresses("a.txt", text) == [
        f"a.txt:1: names the package registry {registry}",
        f"a.txt:3: names a path of one machine: cd {machine}",
    ]


def test_make_command_that_does_not_exist_is_found() -> None:
    text = "Run `make test`.\n\n    $ make fly\n\n```\nmake setup && make demo-all\n```\nwe make sure of it\n"

    found = rules.unknown_make_commands("README.md", text, makefile="test: setup\n\techo\nsetup:\n")

    assert found == [
        "README.md:3: `make fly` is no target of the Makefile",
        "README.md:6: `make demo-all` is no target of the Makefile",
    ]


def test_test_that_does_not_exist_is_found() -> None:
    text = "`tests/a.py::test_one`, `::test_two`\n`tests/b.py`, `tests/a.py`\n"

    found = rules.unknown_tests("faults.md", text, tests={"tests/a.py": "def test_one() -> None: ..."})

    assert found == [
        "faults.md:1: `tests/a.py::test_two` is no test",
        "faults.md:2: `tests/b.py::` is no test",
    ]


def test_python_name_that_cannot_be_imported_is_found() -> None:
    text = "`fairlead_a.b` and `fairlead_a.gone(x)`\nfrom fairlead_b.c import x\n`c.d.load`, `e.Watcher`, `a.py`, `f.json`\n"

    found = rules.unknown_python_names("a.md", text, is_there={"fairlead_a.b", "e.Watcher"}.__contains__)

    assert found == [
        "a.md:1: `fairlead_a.gone` cannot be imported",
        "a.md:2: `fairlead_b.c` cannot be imported",
        "a.md:3: `c.d.load` cannot be imported",
    ]
