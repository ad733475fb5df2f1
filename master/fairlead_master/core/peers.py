"""What frameworks make the master keep, in total and by the host they connect from.

A host is known by its address, the one thing a peer cannot choose: names, roles and principals are what it says of itself.
Frameworks whose host nobody knows (from before the master's start, or in a simulation) count in the totals only.
"""

from dataclasses import dataclass, field

from fairlead_master.core import settings as bounds
from fairlead_proto.ids import FrameworkId


@dataclass(slots=True)
class _Kept:
    """For one host."""

    frameworks: int = 0
    demand_bytes: int = 0
    away: dict[FrameworkId, None] = field(default_factory=dict)
    """Disconnected frameworks, the one that left first first."""


class Peers:
    """Counts of frameworks, of those that are away, and of bytes of demands."""

    def __init__(self) -> None:
        self.demand_bytes = 0
        """Of all demands."""
        self._kept: dict[str, _Kept] = {}

    def admit(self, peer: str) -> None:
        """One framework more of the host."""
        self._kept.setdefault(peer, _Kept()).frameworks += 1

    def dismiss(self, peer: str) -> None:
        """One framework less; it has no demand and is not away."""
        kept = self._kept[peer]
        kept.frameworks -= 1
        if kept.frameworks == 0:
            assert (kept.away, kept.demand_bytes) == ({}, 0), f"no framework of {peer!r} is left, but {kept}"
            del self._kept[peer]

    def leave(self, peer: str, framework_id: FrameworkId) -> None:
        """A framework of the host is away."""
        self._kept[peer].away[framework_id] = None

    def come_back(self, peer: str, framework_id: FrameworkId) -> None:
        """It is not away any more. Repeats are harmless."""
        self._kept[peer].away.pop(framework_id, None)

    def change_demand(self, peer: str, by_bytes: int) -> None:
        """Demands of the host take so much more memory, or less."""
        self.demand_bytes += by_bytes
        self._kept[peer].demand_bytes += by_bytes

    def counts(self) -> dict[str, tuple[int, int, list[FrameworkId]]]:
        """By host, its frameworks, the bytes of their demands and those that are away, for the check of the books."""
        return {
            peer: (kept.frameworks, kept.demand_bytes, sorted(kept.away)) for peer, kept in self._kept.items()
        }

    def frameworks_refusal(self, peer: str) -> str | None:
        """Why the host may not have one framework more; None if it may."""
        kept = self._kept.get(peer)
        if not peer or kept is None or kept.frameworks < bounds.FRAMEWORKS_PER_PEER_MAX:
            return None
        return (
            f"frameworks: expected at most {bounds.FRAMEWORKS_PER_PEER_MAX} from one host, got another from {peer}: "
            "tear down those that are over"
        )

    def demand_refusal(self, peer: str, by_bytes: int) -> str | None:
        """Why demands of the host may not take so much more; None if they may. They may always take less."""
        if by_bytes <= 0:
            return None
        total, own = self.demand_bytes + by_bytes, self._kept[peer].demand_bytes + by_bytes
        if total > bounds.DEMANDS_BYTES_MAX:
            whose, most, got = "of all frameworks", bounds.DEMANDS_BYTES_MAX, total
        elif peer and own > bounds.DEMANDS_BYTES_PER_PEER_MAX:
            whose, most, got = f"from {peer}", bounds.DEMANDS_BYTES_PER_PEER_MAX, own
        else:
            return None
        return (
            f"set_demand: expected at most {most} bytes for the demands {whose}, got {got} with this one: "
            "want fewer classes, or fewer values in their constraints"
        )

    def away_too_many(self, peer: str, total: int) -> list[FrameworkId]:
        """Frameworks of which one is to be ended, longest away first, now that ``total`` are away, one of them of the host.

        If all hosts together keep too many, the host that keeps most has to give one up.
        """
        if peer and len(self._kept[peer].away) > bounds.FRAMEWORKS_AWAY_PER_PEER_MAX:
            return list(self._kept[peer].away)
        if total > bounds.FRAMEWORKS_AWAY_MAX:
            # Ties go to the host that was seen first.
            return list(max(self._kept.values(), key=lambda kept: len(kept.away)).away)
        return []
