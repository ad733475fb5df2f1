import pytest

from fairlead_lab.workloads.loading import load_jobs
from fairlead_lab.workloads.nodes import read_nodes
from fairlead_lab.workloads.plan import name_roles, plan_replay, slots_for_largest, slots_on_average
from fairlead_lab.workloads.sample import SAMPLE, SAMPLE_NODES
from fairlead_lab.workloads.scaling import ScalingRule, reference_node
from fairlead_proto.fields import read_id, read_role
from fairlead_sim.workload import WorkloadError, group_jobs
from tests.laboratory.replay.sample_program import nodes_text, sample_text
from tests.laboratory.workloads.workload_builders import GIB, a_bundle

NODE = (4000, 8 * GIB, 0, 0)
RULE = ScalingRule(reference=NODE, agents=(NODE, NODE), speedup=10)


def test_first_job_arrives_at_zero_and_the_rest_keep_their_distance() -> None:
    jobs = group_jobs([a_bundle("a", submit_ms=50_000), a_bundle("b", submit_ms=80_000)])

    plan = plan_replay(jobs, RULE)

    assert [(job.job_id, job.arrival_ms) for job in plan.jobs] == [("a", 0), ("b", 3000)]
    assert plan.last_arrival_ms == 3000


def test_bundle_becomes_its_number_of_tasks_each_with_an_id_of_its_own() -> None:
    jobs = group_jobs([a_bundle("a", tasks=2), a_bundle("a", tasks=1), a_bundle("b", tasks=2)])

    plan = plan_replay(jobs, RULE)
    ids = [task.task_id for job in plan.jobs for stage in job.stages for task in stage]

    assert plan.tasks == len(set(ids)) == 5
    assert ids[:3] == ["j0-a-0-0", "j0-a-0-1", "j0-a-0-2"]


def test_ideal_completion_is_the_longest_task_of_each_stage_summed() -> None:
    jobs = group_jobs([
        a_bundle("a", duration_ms=1000),
        a_bundle("a", duration_ms=3000),
        a_bundle("a", stage=2, duration_ms=500),
    ])  # fmt: skip

    (job,) = plan_replay(jobs, RULE).jobs

    assert job.ideal_ms == 300 + 50
    assert [len(stage) for stage in job.stages] == [2, 1]


def test_job_whose_tasks_fit_nowhere_is_left_out_and_named() -> None:
    jobs = group_jobs([a_bundle("gpu", unit=(1000, GIB, 0, 1)), a_bundle("a")])

    plan = plan_replay(jobs, RULE)

    assert [job.job_id for job in plan.jobs] == ["a"]
    assert plan.counts.left_out_jobs == ["gpu"]


def test_workload_of_which_nothing_fits_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"^t\.csv: expected a task that fits on an agent, got none of 1"):
        plan_replay(group_jobs([a_bundle("gpu", unit=(1000, GIB, 0, 1))]), RULE, source="t.csv")


def test_workload_of_too_many_tasks_is_refused_by_its_file() -> None:
    jobs = group_jobs([a_bundle(name, tasks=600_000) for name in "ab"])

    with pytest.raises(
        WorkloadError, match=r"^t\.csv: expected at most 1,000,000 tasks, got more: take fewer"
    ):
        plan_replay(jobs, RULE, source="t.csv")


def test_users_become_roles_that_the_border_takes() -> None:
    users = ["Ann", "ann", "u_1", "Jörg Å", "", "a/b", "ann", "x" * 500]

    roles = name_roles(users)

    assert list(roles) == ["Ann", "ann", "u_1", "Jörg Å", "", "a/b", "x" * 500]
    assert roles["Ann"] == "ann"
    assert roles["ann"] == "ann-2"
    assert roles[""] == "user"
    assert len(set(roles.values())) == len(roles)
    for role in roles.values():
        assert read_role("role", role) == role


def test_ids_of_odd_jobs_are_ones_the_border_takes() -> None:
    jobs = group_jobs([a_bundle("jöb 1/2"), a_bundle("jäb 1/2"), a_bundle("x" * 500)])

    ids = [job.stages[0][0].task_id for job in plan_replay(jobs, RULE).jobs]

    assert len(set(ids)) == 3
    for task_id in ids:
        assert read_id("task_id", task_id) == task_id


def test_slots_on_average_weigh_tasks_by_run_time() -> None:
    half, tenth = (2000, GIB, 0, 0), (400, 0, 0, 0)

    assert slots_on_average([(half, 100), (tenth, 100)], NODE) == 3
    assert slots_on_average([(half, 1_000_000), (tenth, 1)], NODE) == 2
    assert slots_on_average([(half, 0), (tenth, 0)], NODE) == 3
    assert slots_on_average([(NODE, 5)], NODE) == 1


def test_slots_for_the_largest_task_never_exceed_an_agent() -> None:
    third = (1334, GIB, 0, 0)

    assert slots_for_largest([(third, 1), ((400, 0, 0, 0), 1)], NODE) == 2
    assert slots_for_largest([((1000, GIB, 0, 0), 1)], NODE) == 4
    assert slots_for_largest([((400, 8 * GIB, 0, 0), 1)], NODE) == 1


def test_committed_sample_is_what_its_program_writes() -> None:
    assert SAMPLE.read_text(encoding="utf-8") == sample_text()
    assert SAMPLE_NODES.read_text(encoding="utf-8") == nodes_text()


def test_sample_is_mixed_contended_and_whole() -> None:
    """The demonstration needs users bound by different resources, and more work than four agents take at once."""
    jobs = load_jobs(SAMPLE)
    nodes = [node.total for node in read_nodes(SAMPLE_NODES)]
    bundles = [bundle for job in jobs for bundle in job.bundles]
    rule = ScalingRule(reference=reference_node(bundles, nodes), agents=(NODE,) * 4, speedup=60)

    plan = plan_replay(jobs, rule)
    dominant = {
        job.user: "cpus" if unit[0] / NODE[0] > unit[1] / NODE[1] else "mem"
        for job in plan.jobs
        for stage in job.stages
        for unit in [stage[0].unit]
    }

    assert 60 <= plan.tasks <= 100
    assert dominant == {"ana": "cpus", "ben": "mem", "cleo": "cpus", "dan": "cpus"}
    assert any(len(job.stages) > 1 for job in plan.jobs)
    assert (plan.counts.left_out, plan.counts.shrunken, plan.counts.raised) == (0, 0, 0)
    cpu_ms = sum(unit[0] * duration_ms for unit, duration_ms in plan.work)
    assert cpu_ms > 4 * NODE[0] * plan.last_arrival_ms
