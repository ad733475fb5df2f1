"""What a question changes, and what it may not ask."""

from dataclasses import replace

import pytest

from fairlead_lab.whatif.question import AS_IT_IS, Question, QuestionError, cases
from fairlead_lab.workloads.nodes import parse_nodes
from tests.laboratory.whatif.builders import NINE, a_host, a_snapshot

TWO = a_snapshot(hosts=[a_host("a1"), a_host("a2")])


def test_the_cluster_as_it_is_comes_first_and_unchanged() -> None:
    first, *_ = cases(TWO, Question(policies=["pf"], drained=["a1"]))

    assert (first.name, first.settings, first.hosts) == (AS_IT_IS, TWO.settings, TWO.hosts)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        (Question(), [AS_IT_IS]),
        (Question(policies=["drf"]), [AS_IT_IS]),
        (Question(policies=["pf", "slots:4", "pf"]), [AS_IT_IS, "pf", "slots:4"]),
        (Question(drained=["a1"]), [AS_IT_IS, "a1 drained"]),
        (
            Question(added=parse_nodes("2:cpus=4,mem=8GiB"), drained=["a1"], policies=["drf", "pf"]),
            [AS_IT_IS, "2 hosts more, a1 drained", "pf, 2 hosts more, a1 drained"],
        ),
    ],
)
def test_each_policy_is_a_case_with_all_the_changes(question: Question, names: list[str]) -> None:
    assert [case.name for case in cases(TWO, question)] == names


def test_a_drained_host_is_named_by_id_or_host_name() -> None:
    for name in ("a2", "host-of-a2"):
        _, case = cases(TWO, Question(drained=[name]))
        assert [host.takes_work for host in case.hosts] == [True, False]


def test_added_hosts_get_names_that_nobody_has() -> None:
    snapshot = a_snapshot(hosts=[a_host("added-2"), a_host("n0")])

    _, case = cases(snapshot, Question(added=parse_nodes("2:cpus=4,mem=8GiB@rack=b")))

    assert [host.agent_id for host in case.hosts] == ["added-2", "n0", "added-1", "added-3"]
    assert case.hosts[-1].attributes == {"rack": "b"}


def test_added_hosts_have_none_of_the_clusters_own_resources() -> None:
    snapshot = a_snapshot(hosts=[a_host("a1", (*NINE, 2000))])

    _, case = cases(snapshot, Question(added=parse_nodes("1:cpus=9,mem=18GiB")))

    assert case.hosts[-1].total == (*NINE, 0)


def test_agents_that_cannot_be_drained() -> None:
    with pytest.raises(
        QuestionError, match=r"drain: expected the id or host name .* a1 \(host-of-a1\), .* got 'a3'"
    ):
        cases(TWO, Question(drained=["a3"]))
    with pytest.raises(QuestionError, match="drain: expected an agent that is left to take work, got none"):
        cases(TWO, Question(drained=["a1", "a2"]))
    twins = a_snapshot(hosts=[replace(a_host(name), hostname="h") for name in ("a1", "a2")])
    with pytest.raises(
        QuestionError, match=r"drain: expected one agent's id, such as a1 \(h\), a2 \(h\), got 'h'"
    ):
        cases(twins, Question(drained=["h"]))


def test_a_cluster_without_agents_may_be_asked_what_new_ones_would_do() -> None:
    empty = a_snapshot(hosts=[])

    with pytest.raises(QuestionError, match="cluster: expected at least one agent that takes work, got none"):
        cases(empty, Question())
    with pytest.raises(QuestionError, match="cluster: expected"):
        cases(a_snapshot(hosts=[replace(a_host(), takes_work=False)]), Question(policies=["pf"]))
