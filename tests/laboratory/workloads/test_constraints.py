from dataclasses import replace

import pytest

from fairlead_lab.workloads.constraints import gpu_models, keep_known, node_spec
from fairlead_proto.tasks import Constraint, Operator
from fairlead_sim.node import Node
from fairlead_sim.workload import group_jobs
from tests.laboratory.workloads.workload_builders import a_bundle

ZEWURA = Constraint("model", Operator.EQUALS, ("zewura",))


def test_gpu_models_are_alternatives_in_any_order() -> None:
    assert gpu_models("V100M32|V100M16") == gpu_models("V100M16|V100M32|")
    assert str(gpu_models("V100M32|V100M16")[0]) == "model=V100M16|V100M32"
    assert gpu_models("") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1:ppn=12", ""),
        ("1:ppn=64:x86_64:cl_zewura#excl", "model=zewura"),
        ("10:ppn=1:cl_zewura:cl_zewura:cl_zewura", "model=zewura"),
        ("1:ppn=4:nodecpus80", "model=zewura"),
        ("1:ppn=4:x86_64:brno:nfs4", "model=zegox|zewura"),
        ("1:ppn=8:^cl_zewura", "model!=zewura"),
        ("1:ppn=1:^zewura12.cerit-sc.cz", "hostname!=zewura11"),
        ("1:ppn=1:host=zewura10", "hostname=zewura09"),
        ("zewura19.cerit-sc.cz:ppn=12:brno", "hostname=zewura18 model=zegox|zewura"),
        ("1:ppn=1:^zegox20.cerit-sc.cz:^zegox21.cerit-sc.cz", "hostname!=zegox19 hostname!=zegox20"),
        ("1:ppn=1:cl_zewura+3:ppn=2", ""),
        ("1:ppn=1:cl_zewura+3:ppn=2:cl_zewura", "model=zewura"),
        ("", ""),
    ],
)
def test_properties_that_choose_among_nodes_become_constraints(text: str, expected: str) -> None:
    assert " ".join(map(str, node_spec(text))) == expected


def test_constraints_that_no_node_knows_of_are_dropped_and_counted() -> None:
    host = Constraint("hostname", Operator.EQUALS, ("a",))
    jobs = group_jobs(
        [
            replace(a_bundle("j0", tasks=3), constraints=(ZEWURA, host)),
            a_bundle("j1"),
            a_bundle("j0", stage=1),
        ]
    )
    unlike, like = (
        Node(name="a", total=(1, 1, 0, 0)),
        Node(name="b", total=(1, 1, 0, 0), attributes={"model": "x"}),
    )

    kept, dropped = keep_known(jobs, [unlike])
    assert [bundle.constraints for job in kept for bundle in job.bundles] == [(host,), (), ()]
    assert dropped == {"model=zewura": 3}

    kept, dropped = keep_known(jobs, [like])
    assert [bundle.constraints for job in kept for bundle in job.bundles] == [(ZEWURA,), (), ()]
    assert dropped == {"hostname=a": 3}
    assert kept[1] is jobs[1]
