"""A study's results as plain data for JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fairlead_lab.metrics.measures import listed_measures
from fairlead_lab.metrics.result import PolicyResult
from fairlead_lab.study.comparison import NOTICEABLE, changes_by_user, completion_ratio, reductions_by_size
from fairlead_lab.study.study import Outcome
from fairlead_proto.resources import ResourceKinds


def as_document(outcome: Outcome, *, with_speed: bool) -> dict[str, Any]:
    """Everything but what changes over time and the single jobs.

    Args:
        outcome: Of the study.
        with_speed: Whether to say how fast the simulation was. It differs from run to run; all else is a function of the
            study, so without it the same study is the same text.
    """
    study = outcome.study
    options = study.options
    first = outcome.results[study.policies[0]]
    return {
        "workload": [
            {
                "seed": each.seed,
                "jobs": each.jobs,
                "tasks": each.tasks,
                "users": each.users,
                "remarks": list(each.remarks),
            }
            for each in outcome.workloads
        ],
        "nodes": {
            "count": len(study.nodes),
            "capacity": ResourceKinds().as_units(outcome.workloads[0].yardstick.survey.capacity),
        },
        "settings": {
            "seeds": list(study.seeds),
            "level": options.level,
            "placement": options.placement,
            "when_head_does_not_fit": options.when_head_does_not_fit,
            "memory_slowdown": options.memory_slowdown,
            "per": "job" if options.is_user_per_job else "user",
            "weights": dict(options.weights),
            "horizon_ms": options.horizon_ms,
        },
        "policies": [_policy(runs, with_speed=with_speed) for runs in outcome.results.values()],
        "comparison": [
            _compare(policy, outcome.results[policy], study.policies[0], first)
            for policy in study.policies[1:]
        ],
    }


def _policy(runs: Sequence[PolicyResult], *, with_speed: bool) -> dict[str, Any]:
    """One run as it is; of several, means over the seeds, how far off they may be, and the runs."""
    singles = [run.as_json() | (_speed(run) if with_speed else {}) for run in runs]
    if len(runs) == 1:
        return singles[0]
    found = {name: value for name, value in _mean(singles).items() if name != "seed"}
    found["policy"] = runs[0].policy
    found["seeds"] = [run.seed for run in runs]
    found["is_complete"] = all(run.is_complete for run in runs)
    found["half_width"] = {
        measure.name: known.half_width
        for measure in listed_measures(runs)
        if (known := measure.of(runs)) is not None
    }
    found["runs"] = singles
    return found


def _speed(run: PolicyResult) -> dict[str, Any]:
    return {"took_s": run.took_s, "events_per_s": run.events_per_s}


def _mean(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The numbers that all have, as means; lists, of users say, may differ from seed to seed and are left out."""
    found: dict[str, Any] = {}
    for name in documents[0]:
        values = [document.get(name) for document in documents]
        if all(isinstance(value, dict) for value in values):
            found[name] = _mean([value for value in values if isinstance(value, dict)])
        elif all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            found[name] = sum(value for value in values if isinstance(value, int | float)) / len(values)
        elif name in {"jain", "below_fraction"}:
            found[name] = None
    return found


def _compare(
    policy: str, runs: Sequence[PolicyResult], against: str, first: Sequence[PolicyResult]
) -> dict[str, Any]:
    changes = changes_by_user(runs, first)
    ratio = completion_ratio(runs, first)
    return {
        "policy": policy,
        "against": against,
        "completion_ratio": None if ratio is None else asdict(ratio),
        "jobs_by_size": [asdict(each) for each in reductions_by_size(runs, first)],
        "users_better_off": sum(change.reduction > NOTICEABLE for change in changes),
        "users_worse_off": sum(change.reduction < -NOTICEABLE for change in changes),
        "users": [asdict(change) for change in changes],
    }
