"""Ways through the levels that roles and frameworks are ranked in: up from a framework, and all from below."""

from collections.abc import Iterator

from fairlead_master.allocation.accounts import Framework, Level, RoleAccount
from fairlead_master.allocation.api import Policy


def policy_of(level: Level) -> Policy:
    """The policy of a level that has one."""
    assert level.policy is not None, f"the members of {level.name} are not ranked"
    return level.policy


def level_above(level: Level) -> Level:
    """The level of which this one is an account; the topmost has none."""
    assert level.above is not None, "nothing is above the topmost level"
    return level.above


def level_below(account: RoleAccount) -> Level:
    """The level that ranks the roles below a role that has some."""
    assert account.below is not None, f"no role is below {account.role}"
    return account.below


def name_of(member: Level | Framework) -> str:
    """What the policy of its level knows a member by."""
    return member.name if isinstance(member, Level) else member.framework_id


def is_ranked(level: Level) -> bool:
    """Whether a level other than the topmost needs a ranking: a single framework does not."""
    return len(level.members) > 1 or any(isinstance(member, Level) for member in level.members.values())


def path(level: Level) -> Iterator[Level]:
    """The level and those above it but the topmost."""
    while level.above is not None:
        yield level
        level = level.above


def ranked_above(framework: Framework) -> Iterator[tuple[str, Level]]:
    """The levels that rank the framework or what it is part of, upwards, each with the name it is ranked by."""
    name: str = framework.framework_id
    level: Level | None = framework.role.own
    while level is not None:
        if level.policy is not None:
            yield name, level
        name, level = level.name, level.above


def from_below(level: Level) -> Iterator[Level]:
    """The level and all below it, each after those below it."""
    for member in level.members.values():
        if isinstance(member, Level):
            yield from from_below(member)
    yield level
