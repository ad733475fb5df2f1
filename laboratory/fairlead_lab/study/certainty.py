"""How sure the answers of a study are, in words: what a seed changes, what its runs could tell, and how many questions are asked."""

from collections.abc import Sequence

from fairlead_lab.study.questions import Answer
from fairlead_lab.study.study import Outcome
from fairlead_lab.study.telling_apart import is_crowded
from fairlead_master.allocation import placement
from fairlead_master.allocation.policies.names import slots_per_agent


def what_seeds_change(outcome: Outcome) -> str:
    """What differs between two seeds; empty where there is one."""
    first, *others = outcome.workloads
    count = len(outcome.study.seeds)
    if not others:
        return ""
    if any(other.yardstick != first.yardstick for other in others):
        return f"Each policy was run with {count} seeds. A seed makes the work itself, so intervals are about work of this kind."
    changed = ["how long gangs wait before they try again"] if first.yardstick.survey.gangs else []
    if drawn := placed_by_chance(outcome):
        changed.append(f"which hosts tasks are placed on under {', '.join(drawn)}")
    if changed:
        return (
            f"Each policy was run with {count} seeds. The work is the same under every seed; what a seed changes is "
            f"{' and '.join(changed)}, and all that follows from it. So intervals are about that chance, and not about other work."
        )
    return f"Each policy was run with {count} seeds, but this work has nothing in it that hangs on a seed: all are alike."


def placed_by_chance(outcome: Outcome) -> list[str]:
    """Policies of the study under which a seed decides which hosts tasks get."""
    asked = outcome.study.options.placement
    return [
        policy
        for policy in outcome.study.policies
        if placement.in_force(asked, slots_per_agent(policy)).goes_by_turns and ":" not in asked
    ]


def how_told_apart(outcome: Outcome, known: Sequence[Answer]) -> list[str]:
    """What is marked in the table of questions, and how much chance there is in it; nothing of a single policy."""
    policies = len(outcome.study.policies)
    if policies < 2:
        return []
    lines = [*_not_compared(outcome)]
    marked = "Marked are the best number of a row and those that cannot be told from it; nothing is, where all are alike."
    if len(outcome.study.seeds) > 1:
        lines += [
            (
                f"{marked} Policies are compared seed by seed: what a 95 % interval of their differences leaves open is not told apart. "
                "± is the half width of the 95 % interval of a single mean."
            ),
            (
                "“Could tell” is how fine that comparison is, the half width of the interval of a difference: one that is smaller may "
                "be there and not be seen."
            ),
        ]
    else:
        lines.append(
            f"{marked} There is one run of each policy, so chance is judged by drawing its jobs again in 50 blocks: what a 95 % "
            "interval of the ratio of two policies leaves open is not told apart. It says how much a few stretches of this work "
            "decide the result, and not what other work would give."
        )
        if any(not answer.has_interval for answer in known):
            lines.append(
                "Questions with ° have no such interval: there those within a hundredth are alike, and a tenth may be chance."
            )
    comparisons = sum(max(0, policies - len(answer.left_out) - 1) for answer in known)
    lines.append(
        f"{len(known)} questions of {policies} policies are {comparisons} comparisons, each by itself at 95 %, without a correction "
        "for their number: of those in which there is no difference, one in twenty looks as if there were one."
    )
    return lines


def _not_compared(outcome: Outcome) -> list[str]:
    crowded = [policy for policy, runs in outcome.results.items() if is_crowded(runs)]
    if not crowded:
        return []
    return [
        f"† Not compared: under {', '.join(crowded)} hosts are promised twice, so a start means less there."
    ]
