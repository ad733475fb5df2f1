"""Properties of one allocation: sharing incentive, envy-freeness, Pareto efficiency."""

from collections.abc import Iterator
from math import inf, isinf

from fairlead_lab.properties.model import (
    Allocate,
    Case,
    Violation,
    held,
    shown,
    tasks_alone,
    tasks_run,
    tasks_shown,
    vector,
    weight_share,
    worst,
)


def sharing_incentive(case: Case, allocate: Allocate) -> Violation | None:
    """Nobody runs fewer tasks than on a cluster of its own with its part of every resource.

    Paper 001, section 3: "Each user should be better off sharing the cluster than exclusively using its own partition.
    [...] A user should not be able to allocate more tasks in a partition consisting of 1/n of all resources." (our
    translation). Paper 000, section 2.2: "each job gets no less than a 1/n share of its dominant resource", which says
    the same of allocations in multiples of the demand: x_i max_j a_ij >= 1/n. Paper 002 calls it share guarantee:
    "Every user should get 1/n of at least one resource".

    The bound is min over needed j of (w_i / sum w) C_j / D_ij, and what the user wants at most where that is less. The
    papers have equal weights.
    """
    problem = case.problem
    tasks = allocate(problem)

    def losers() -> Iterator[Violation]:
        for place, user in enumerate(problem.users):
            alone = tasks_alone(problem, user)
            part = weight_share(problem, user)
            bound = min(part * alone, user.max_tasks)
            yield Violation(
                case=case,
                user=place,
                excess=(bound - tasks[place]) / alone,
                before=tasks,
                after=None,
                finding=f"{user.name} runs {tasks_shown(tasks[place])}; with {shown(part)} of every resource for itself "
                f"it would run {shown(bound)}",
            )

    return worst(losers())


def envy_freeness(case: Case, allocate: Allocate) -> Violation | None:
    """Nobody could run more tasks with what another holds.

    Paper 001, section 3: "A user should not prefer the allocation of another user." (our translation). With weights,
    what the other holds counts per weight: i looks at w_i / w_k of it, as it would if k were w_k / w_i users like i
    (our extension; the papers compare users of equal weight).
    """
    problem = case.problem
    tasks = allocate(problem)

    def envious() -> Iterator[Violation]:
        for place, user in enumerate(problem.users):
            for other, owner in enumerate(problem.users):
                if other == place:
                    continue
                ratio = user.weight / owner.weight
                seen = held(owner, tasks[other] * ratio)
                would = tasks_run(user, seen)
                per_weight = "" if ratio == 1 else f" times the weights' {shown(ratio)}"
                yield Violation(
                    case=case,
                    user=place,
                    excess=(would - tasks[place]) / tasks_alone(problem, user),
                    before=tasks,
                    after=None,
                    finding=f"{user.name} runs {tasks_shown(tasks[place])}; with what {owner.name} holds{per_weight}, "
                    f"{vector(seen)}, it would run {shown(would)}",
                )

    return worst(envious())


def pareto_efficiency(case: Case, allocate: Allocate) -> Violation | None:
    """Nobody can run more tasks unless another runs fewer.

    Paper 001, section 3: "It should not be possible to increase the allocation of a user without decreasing the
    allocation of at least another user." (our translation). Paper 000, section 2.2: "each job needs some resource which
    is saturated". The two say the same: if every user needs a saturated resource, whoever gets more takes it from
    somebody; if one does not, it can have more at once.

    We ask how many more tasks each user could run with what is left. Who runs all it wants needs no more. A policy that
    hands out more than there is (slots) leaves nothing.
    """
    problem = case.problem
    tasks = allocate(problem)
    left = tuple(
        [max(0.0, total - used) for total, used in zip(problem.capacity, problem.used(tasks), strict=True)]
    )

    def able() -> Iterator[Violation]:
        for place, user in enumerate(problem.users):
            wanted = inf if isinf(user.max_tasks) else user.max_tasks - tasks[place]
            more = min(tasks_run(user, left), wanted)
            yield Violation(
                case=case,
                user=place,
                excess=more / tasks_alone(problem, user),
                before=tasks,
                after=None,
                finding=f"{vector(left)} is left over, with which {user.name} could run {tasks_shown(more)} more at "
                "nobody's cost",
            )

    return worst(able())
