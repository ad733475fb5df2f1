"""Properties of problems in which one resource decides: single-resource, local and bottleneck fairness."""

from collections.abc import Iterator, Sequence

from fairlead_lab.properties.model import (
    Allocate,
    Case,
    Violation,
    shown,
    weight_share,
    worst,
)
from fairlead_master.solvers.problem import Problem


def single_resource_fairness(case: Case, allocate: Allocate) -> Violation | None:
    """With one resource, it is shared max-min fairly.

    Paper 001, section 3: "For a single resource, the solution should reduce to max-min fairness." (our translation).
    Paper 002, appendix 3: "If there is only one resource, it should be allocated according to max/min fairness".

    Max-min fairness here is of *amounts of the resource* per weight, up to what a user wants: not of tasks, for which it
    would depend on how large somebody's tasks are. Problems of several resources hold vacuously.
    """
    if len(case.problem.resources) > 1:
        return None
    return _unlike_max_min(case, allocate, place=0)


def local_fairness(case: Case, allocate: Allocate) -> Violation | None:
    """With one resource, equal shares of it.

    Paper 000, section 2.2: "An algorithm is said to be locally fair if resource shares x_i a_i1 are all equal to 1/n
    when J = 1." It has no caps and no weights; with weights the shares are w_i / sum w. Differs from single-resource
    fairness only where somebody wants less than its share: max-min then gives the others more, which this does not
    know; such problems hold vacuously.
    """
    problem = case.problem
    if len(problem.resources) > 1:
        return None
    if any(user.max_tasks * problem.share(user)[0] < weight_share(problem, user) for user in problem.users):
        return None
    tasks = allocate(problem)

    def unequal() -> Iterator[Violation]:
        for place, user in enumerate(problem.users):
            share = tasks[place] * problem.share(user)[0]
            fair = weight_share(problem, user)
            yield Violation(
                case=case,
                user=place,
                excess=abs(share - fair),
                before=tasks,
                after=None,
                finding=f"{user.name} has {shown(share)} of {problem.resources[0]}; {shown(fair)} is its share",
            )

    return worst(unequal())


def bottleneck_fairness(case: Case, allocate: Allocate) -> Violation | None:
    """If one resource is the dominant one of every user, it is shared max-min fairly.

    Paper 001, section 3: "If there is one resource that is percent-wise demanded most of by every user, the solution
    should reduce to max-min fairness for that resource." (our translation). Paper 002, appendix 3: "If all users want
    most of one resource(s), that resource should be shared according to max/min fairness".

    A resource counts as dominant where no other is needed in a larger share; a user may have two such. Where no resource
    is dominant for all the property holds vacuously.
    """
    place = common_dominant(case.problem)
    return None if place is None else _unlike_max_min(case, allocate, place=place)


def common_dominant(problem: Problem) -> int | None:
    """The first resource of which every user needs at least as large a share as of any other; None if there is none."""
    shares = [problem.share(user) for user in problem.users]
    # Shares of integers: equal ones are equal floats, since each is one correctly rounded division.
    for place in range(len(problem.resources)):
        if all(share[place] == max(share) for share in shares):
            return place
    return None


def _unlike_max_min(case: Case, allocate: Allocate, *, place: int) -> Violation | None:
    """Who has most less or more of a resource than weighted max-min fairness of its amounts would give."""
    problem = case.problem
    tasks = allocate(problem)
    fair = max_min_shares(
        wants=[user.max_tasks * problem.share(user)[place] for user in problem.users],
        weights=[user.weight for user in problem.users],
    )

    def unlike() -> Iterator[Violation]:
        for who, user in enumerate(problem.users):
            share = tasks[who] * problem.share(user)[place]
            yield Violation(
                case=case,
                user=who,
                excess=abs(share - fair[who]),
                before=tasks,
                after=None,
                finding=f"{user.name} has {shown(share)} of {problem.resources[place]}; max-min fairness gives it "
                f"{shown(fair[who])}",
            )

    return worst(unlike())


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
