"""What is asked of a snapshot: other policies, more hosts, hosts that take nothing new."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from fairlead_lab.whatif.snapshot import Host, Snapshot
from fairlead_master.allocation.api import AllocationSettings
from fairlead_sim.node import Node

AS_IT_IS: Final = "as it is"
"""Name of the case in which nothing is changed."""


class QuestionError(ValueError):
    """A question that cannot be asked of this cluster; the message says what was expected and what came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The changes to look at, all of them together, under each of the policies."""

    policies: Sequence[str] = ()
    """As an operator writes them; none: the one in force."""
    added: Sequence[Node] = ()
    """Hosts that come; their names need not be new, they get others."""
    drained: Sequence[str] = ()
    """Agents by id or host name: what they run ends there, and nothing new is started."""
    horizon_ms: int | None = None
    """How far to look; None: until all that is there now is done."""
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One cluster to simulate."""

    name: str
    """For people: what is different."""
    settings: AllocationSettings
    hosts: Sequence[Host]


def cases(snapshot: Snapshot, question: Question) -> list[Case]:
    """The cases a question comes to: first nothing changed, then the changes under each policy.

    Raises:
        QuestionError: an agent that is not there, or not one agent; or nothing is left that takes work.
    """
    if not any(host.takes_work for host in snapshot.hosts) and not question.added:
        raise QuestionError("cluster: expected at least one agent that takes work, got none")
    found = [Case(name=AS_IT_IS, settings=snapshot.settings, hosts=snapshot.hosts)]
    hosts = _changed_hosts(snapshot.hosts, question)
    changes = _in_words(question)
    for policy in dict.fromkeys(question.policies or (snapshot.settings.policy,)):
        is_other = policy != snapshot.settings.policy
        if is_other or changes:
            settings = replace(snapshot.settings, policy=policy)
            name = ", ".join([policy, *changes] if is_other or not changes else changes)
            found.append(Case(name=name, settings=settings, hosts=hosts))
    return found


def _changed_hosts(hosts: Sequence[Host], question: Question) -> list[Host]:
    drained = {_find(hosts, wanted).agent_id for wanted in question.drained}
    changed = [replace(host, takes_work=False) if host.agent_id in drained else host for host in hosts]
    taken = {host.agent_id for host in hosts}
    number = 0
    for node in question.added:
        number += 1
        while f"added-{number}" in taken:
            number += 1
        name = f"added-{number}"
        changed.append(
            Host(
                agent_id=name,
                hostname=node.attributes.get("hostname", name),
                # Words describe the standard resources; a cluster's own kinds are none on a new host.
                total=node.total + (0,) * (len(hosts[0].total) - len(node.total) if hosts else 0),
                attributes={key: value for key, value in node.attributes.items() if key != "hostname"},
            )
        )
    if not any(host.takes_work for host in changed):
        raise QuestionError("drain: expected an agent that is left to take work, got none")
    return changed


def _find(hosts: Sequence[Host], wanted: str) -> Host:
    found = [host for host in hosts if wanted == host.agent_id] or [
        host for host in hosts if wanted == host.hostname
    ]
    if len(found) != 1:
        known = ", ".join(f"{host.agent_id} ({host.hostname})" for host in (found or hosts)[:10])
        expected = "one agent's id" if found else "the id or host name of an agent"
        raise QuestionError(f"drain: expected {expected}, such as {known or 'none'}, got {wanted!r}")
    return found[0]


def _in_words(question: Question) -> list[str]:
    words = []
    if question.added:
        hosts = "host" if len(question.added) == 1 else "hosts"
        words.append(f"{len(question.added)} {hosts} more")
    words += [f"{name} drained" for name in dict.fromkeys(question.drained)]
    return words
