from pathlib import Path

import pytest

from fairlead_lab.workloads.csv_rows import TraceError
from fairlead_lab.workloads.nodes import parse_nodes, read_nodes
from fairlead_sim.node import Node
from fairlead_sim.workload import WorkloadError

GIB = 2**30


def a_file(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "nodes.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_words_are_so_many_equal_nodes() -> None:
    assert parse_nodes("2:cpus=4,mem=8GiB,gpus=0.5") == [
        Node(name="n0", total=(4000, 8 * GIB, 0, 500)),
        Node(name="n1", total=(4000, 8 * GIB, 0, 500)),
    ]


def test_groups_of_words_have_attributes_and_names_of_their_own() -> None:
    nodes = parse_nodes("1:cpus=4@model=big,rack=a + 2:cpus=1@model=small")

    assert [(node.name, node.total[0], dict(node.attributes)) for node in nodes] == [
        ("n0", 4000, {"model": "big", "rack": "a"}),
        ("n1", 1000, {"model": "small"}),
        ("n2", 1000, {"model": "small"}),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("0:cpus=4", "nodes: expected 1 to 1000000 of them, got 0 in '0:cpus=4'"),
        ("9999999:cpus=4", "nodes: expected 1 to 1000000 of them, got 9999999"),
        ("-1:cpus=4", "nodes: expected COUNT:cpus=N,mem=N such as 20:cpus=16,mem=32GiB, got '-1:cpus=4'"),
        ("cpus=4,mem=8GiB", "nodes: expected COUNT:cpus=N,mem=N such as"),
        ("2:cpus=4+", "nodes: expected COUNT:cpus=N,mem=N such as 20:cpus=16,mem=32GiB, got ''"),
        ("2:cpu=4", "nodes: resource 'cpu': expected one of cpus, mem, disk, gpus, in '2:cpu=4'"),
        ("2:cpus=0", "nodes: expected an amount above zero, got none in '2:cpus=0'"),
        ("2:cpus=4@model", "nodes: expected attributes as name=value, each once, got 'model'"),
        ("2:cpus=4@a=1,a=2", "nodes: expected attributes as name=value, each once, got 'a=2'"),
    ],
)
def test_words_that_make_no_sense_are_refused(words: str, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        parse_nodes(words)

    assert str(caught.value).startswith(message)


def test_further_columns_of_a_file_are_attributes(tmp_path: Path) -> None:
    path = a_file(tmp_path, "node,cpus,mem_mb,gpus,model,rack", "a,16,65536,2,big,r1", "b,8,1024,,,r2")

    assert parse_nodes(path) == [
        Node(name="a", total=(16_000, 64 * GIB, 0, 2000), attributes={"model": "big", "rack": "r1"}),
        Node(name="b", total=(8000, GIB, 0, 0), attributes={"rack": "r2"}),
    ]


def test_node_list_of_the_gpu_trace_is_read_as_published(tmp_path: Path) -> None:
    path = a_file(tmp_path, "sn,cpu_milli,memory_mib,gpu,model", "n-1,32000,1024,0,", "n-2,96000,2048,8,T4")

    assert read_nodes(path) == [
        Node(name="n-1", total=(32_000, GIB, 0, 0)),
        Node(name="n-2", total=(96_000, 2 * GIB, 0, 8000), attributes={"model": "T4"}),
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["node,cpus,mem_mb,gpus"], "FILE: expected at least one row after the header, got none"),
        (["node,cpus,mem_mb,gpus", "a,1,1,0", "a,1,1,0"], "FILE:3: column node: expected each name once, 'a' is"),
        (["node,cpus,mem_mb,gpus", "a b,1,1,0"], "FILE:2: column node: expected a name of letters"),
        (["node,cpus,mem_mb,gpus", "a,0,0,0"], "FILE:2: column cpus: expected an amount above zero"),
        (["node,cpus,mem_mb,gpus", "a,-1,0,0"], "FILE:2: column cpus: expected a number of cores"),
        (["node,cores,mem_mb,gpus", "a,1,0,0"], "FILE:1: expected a header with cpus, got"),
        (["sn,cpu_milli,memory_mib,gpu,model", "a,0,0,0,"], "FILE:2: column cpu_milli: expected an amount"),
        (["sn,cpu_milli,memory_mib,gpu,model", "a,0.5,0,0,"], "FILE:2: column cpu_milli: expected a whole"),
    ],
)  # fmt: skip
def test_bad_file_is_named_by_line_and_column(tmp_path: Path, lines: list[str], message: str) -> None:
    path = a_file(tmp_path, *lines)

    with pytest.raises(TraceError) as caught:
        parse_nodes(str(path))

    assert str(caught.value).replace(str(path), "FILE").startswith(message)


def test_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="expected a file that can be read, got No such file"):
        parse_nodes(str(tmp_path / "none.csv"))
