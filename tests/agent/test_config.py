"""Options are checked before anything is touched; amounts that are given replace those found."""

from pathlib import Path
from typing import Any

import pytest

from fairlead_agent import probe
from fairlead_agent.config import AgentOptions, InvalidOption, kinds_of, settings_of
from fairlead_agent.executor.recovery import boot_id
from fairlead_proto.resources import CPUS, DISK, MEM, ResourceKinds


def options(**fields: Any) -> AgentOptions:
    return AgentOptions(**{"master": "127.0.0.1:5050", "work_dir": Path("unused"), **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"master": "localhost"}, "master: expected HOST:PORT, got 'localhost'"),
        ({"master": "host:99999"}, "master: expected HOST:PORT, got 'host:99999'"),
        (
            {"isolation": "docker"},
            "isolation: expected one of auto, cgroup-v2, cgroup-v1, none, got 'docker'",
        ),
        ({"log_level": "loud"}, "log level: expected one of debug, info, warning, error, got 'loud'"),
        ({"resources": "cpus=nan"}, "cpus: expected a finite number that is not negative, got 'nan'"),
        ({"resources": "cpus=-1"}, "cpus: expected a finite number that is not negative, got '-1'"),
        ({"resources": "cpus"}, "resources: expected name=amount, got 'cpus'"),
        ({"resources": "mem=much"}, "mem: expected bytes such as 512MiB or 8GiB, got 'much'"),
        ({"resources": "CPUs=1"}, "custom resource name: expected a new name like 'licenses', got 'CPUs'"),
        ({"attributes": {"9": "x"}}, "attribute: expected names of letters, digits, _ . -, got '9'"),
        ({"sandbox_retention_ms": -1}, "sandbox_retention_ms: expected 0 or more, got -1"),
    ],
)
def test_bad_option_is_refused_by_name(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption) as raised:
        options(**fields)

    assert str(raised.value) == message


def test_given_amounts_replace_those_found_and_declare_new_kinds() -> None:
    given = options(resources="mem=8GiB,gpus=1,tapes=2,licenses=1.5", hostname="rack-7")
    kinds = kinds_of(given)
    host = probe.Host(hostname="found", boot_id="b", total=(4000, 1, 2, 0, 0, 0))

    settings = settings_of(given, host, kinds)

    assert kinds == ResourceKinds(("licenses", "tapes"))
    assert settings.total == (4000, 8 * 1024**3, 2, 1000, 1500, 2000)
    assert settings.hostname == "rack-7"


def test_zero_that_is_given_counts() -> None:
    given = options(resources="disk=0")
    host = probe.Host(hostname="found", boot_id="b", total=(4000, 1, 2, 0))

    assert settings_of(given, host, kinds_of(given)).total == (4000, 1, 0, 0)


def test_probe_finds_something_of_everything(tmp_path: Path) -> None:
    host = probe.probe_host(tmp_path, ResourceKinds())

    assert host.hostname
    assert host.boot_id == boot_id()
    assert host.total[CPUS] >= 1
    assert host.total[MEM] > 0
    assert host.total[DISK] >= 0


def test_limits_of_a_container_count(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    (tmp_path / "memory.max").write_text(f"{256 * 1024**2}\n")

    assert probe._cpus_milli(tmp_path) == 500
    assert probe._memory_bytes(tmp_path) == 224 * 1024**2


def test_limits_of_a_container_under_cgroup_v1_count(tmp_path: Path) -> None:
    for name, text in {
        "cpu/cpu.cfs_quota_us": "150000",
        "cpu/cpu.cfs_period_us": "200000",
        "memory/memory.limit_in_bytes": str(256 * 1024**2),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")

    assert probe._cpus_milli(tmp_path) == 750
    assert probe._memory_bytes(tmp_path) == 224 * 1024**2


def test_group_without_limits_under_cgroup_v1_is_the_host(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")

    assert probe._cpus_milli(tmp_path) % 1000 == 0
    assert probe._memory_bytes(tmp_path) == probe._memory_bytes(tmp_path / "nothing")


def test_group_without_limits_is_the_host(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("max 100000\n")
    (tmp_path / "memory.max").write_text("max\n")

    assert probe._cpus_milli(tmp_path) % 1000 == 0
    assert probe._memory_bytes(tmp_path) == probe._memory_bytes(tmp_path / "nothing")
