"""The properties, each with the papers' definition in its docstring and how ours makes it checkable.

A definition tells of each user how far the case contradicts the property, and why; ``Property`` picks the user who is
treated worst. Quotations of paper 001 are our translation.
"""

from collections.abc import Iterator, Sequence
from math import inf
from random import Random
from typing import Final

from fairlead_lab.properties.changes import (
    Change,
    Departure,
    Growth,
    Misreport,
    Rescaling,
    changed,
    is_possible,
    replaced,
)
from fairlead_lab.properties.model import (
    Case,
    Property,
    Setting,
    Tasks,
    Treatment,
    held,
    shown,
    tasks_alone,
    tasks_run,
    tasks_shown,
    vector,
    weight_share,
)
from fairlead_master.solvers.problem import Amounts, Problem


def sharing_incentive(case: Case, tasks: Tasks, _: Tasks) -> Iterator[Treatment]:
    """Nobody runs fewer tasks than on a cluster of its own with its part of every resource.

    Paper 001, section 3: "Each user should be better off sharing the cluster than exclusively using its own partition.
    [...] A user should not be able to allocate more tasks in a partition consisting of 1/n of all resources." Paper 000,
    section 2.2: "each job gets no less than a 1/n share of its dominant resource", which says the same of allocations in
    multiples of the demand: x_i max_j a_ij >= 1/n. Paper 002 calls it share guarantee: "Every user should get 1/n of at
    least one resource".

    The bound is min over needed j of (w_i / sum w) C_j / D_ij, and what the user wants at most where that is less. The
    papers have equal weights.
    """
    for place, user in enumerate(case.problem.users):
        alone = tasks_alone(case.problem, user)
        part = weight_share(case.problem, user)
        bound = min(part * alone, user.max_tasks)
        yield Treatment(
            place,
            (bound - tasks[place]) / alone,
            f"{user.name} runs {tasks_shown(tasks[place])}; with {shown(part)} of every resource for itself "
            f"it would run {shown(bound)}",
        )


def envy_freeness(case: Case, tasks: Tasks, _: Tasks) -> Iterator[Treatment]:
    """Nobody could run more tasks with what another holds.

    Paper 001, section 3: "A user should not prefer the allocation of another user." With weights, what the other holds
    counts per weight: i looks at w_i / w_k of it, as it would if k were w_k / w_i users like i (our extension; the papers
    compare users of equal weight).
    """
    for place, user in enumerate(case.problem.users):
        for other, owner in enumerate(case.problem.users):
            if other == place:
                continue
            ratio = user.weight / owner.weight
            seen = held(owner, tasks[other] * ratio)
            would = tasks_run(user, seen)
            per_weight = "" if ratio == 1 else f" times the weights' {shown(ratio)}"
            yield Treatment(
                place,
                (would - tasks[place]) / tasks_alone(case.problem, user),
                f"{user.name} runs {tasks_shown(tasks[place])}; with what {owner.name} holds{per_weight}, "
                f"{vector(seen)}, it would run {shown(would)}",
            )


def pareto_efficiency(case: Case, tasks: Tasks, _: Tasks) -> Iterator[Treatment]:
    """Nobody can run more tasks unless another runs fewer.

    Paper 001, section 3: "It should not be possible to increase the allocation of a user without decreasing the
    allocation of at least another user." Paper 000, section 2.2: "each job needs some resource which is saturated". The
    two say the same: if every user needs a saturated resource, whoever gets more takes it from somebody; if one does not,
    it can have more at once.

    We ask how many more tasks each user could run with what is left. Who runs all it wants needs no more. A policy that
    hands out more than there is (slots) leaves nothing.
    """
    problem = case.problem
    used = problem.used(tasks)
    left = tuple([max(0.0, total - taken) for total, taken in zip(problem.capacity, used, strict=True)])
    for place, user in enumerate(problem.users):
        wanted = inf if user.max_tasks == inf else user.max_tasks - tasks[place]
        more = min(tasks_run(user, left), wanted)
        yield Treatment(
            place,
            more / tasks_alone(problem, user),
            f"{vector(left)} is left over, with which {user.name} could run {tasks_shown(more)} more at nobody's cost",
        )


def single_resource_fairness(case: Case, tasks: Tasks, _: Tasks) -> Iterator[Treatment]:
    """With one resource, it is shared max-min fairly.

    Paper 001, section 3: "For a single resource, the solution should reduce to max-min fairness." Paper 002, appendix 3:
    "If there is only one resource, it should be allocated according to max/min fairness".

    Max-min fairness here is of *amounts of the resource* per weight, up to what a user wants: not of tasks, for which it
    would depend on how large somebody's tasks are. Problems of several resources hold vacuously.
    """
    return _unlike_max_min(case.problem, tasks, place=0)


def local_fairness(case: Case, tasks: Tasks, _: Tasks) -> Iterator[Treatment]:
    """With one resource, equal shares of it.

    Paper 000, section 2.2: "An algorithm is said to be locally fair if resource shares x_i a_i1 are all equal to 1/n
    when J = 1." It has no caps and no weights; with weights the shares are w_i / sum w. Differs from single-resource
    fairness only where somebody wants less than its share: max-min then gives the others more, which this does not
    know; such problems hold vacuously.
    """
    problem = case.problem
    for place, user in enumerate(problem.users):
        share = tasks[place] * problem.share(user)[0]
        fair = weight_share(problem, user)
        yield Treatment(
            place,
            abs(share - fair),
            f"{user.name} has {shown(share)} of {problem.resources[0]}; {shown(fair)} is its share",
        )


def bottleneck_fairness(case: Case, tasks: Tasks, _: Tasks) -> Iterator[Treatment]:
    """If one resource is the dominant one of every user, it is shared max-min fairly.

    Paper 001, section 3: "If there is one resource that is percent-wise demanded most of by every user, the solution
    should reduce to max-min fairness for that resource." Paper 002, appendix 3: "If all users want most of one
    resource(s), that resource should be shared according to max/min fairness".

    A resource counts as dominant where no other is needed in a larger share; a user may have two such. Where no resource
    is dominant for all the property holds vacuously.
    """
    place = common_dominant(case.problem)
    assert place is not None, "expected a resource that is dominant for all"
    return _unlike_max_min(case.problem, tasks, place=place)


def strategy_proofness(case: Case, before: Tasks, after: Tasks) -> Iterator[Treatment]:
    """Nobody runs more of its tasks by claiming another demand vector than it has.

    Paper 001, section 3: "Users should not be able to benefit by lying about their resource demands." Paper 002: "A user
    should not be able to increase her allocation by lying about her demand vector".

    Paper 000, section 2.2, says that "the resource shares of any job do not increase if this job modifies its vector of
    resource requirements". Taken by the letter no efficient policy is that: whoever claims more of a resource that is
    left over gets more of it. We ask whether the liar runs more tasks of its *true* vector with what it is given, which
    is what the proof of proposition 2 shows. What it wants at most is declared as it is.
    """
    problem, change = case.problem, case.change
    assert isinstance(change, Misreport), f"expected a misreport, got {change}"
    user = problem.users[change.user]
    given = tuple([need * after[change.user] for need in change.claim])
    runs = tasks_run(user, given)
    yield Treatment(
        change.user,
        (runs - before[change.user]) / tasks_alone(problem, user),
        f"{user.name} needs {vector(user.demand)} and runs {tasks_shown(before[change.user])}; claiming "
        f"{vector(change.claim)} it is given {vector(given)} and runs {shown(runs)}",
    )


def population_monotonicity(case: Case, before: Tasks, after: Tasks) -> Iterator[Treatment]:
    """When a user leaves, none of the others runs fewer tasks.

    Paper 001, section 3: "When a user leaves the system and relinquishes her resources, none of the allocations of the
    remaining users should decrease." Paper 002, appendix C: "If a user leaves and relinquishes her resources, no other
    user's allocation should get hurt", which DRF satisfies "Assuming positive demands".
    """
    problem, change = case.problem, case.change
    assert isinstance(change, Departure), f"expected a departure, got {change}"
    # Who left has as many tasks as before, so that it does not count as treated worse.
    aligned = (*after[: change.user], before[change.user], *after[change.user :])
    return _losses(problem, before, aligned, f"when {problem.users[change.user].name} leaves")


def resource_monotonicity(case: Case, before: Tasks, after: Tasks) -> Iterator[Treatment]:
    """When a resource grows, nobody runs fewer tasks.

    Paper 001, section 3: "If more resources are added to the system, none of the allocations of the existing users
    should decrease." Paper 002, appendix C: "If a resource is increased, no user's allocation will decrease".
    """
    problem, change = case.problem, case.change
    assert isinstance(change, Growth), f"expected a growth, got {change}"
    event = f"when {problem.resources[change.resource]} grows to {shown(change.capacity)}"
    return _losses(problem, before, after, event)


def scale_invariance(case: Case, before: Tasks, after: Tasks) -> Iterator[Treatment]:
    """It does not matter in how large tasks a user counts its work.

    Paper 000, section 2.2: "resource shares remain the same when the vector of resource requirements of any job is
    multiplied by a scaling factor". A user that wants a number of tasks at most wants as many times fewer of larger
    ones.
    """
    problem, change = case.problem, case.change
    assert isinstance(change, Rescaling), f"expected a rescaling, got {change}"
    scaled = changed(problem, change)
    for place, user in enumerate(problem.users):
        had = held(user, before[place])
        has = held(scaled.users[place], after[place])
        yield Treatment(
            place,
            # Both hold a multiple of one vector: the dominant share says how far they are apart.
            abs(tasks_run(user, had) - tasks_run(user, has)) / tasks_alone(problem, user),
            f"when {problem.users[change.user].name} counts in tasks {shown(change.factor)} times as large "
            f"{user.name} goes from {vector(had)} to {vector(has)}",
        )


def common_dominant(problem: Problem) -> int | None:
    """The first resource of which every user needs at least as large a share as of any other; None if there is none."""
    shares = [problem.share(user) for user in problem.users]
    # Shares of integers: equal ones are equal floats, since each is one correctly rounded division.
    for place in range(len(problem.resources)):
        if all(share[place] == max(share) for share in shares):
            return place
    return None


def max_min_shares(*, wants: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Max-min fair shares of one resource of size 1, per weight, of which user i wants ``wants[i]`` at most.

    Water filling: whoever wants the least per weight is served first, and the rest share what it leaves.
    """
    shares = [0.0] * len(wants)
    left, weight_left = 1.0, sum(weights)
    for place in sorted(range(len(wants)), key=lambda place: wants[place] / weights[place]):
        shares[place] = min(wants[place], left * weights[place] / weight_left)
        left -= shares[place]
        weight_left -= weights[place]
    return shares


def _unlike_max_min(problem: Problem, tasks: Tasks, *, place: int) -> Iterator[Treatment]:
    """How much less or more of a resource users have than weighted max-min fairness of its amounts would give."""
    parts = [problem.share(user)[place] for user in problem.users]
    fair_shares = max_min_shares(
        wants=[user.max_tasks * part for user, part in zip(problem.users, parts, strict=True)],
        weights=[user.weight for user in problem.users],
    )
    for who, (user, fair) in enumerate(zip(problem.users, fair_shares, strict=True)):
        share = tasks[who] * parts[who]
        yield Treatment(
            who,
            abs(share - fair),
            f"{user.name} has {shown(share)} of {problem.resources[place]}; max-min fairness gives it {shown(fair)}",
        )


def _losses(problem: Problem, before: Tasks, after: Tasks, event: str) -> Iterator[Treatment]:
    """How much each user loses by an event."""
    for place, user in enumerate(problem.users):
        yield Treatment(
            place,
            (before[place] - after[place]) / tasks_alone(problem, user),
            f"{event} {user.name} goes from {tasks_shown(before[place])} to {shown(after[place])}",
        )


def _has_one_resource(problem: Problem) -> bool:
    return len(problem.resources) == 1


def _all_want_their_share_of_one_resource(problem: Problem) -> bool:
    return _has_one_resource(problem) and all(
        user.max_tasks * problem.share(user)[0] >= weight_share(problem, user) for user in problem.users
    )


def _draw_misreports(problem: Problem, random: Random) -> Iterator[Change]:
    """Lies, without end: one resource more or less, another vector, all of it scaled, what is not needed at all."""
    while True:
        who = random.randrange(len(problem.users))
        truth = problem.users[who].demand
        place = random.randrange(len(truth))
        top = int(max(truth)) + 2
        claim: Amounts
        match random.randrange(4):
            case 0:
                claim = replaced(truth, place, truth[place] + random.randint(1, top))
            case 1:
                claim = replaced(truth, place, random.randint(0, int(truth[place])))
            case 2:
                claim = tuple([need * 2 for need in truth])
            case _:
                claim = tuple([random.randint(0, top) for _ in truth])
        lie = Misreport(who, claim)
        if is_possible(problem, lie):
            yield lie


def _draw_departures(problem: Problem, random: Random) -> Iterator[Change]:
    """Each user's departure, in random order."""
    for who in random.sample(range(len(problem.users)), len(problem.users)):
        if is_possible(problem, Departure(who)):
            yield Departure(who)


def _draw_growths(problem: Problem, random: Random) -> Iterator[Change]:
    """Each resource somewhat larger, and much larger, in random order."""
    for place in random.sample(range(len(problem.resources)), len(problem.resources)):
        capacity = problem.capacity[place]
        yield Growth(place, capacity + random.randint(1, max(1, int(capacity))))
        yield Growth(place, capacity * random.randint(2, 6))


def _draw_rescalings(problem: Problem, random: Random) -> Iterator[Change]:
    """Each user's tasks a few times as large, in random order."""
    for who in random.sample(range(len(problem.users)), len(problem.users)):
        yield Rescaling(who, random.randint(2, 5))


PROPERTIES: Final = (
    Property("sharing incentive", sharing_incentive),
    Property("strategy-proofness", strategy_proofness, _draw_misreports),
    Property("envy-freeness", envy_freeness),
    Property("Pareto efficiency", pareto_efficiency),
    Property(
        "single-resource fairness",
        single_resource_fairness,
        setting=Setting.ONE_RESOURCE,
        speaks_of=_has_one_resource,
    ),
    Property(
        "bottleneck fairness",
        bottleneck_fairness,
        setting=Setting.ONE_BOTTLENECK,
        speaks_of=lambda problem: common_dominant(problem) is not None,
    ),
    Property("population monotonicity", population_monotonicity, _draw_departures),
    Property("resource monotonicity", resource_monotonicity, _draw_growths),
    Property("scale invariance", scale_invariance, _draw_rescalings),
    Property(
        "local fairness",
        local_fairness,
        setting=Setting.ONE_RESOURCE,
        speaks_of=_all_want_their_share_of_one_resource,
    ),
)
"""In the order of the papers' table; those that only paper 000 has come last."""
