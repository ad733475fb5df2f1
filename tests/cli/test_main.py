import errno
import os
import subprocess
import sys

import click
import pytest

from fairlead_cli import main
from tests.cli.conftest import Invoke

HEAVY = {"grpc", "rich", "structlog", "google", "psutil", "asyncio", "fairlead_sdk", "fairlead_master"}


def modules_imported_by(*arguments: str) -> set[str]:
    """Run the command in a fresh interpreter and return the top-level modules it had imported at its end."""
    code = "import sys\nfrom fairlead_cli import main\nmain.run(sys.argv[1:])\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    return {name.partition(".")[0] for name in done.stderr.split()}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"], ["tasks", "--help"], ["up", "--help"]])  # fmt: skip
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    """Its cost at start is in every use of the command; a timed test would only measure the host."""
    assert not modules_imported_by(*arguments) & HEAVY


@pytest.mark.parametrize("module", ["fairlead_master.cli", "fairlead_agent.cli"])
def test_no_daemon_imports_rich_which_its_log_does_not_use(module: str) -> None:
    """It is a fifth of what a daemon takes to start; but whoever wants it afterwards has it."""
    code = f"import sys, {module}; print('rich' in sys.modules); import rich.console"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "False\n"


def test_master_imports_policies_with_prices_only_when_one_is_named() -> None:
    code = (
        "import sys, fairlead_master.cli; from fairlead_master.allocation.policies.names import parse;"
        "name = 'fairlead_master.allocation.multipliers'; before = name in sys.modules; parse('pf', ('cpus',));"
        "print(before, name in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "False True\n"


def test_a_command_that_ends_does_not_look_for_garbage() -> None:
    """Python looks over everything several times at its end, unless it is frozen: a quarter of a short command's time."""
    code = (
        "import atexit, gc, sys; from fairlead_cli import main; sys.argv[1:] = ['--version'];"
        "atexit.register(lambda: print(gc.get_freeze_count() > 10_000)); main.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.endswith("\nTrue\n")


def test_help_names_every_command(invoke: Invoke) -> None:
    outcome = invoke("--help")

    assert outcome.code == 0
    for name, verb in main.VERBS.items():
        assert f"{name} " in outcome.out
        assert verb.help in outcome.out


@pytest.mark.parametrize("name", list(main.VERBS))
def test_table_of_commands_is_true(name: str) -> None:
    command = main.fairlead.get_command(click.Context(main.fairlead), name)

    assert command is not None
    assert command.name == name
    assert (command.help or "").splitlines()[0] == main.VERBS[name].help


def test_completion_of_verbs_imports_none_of_them() -> None:
    found = main.fairlead.shell_complete(click.Context(main.fairlead), "ag")

    assert [(item.value, item.help) for item in found] == [
        ("agents", main.VERBS["agents"].help),
        ("agent", main.VERBS["agent"].help),
    ]


@pytest.mark.parametrize(
    ("words", "expected"), [("fairlead expl", "plain,explain"), ("fairlead tasks --wat", "plain,--watch")]
)
def test_shell_completes_verbs_and_options(
    invoke: Invoke,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    expected: str,
) -> None:
    monkeypatch.setenv("_FAIRLEAD_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))

    with pytest.raises(SystemExit, match="0"):
        main.run([])

    assert capsys.readouterr().out.strip() == expected


def test_version_is_the_distribution_s(invoke: Invoke) -> None:
    assert invoke("--version").out.startswith("fairlead 0.")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["fly"], "'fly' is no command; expected one of up, run"),
        (["tasks", "--state", "SLEEPING"], "SLEEPING"),
        (["tasks", "--master", "here"], "expected HOST:PORT such as 127.0.0.1:5050, got 'here'"),
        (["tasks", "--master", ":5050"], "expected HOST:PORT"),
        (["tasks", "--master", "h:99999"], "expected HOST:PORT"),
        (["kill"], "expected a task or --framework"),
        (["kill", "--framework", "f", "--grace", "1s"], "--grace goes with tasks"),
        (["kill", "t", "--grace", "1"], "expected a duration such as 500ms, 10s, 5m or 1h, got '1'"),
        (["policy", "set"], "expected a policy, --placement, --when-head-does-not-fit or --demand"),
        (["weight", "set", "r", "nan"], "expected a number from 1e-06 to 1e+06, got 'nan'"),
        (["weight", "set", "r", "-3"], "expected a number from 1e-06 to 1e+06, got '-3'"),
        (
            ["weight", "set", "r", "--master", "h:1", "-.5"],
            "expected a number from 1e-06 to 1e+06, got '-.5'",
        ),
        (["weight", "set", "r", "3", "--resorce", "cpus=2"], "--resorce"),
        (["weight", "set", "r", "1", "--resource", "cpus"], "expected NAME=VALUE, got 'cpus'"),
        (["shares", "--log", "--watch"], "--log and --watch do not go together"),
        (["up", "--agents", "0"], "0 is not in the range"),
        (["up", "--resources", "cpus=x"], "cpus: expected a number such as 1.5, got 'x'"),
        (["up", "--resources", "cpus"], "expected name=amount"),
    ],
)
def test_bad_usage_is_one_line_and_code_2(invoke: Invoke, arguments: list[str], expected: str) -> None:
    outcome = invoke(*arguments)

    assert outcome.code == 2
    assert expected in outcome.err
    assert outcome.err.count("\n") == 1
    assert not outcome.out


@pytest.mark.parametrize("arguments", [[], ["policy"], ["bench"]])
def test_group_without_a_command_is_answered_with_its_help(invoke: Invoke, arguments: list[str]) -> None:
    outcome = invoke(*arguments)

    assert outcome.code == 2
    assert outcome.err.startswith("Usage: fairlead")
    assert "(see" not in outcome.err


def test_unreachable_master_is_one_line_and_code_3(invoke: Invoke, unused_tcp_port: int) -> None:
    address = f"127.0.0.1:{unused_tcp_port}"

    outcome = invoke("tasks", "--master", address)

    assert outcome.code == 3
    assert outcome.err == (
        f"fairlead: cannot reach the master at {address} (Connection refused): is it running? "
        "start one with `fairlead up`, or set FAIRLEAD_MASTER\n"
    )


def test_debug_shows_the_traceback(
    invoke: Invoke, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_DEBUG", "1")

    with pytest.raises(click.ClickException, match="cannot reach the master"):
        invoke("tasks", "--master", f"127.0.0.1:{unused_tcp_port}")


def run_into(stdout: str, *arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code and stderr of a command whose standard output is that file."""
    with open(stdout, "wb") as file:  # noqa: PTH123 - no path of a test's own
        done = subprocess.run(
            [sys.executable, "-m", "fairlead_cli.main", *arguments],
            env={**os.environ, **environment},
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["reproduce", "list"],
        ["reproduce", "list", "--json"],
        ["reproduce", "drf-table1"],
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_one_line(arguments: list[str], unbuffered: str) -> None:
    """By click, by print, and what is still in a buffer at the end."""
    found = run_into("/dev/full", *arguments, PYTHONUNBUFFERED=unbuffered)

    assert found == (1, "fairlead: standard output: No space left on device\n")


def test_exit_code_is_told_though_errors_cannot_be_written() -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - no path of a test's own
        done = subprocess.run(
            [sys.executable, "-m", "fairlead_cli.main", "fly"], stderr=full, timeout=60, check=False
        )

    assert done.returncode == 2


@pytest.mark.parametrize("what", ["list", "drf-table1"])
def test_reader_that_leaves_hears_no_complaint(what: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "fairlead_cli.main", "reproduce", what],
            stdout=pipe,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )

    assert (done.returncode, done.stderr) == (1, b"")


def test_other_trouble_with_files_is_not_blamed_on_the_output(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(main.fairlead, "main", broken)

    with pytest.raises(OSError, match="No space left"):
        invoke("--help")
