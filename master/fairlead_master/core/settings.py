"""The numbers that shape the master's behaviour, each with its reason; operators may set most of them."""

from dataclasses import dataclass, field
from typing import Final

from fairlead_master.allocation.api import AllocationSettings

FINISHED_TASKS_KEPT: Final = 10_000
"""Finished tasks kept for listings, explain and repeated calls: about 10 MB. More belongs in a log, not in a master."""

COMPLETED_FRAMEWORKS_KEPT: Final = 1_000
ENDED_OFFERS_KEPT: Final = 20_000
"""Ids of offers that ended, so that a late accept is told what became of its offer: a few seconds at full speed."""

CHANGES_KEPT: Final = 50_000
"""Changes a watcher may lag behind before it is told to list again: some seconds at full speed."""

FRAMEWORKS_MAX: Final = 100_000
FRAMEWORKS_PER_PEER_MAX: Final = 10_000
"""Frameworks of one host, connected or away: more than anybody runs from a host, and a tenth of all there may be."""

FRAMEWORKS_AWAY_MAX: Final = 10_000
FRAMEWORKS_AWAY_PER_PEER_MAX: Final = 1_000
"""Disconnected frameworks of one host that are kept; beyond that one without tasks is ended for each that leaves. It loses
its id and nothing else. Those with tasks are kept: their number is bounded by what the tasks hold."""

DEMANDS_BYTES_MAX: Final = 2 * 2**30
"""Memory for the demands of all frameworks, as ``framework_wire`` estimates it: some 130,000 classes."""

DEMANDS_BYTES_PER_PEER_MAX: Final = DEMANDS_BYTES_MAX // 4
"""For those of one host: 32,000 classes, and three hosts cannot use up what there is."""

BUSY_GRANTS: Final = 25
"""Units granted within 100 ms, but for the first of each cycle, that make a cluster busy: some 500 a second while cycles are as far
apart as in a calm one, and some 300 after that. Whoever waits for one task after another has none."""

AGENTS_ASKED_MAX: Final = 100_000
"""Looks at columns of agents, to refuse what none could ever hold, for one demand: some 10 ms. Of a thousand classes and as many
agents each is asked for the first classes at least. What is not known by then is taken at its word, and waits."""

DETAIL_LENGTH_MAX: Final = 500
"""Of constraints that are repeated in a refusal: they may be a megabyte."""

IDS_PER_ANSWER_MAX: Final = 10
"""Ids named in an answer that says what is wrong with some."""

TASKS_PER_STEP_MAX: Final = 500
"""Tasks that one step ends, or offers, because their time is over or their framework is: each takes 10 to 20 µs. The rest has
its turn with the next ticks."""

TASKS_BESIDE_CYCLE_MAX: Final = 100
"""After more than so many, the allocation cycle that is due has a tick of its own, since it takes up to 10 ms itself."""

OFFERS_ENDED_PER_STEP_MAX: Final = 250
"""Offers that one step ends because their leases are over, or because their framework or their agent left: each takes 20 to 40
µs, since its class is wanted again."""

UNKNOWN_STATUS_MESSAGE: Final = "no agent and no history knows this task"


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreSettings:
    """Times in milliseconds."""

    allocation: AllocationSettings = field(default_factory=AllocationSettings)
    allocation_window_ms: int = 4
    """Least time from one allocation cycle to the next. The first event after a quiet time is served at once; under load
    this many milliseconds of events share one cycle. Below 2 the cycles' fixed costs show, above 20 users feel it."""
    busy_window_ms: int = 16
    """The same once the cluster is busy: a message of one offer costs as much as one of twenty, and where hundreds of
    tasks end each second, nobody notices a hundredth of one."""
    quantum_cpus_milli: int = 100
    """With the memory below, what a framework that declares no demand is offered at a time: a tenth of a core, as the
    clients of bottleneck-based fairness are served a tenth of a second at a time. Smaller costs decisions (a core is
    ten of them); larger, and what is left of a host is no quantum any more."""
    quantum_mem_bytes: int = 256 * 2**20
    """A tenth of the 2 to 4 GiB that hosts have for each core."""
    offer_lease_ms: int = 5_000
    """An offer not answered by then is free again. A scheduler needs milliseconds; seconds forgive a garbage collection
    or a slow network, and bound what a crashed or hoarding framework can hold."""
    decline_ttl_ms: int = 5_000
    """Default of a decline without a time: what Mesos's frameworks found usable."""
    rejected_pause_ms: int = 1_000
    """How long a class is not offered after an accept of which something was rejected: the same offer would get the
    same answer, hundreds of times a second. It ends early as a decline does, by a SetDemand that lifts them."""
    unanswered_pause_max_ms: int = 300_000
    """Offers nobody answers twice in a row pause their class for their lease, then for twice that, up to this."""
    staging_timeout_ms: int = 30_000
    """From launch to the agent's first word on a task. Agents answer within milliseconds; a host busy swapping may take
    seconds; beyond that the launch is taken back."""
    heartbeat_interval_ms: int = 5_000
    agent_silence_ms: int = 20_000
    """Four heartbeats: then the session counts as broken even if the connection looks alive."""
    agent_doubt_ms: int = 3_000
    """The same for an agent that somebody else says is gone, and that was asked: a live one answers within milliseconds, on
    a busy host within a second."""
    agent_timeout_ms: int = 75_000
    """From a broken session to UNREACHABLE: long enough for an agent's upgrade or a reboot of its network (Mesos: 75 s)."""
    agent_forget_ms: int = 24 * 3600 * 1000
    """Unreachable for so long, an agent is GONE and its tasks with it."""
    failover_timeout_ms: int = 3600 * 1000
    """Default time for which tasks outlive their framework's session. Mesos's default of 0 killed everything at the
    first hiccup, which is what its users regretted most."""
    failover_timeout_max_ms: int = 7 * 24 * 3600 * 1000
    """The longest a framework may wish for; a longer wish is shortened, and its Welcome says so. A week spans a holiday;
    for as long a framework that never returns holds what its tasks hold."""
    recovery_wait_ms: int = 10_000
    """After a restart, how long offers are held back for agents known from before, so that what their tasks hold
    counts before anything is handed out. Agents reconnect within a second or two."""
    kill_retry_ms: int = 10_000
    """A kill that has no effect is sent again after this long; the agent escalates by itself, only messages get lost."""
