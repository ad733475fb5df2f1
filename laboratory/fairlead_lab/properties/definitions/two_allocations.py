"""Properties that compare two allocations: strategy-proofness, the two monotonicities, scale invariance."""

from collections.abc import Iterator, Sequence
from random import Random

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
    Allocate,
    Case,
    Violation,
    held,
    shown,
    tasks_alone,
    tasks_run,
    tasks_shown,
    vector,
    worst,
)
from fairlead_master.solvers.problem import Amounts, Problem


def strategy_proofness(case: Case, allocate: Allocate) -> Violation | None:
    """Nobody runs more of its tasks by claiming another demand vector than it has.

    Paper 001, section 3: "Users should not be able to benefit by lying about their resource demands." (our
    translation). Paper 002: "A user should not be able to increase her allocation by lying about her demand vector".

    Paper 000, section 2.2, says that "the resource shares of any job do not increase if this job modifies its vector of
    resource requirements". Taken by the letter no efficient policy is that: whoever claims more of a resource that is
    left over gets more of it. We ask whether the liar runs more tasks of its *true* vector with what it is given, which
    is what the proof of proposition 2 shows. What it wants at most is declared as it is.
    """
    problem, change = case.problem, case.change
    assert isinstance(change, Misreport), f"expected a misreport, got {change}"
    user = problem.users[change.user]
    before, after = allocate(problem), allocate(changed(problem, change))
    given = tuple([need * after[change.user] for need in change.claim])
    runs = tasks_run(user, given)
    violation = Violation(
        case=case,
        user=change.user,
        excess=(runs - before[change.user]) / tasks_alone(problem, user),
        before=before,
        after=after,
        finding=f"{user.name} needs {vector(user.demand)} and runs {tasks_shown(before[change.user])}; claiming "
        f"{vector(change.claim)} it is given {vector(given)} and runs {shown(runs)}",
    )
    return worst(iter((violation,)))


def draw_misreports(problem: Problem, random: Random) -> Iterator[Change]:
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


def population_monotonicity(case: Case, allocate: Allocate) -> Violation | None:
    """When a user leaves, none of the others runs fewer tasks.

    Paper 001, section 3: "When a user leaves the system and relinquishes her resources, none of the allocations of the
    remaining users should decrease." (our translation). Paper 002, appendix C: "If a user leaves and relinquishes her
    resources, no other user's allocation should get hurt", which DRF satisfies "Assuming positive demands".
    """
    problem, change = case.problem, case.change
    assert isinstance(change, Departure), f"expected a departure, got {change}"
    before, after = allocate(problem), allocate(changed(problem, change))
    # One place for each user of the problem; nothing is asked of the place of whoever left.
    left = (*after[: change.user], 0.0, *after[change.user :])
    staying = [place for place in range(len(problem.users)) if place != change.user]
    event = f"when {problem.users[change.user].name} leaves"
    return worst(_losers(case, before, after, left, staying, event))


def draw_departures(problem: Problem, random: Random) -> Iterator[Change]:
    """Each user's departure, in random order."""
    for who in random.sample(range(len(problem.users)), len(problem.users)):
        if is_possible(problem, Departure(who)):
            yield Departure(who)


def resource_monotonicity(case: Case, allocate: Allocate) -> Violation | None:
    """When a resource grows, nobody runs fewer tasks.

    Paper 001, section 3: "If more resources are added to the system, none of the allocations of the existing users
    should decrease." (our translation). Paper 002, appendix C: "If a resource is increased, no user's allocation will
    decrease".
    """
    problem, change = case.problem, case.change
    assert isinstance(change, Growth), f"expected a growth, got {change}"
    before, after = allocate(problem), allocate(changed(problem, change))
    event = f"when {problem.resources[change.resource]} grows to {shown(change.capacity)}"
    return worst(_losers(case, before, after, after, range(len(problem.users)), event))


def draw_growths(problem: Problem, random: Random) -> Iterator[Change]:
    """Each resource somewhat larger, and much larger, in random order."""
    for place in random.sample(range(len(problem.resources)), len(problem.resources)):
        capacity = problem.capacity[place]
        yield Growth(place, capacity + random.randint(1, max(1, int(capacity))))
        yield Growth(place, capacity * random.randint(2, 6))


def _losers(
    case: Case,
    before: tuple[float, ...],
    after: tuple[float, ...],
    aligned: Sequence[float],
    places: Sequence[int],
    event: str,
) -> Iterator[Violation]:
    """How much each of the users at ``places`` loses, where ``aligned`` has the tasks afterwards at their places."""
    for place in places:
        user = case.problem.users[place]
        yield Violation(
            case=case,
            user=place,
            excess=(before[place] - aligned[place]) / tasks_alone(case.problem, user),
            before=before,
            after=after,
            finding=f"{event} {user.name} goes from {tasks_shown(before[place])} to {shown(aligned[place])}",
        )


def scale_invariance(case: Case, allocate: Allocate) -> Violation | None:
    """It does not matter in how large tasks a user counts its work.

    Paper 000, section 2.2: "resource shares remain the same when the vector of resource requirements of any job is
    multiplied by a scaling factor". A user that wants a number of tasks at most wants as many times fewer of larger
    ones.
    """
    problem, change = case.problem, case.change
    assert isinstance(change, Rescaling), f"expected a rescaling, got {change}"
    scaled = changed(problem, change)
    before, after = allocate(problem), allocate(scaled)

    def differing() -> Iterator[Violation]:
        for place, user in enumerate(problem.users):
            had = held(user, before[place])
            has = held(scaled.users[place], after[place])
            # Both hold a multiple of one vector: the dominant share says how far they are apart.
            apart = abs(tasks_run(user, had) - tasks_run(user, has)) / tasks_alone(problem, user)
            yield Violation(
                case=case,
                user=place,
                excess=apart,
                before=before,
                after=after,
                finding=f"when {problem.users[change.user].name} counts in tasks {shown(change.factor)} times as large "
                f"{user.name} goes from {vector(had)} to {vector(has)}",
            )

    return worst(differing())


def draw_rescalings(problem: Problem, random: Random) -> Iterator[Change]:
    """Each user's tasks a few times as large, in random order."""
    for who in random.sample(range(len(problem.users)), len(problem.users)):
        yield Rescaling(who, random.randint(2, 5))
