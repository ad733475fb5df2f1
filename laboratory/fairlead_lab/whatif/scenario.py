"""Simulates the cases of a question on the pool, with the allocator of a live master.

Nothing that runs is moved or ended: policies decide about what is free, and so does a change of hosts. What a policy would
do with all of it is simulated beside that, as if everything that runs were handed out again.
"""

from collections.abc import Callable, Iterable
from random import Random
from typing import Final

from fairlead_lab.whatif.answer import Answer, CaseOutcome, Holding, NeverRuns, RoleOutcome
from fairlead_lab.whatif.ledger import RUNNING, Ledger
from fairlead_lab.whatif.question import Case, Question, cases
from fairlead_lab.whatif.run_times import RunTimes
from fairlead_lab.whatif.snapshot import Host, Snapshot
from fairlead_master.allocation.hierarchy import with_those_above
from fairlead_proto.ids import AgentId, Role
from fairlead_proto.resources import Vector, sum_vectors
from fairlead_proto.tasks import Constraint
from fairlead_sim.engine import Engine
from fairlead_sim.node import Node
from fairlead_sim.pool.simulation import Pool, PoolOptions, Running
from fairlead_sim.workload import Bundle, Job

_NOTHING: Final = Holding(tasks=0, dominant_share=0.0, dominant_resource="")


Progress = Callable[[str, int, int], None]
"""Told now and then which case is simulated, and how many tasks are over in all cases, of how many."""


def answer(
    snapshot: Snapshot, question: Question, run_times: RunTimes, progress: Progress = lambda *_: None
) -> Answer:
    """All cases of a question.

    Raises:
        QuestionError: the question cannot be asked of this cluster.
        AllocationError: a policy is not known, or cannot share these resources.
    """
    found = cases(snapshot, question)
    tasks = len(snapshot.running) + sum(waiting.units for waiting in snapshot.waiting)
    outcomes = []
    for number, case in enumerate(found):

        def tell(ended: int, name: str = case.name, before: int = number * tasks) -> None:
            progress(name, before + ended, len(found) * tasks)

        tell(0)
        outcomes.append(_Simulation(snapshot, case, question, run_times).outcome(tell))
    return Answer(
        assumption=_assumption(run_times),
        remarks=_remarks(snapshot, run_times),
        horizon_ms=question.horizon_ms,
        cases=outcomes,
    )


class _Simulation:
    """One case, simulated twice: from what runs now, and with everything handed out anew."""

    def __init__(self, snapshot: Snapshot, case: Case, question: Question, run_times: RunTimes) -> None:
        self._snapshot = snapshot
        self._case = case
        self._question = question
        self._run_times = run_times
        self._drained = {host.agent_id for host in case.hosts if not host.takes_work}

    def outcome(self, on_ended: Callable[[int], None]) -> CaseOutcome:
        """Simulate it, and tell how many tasks are over as time goes by."""
        ledger = Ledger(self._roles_of, on_ended)
        pool = self._pool(ledger)
        self._adopt(pool)
        pool.feed(self._waiting())
        pool.engine.run_until(0)
        now, utilization = _holdings(pool, ledger), self._utilization(pool)
        waiting = {role: tally.waiting for role, tally in ledger.by_role.items()}
        anew = self._anew()
        if self._run_times.are_known:
            if self._question.horizon_ms is None:
                pool.run()
            else:
                pool.engine.run_until(self._question.horizon_ms)
        is_told = self._run_times.are_known
        roles = [
            RoleOutcome(
                role=role,
                now=now.get(role, _NOTHING),
                waiting=waiting[role],
                anew=anew.get(role, _NOTHING),
                wait_mean_ms=tally.wait_mean_ms if is_told else None,
                wait_max_ms=tally.wait_max_ms if is_told and tally.started else None,
                finish_ms=tally.finish_ms,
            )
            for role, tally in sorted(ledger.by_role.items(), key=lambda item: item[0].split("/"))
        ]
        return CaseOutcome(
            name=self._case.name,
            policy=self._case.settings.policy,
            hosts=sum(host.takes_work for host in self._case.hosts),
            utilization=utilization,
            tasks_drained=sum(task.agent_id in self._drained for task in self._snapshot.running),
            roles=roles,
            never=[
                NeverRuns(framework_id=bundle.user, class_id=bundle.job_id, tasks=bundle.tasks, why=why)
                for bundle, why in ledger.refused_bundles
            ],
            wait_mean_ms=ledger.total.wait_mean_ms if is_told else None,
            finish_ms=ledger.total.finish_ms,
            not_started=ledger.total.waiting,
        )

    def _pool(self, ledger: Ledger) -> Pool:
        hosts = self._case.hosts
        pool = Pool(
            Engine(Random(self._question.seed), now_ms=0),  # noqa: S311 - chance that can be repeated is the purpose
            [_node(host) for host in hosts],
            ledger,
            settings=self._case.settings,
            options=PoolOptions(
                role_of=lambda job: self._snapshot.frameworks[job.user].role,
                framework_of=lambda job: job.user,
            ),
            drained=self._drained,
            kinds=self._snapshot.kinds,
        )
        for role, weight in self._snapshot.weights.items():
            pool.allocator.set_weight(role, weight)
        return pool

    def _roles_of(self, job: Job) -> tuple[str, ...]:
        return tuple(with_those_above(Role(self._snapshot.frameworks[job.user].role)))

    def _adopt(self, pool: Pool) -> None:
        """What runs now runs on, one job a framework, in the order in which frameworks are listed."""
        by_framework: dict[str, list[Running]] = {
            framework_id: [] for framework_id in self._snapshot.frameworks
        }
        bundles: dict[tuple[str, Vector], Bundle] = {}
        for task in self._snapshot.running:
            kind = (task.framework_id, task.unit)
            bundle = bundles.get(kind) or bundles.setdefault(kind, self._bundle(RUNNING, *kind, tasks=1))
            framework = self._snapshot.frameworks[task.framework_id]
            left_ms = (
                self._run_times.left_ms(framework, task.unit, task.ran_ms) if self._run_times.are_known else 1
            )
            by_framework[task.framework_id].append(
                Running(bundle=bundle, units=1, host=task.agent_id, ran_ms=task.ran_ms, left_ms=left_ms)
            )
        for framework_id, running in by_framework.items():
            if running:
                pool.adopt(_job([tasks.bundle for tasks in running], RUNNING, framework_id), running)

    def _waiting(self) -> Iterable[Job]:
        """A job for each class that waits, so that one that can never run holds up no other."""
        for waiting in self._snapshot.waiting:
            bundle = self._bundle(
                waiting.class_id, waiting.framework_id, waiting.unit, waiting.units, waiting.constraints
            )
            yield _job([bundle], waiting.class_id, waiting.framework_id)

    def _anew(self) -> dict[str, Holding]:
        """What roles would hold if what runs were waiting as well, and everything were free."""
        ledger = Ledger(self._roles_of)
        pool = self._pool(ledger)
        # What constraints a running task was launched under is not listed; those of the class with its demand are likely.
        constraints = {
            (waiting.framework_id, waiting.unit): waiting.constraints for waiting in self._snapshot.waiting
        }
        counts: dict[tuple[str, Vector], int] = {}
        for task in self._snapshot.running:
            kind = (task.framework_id, task.unit)
            counts[kind] = counts.get(kind, 0) + 1
        again = [
            _job(
                [self._bundle("again", *kind, tasks=tasks, constraints=constraints.get(kind, ()))],
                "again",
                kind[0],
            )
            for kind, tasks in counts.items()
        ]
        pool.feed([*again, *self._waiting()])
        pool.engine.run_until(0)
        return _holdings(pool, ledger)

    def _bundle(
        self,
        job_id: str,
        framework_id: str,
        unit: Vector,
        tasks: int,
        constraints: tuple[Constraint, ...] = (),
    ) -> Bundle:
        framework = self._snapshot.frameworks[framework_id]
        duration_ms = self._run_times.expected_ms(framework, unit) if self._run_times.are_known else 1
        return Bundle(
            job_id=job_id,
            user=framework_id,
            stage=0,
            tasks=tasks,
            unit=unit,
            submit_ms=0,
            duration_ms=duration_ms,
            constraints=constraints,
        )

    def _utilization(self, pool: Pool) -> dict[str, float]:
        hosts = [AgentId(host.agent_id) for host in self._case.hosts if host.takes_work]
        kinds = self._snapshot.kinds
        held = sum_vectors((pool.allocator.agent_books(host).charged for host in hosts), kinds.zero)
        places = zip(kinds.names, held, pool.allocator.capacity, strict=True)
        return {name: amount / total for name, amount, total in places if total}


def _job(bundles: list[Bundle], job_id: str, framework_id: str) -> Job:
    return Job(job_id=job_id, user=framework_id, submit_ms=0, bundles=tuple(bundles))


def _node(host: Host) -> Node:
    return Node(
        name=host.agent_id, total=host.total, attributes={**host.attributes, "hostname": host.hostname}
    )


def _holdings(pool: Pool, ledger: Ledger) -> dict[str, Holding]:
    return {
        row.role: Holding(
            tasks=ledger.by_role[row.role].running,
            dominant_share=row.dominant_share,
            dominant_resource=row.dominant_resource,
        )
        for row in pool.allocator.role_report()
    }


def _assumption(run_times: RunTimes) -> str:
    if not run_times.are_known:
        return "no task has finished yet, so nothing is said of the future: give the duration of tasks"
    if run_times.given_ms is not None:
        return f"every task runs for {run_times.given_ms / 1000:g} s; one that has run longer, as long again"
    are = "is" if run_times.finished == 1 else "are"
    return (
        "tasks run as long as those like them that finished did on average "
        f"({run_times.finished} {are} remembered)"
    )


def _remarks(snapshot: Snapshot, run_times: RunTimes) -> list[str]:
    remarks = []
    wanted = sum(each.units for each in snapshot.waiting)
    guessed = sum(
        each.units
        for each in snapshot.waiting
        if run_times.are_of_others(snapshot.frameworks[each.framework_id], each.unit)
    )
    if guessed:
        remarks.append(
            f"of {guessed} of the {wanted} tasks that wait nothing alike has finished yet, so that they are taken to run as long as "
            "other work of their role or of the cluster did, which may be far off: say how long with --task-duration"
        )
    if snapshot.tasks_left_out:
        remarks.append(
            f"tasks on agents that are gone or not back yet are left out: {snapshot.tasks_left_out}"
        )
    if snapshot.is_measured:
        remarks.append("the cluster counts measured demand; here what tasks declare counts")
    return remarks
