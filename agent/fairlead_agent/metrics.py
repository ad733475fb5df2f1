"""What an agent shows Prometheus, from its state. Labels are bounded: states, reasons, resources; never a task's id."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import fairlead_agent
from fairlead_agent.core.machine import AgentMachine
from fairlead_agent.core.state import AgentSettings
from fairlead_proto.peers import Unknowns
from fairlead_telemetry.metrics import (
    Family,
    LoopDelay,
    MetricsServer,
    counter,
    counters,
    gauge,
    gauges,
    resources,
    telemetry_families,
)
from fairlead_telemetry.payloads import amounts_of

if TYPE_CHECKING:
    # Imports the MQTT library, which is another extra.
    from fairlead_agent.telemetry import AgentTelemetry


class AgentMetrics:
    """One agent's metrics."""

    def __init__(
        self,
        address: str,
        machine: AgentMachine,
        settings: AgentSettings,
        sessions_ended: Callable[[], int],
        unknowns: Unknowns,
        telemetry: "AgentTelemetry | None",
    ) -> None:
        """Begin to serve.

        Args:
            address: HOST:PORT.
            machine: whose state is shown.
            settings: what the agent offers.
            sessions_ended: how many sessions with a master have ended.
            unknowns: what newer masters said that is not known here.
            telemetry: what became of messages to a broker; None without one.

        Raises:
            InvalidMetricsAddress: it cannot be listened on.
        """
        self._machine = machine
        self._settings = settings
        self._sessions_ended = sessions_ended
        self._unknowns = unknowns
        self._telemetry = telemetry
        self._server = MetricsServer(address, self._collect)
        self.port = self._server.port
        self._delay = LoopDelay(
            self._server.histogram(
                "fairlead_agent_loop_delay_seconds", "How late the event loop serves a timer."
            )
        )

    def close(self) -> None:
        """Stop serving; blocks for at most half a second."""
        self._delay.stop()
        self._server.close()

    async def _collect(self) -> list[Family]:
        return list(self._families())

    def _families(self) -> Iterator[Family]:
        state, settings = self._machine.state, self._settings
        labels = (state.agent_id, settings.hostname, state.isolation, fairlead_agent.__version__)
        yield Family(
            "gauge",
            "fairlead_agent_info",
            "What runs; always 1.",
            ("agent_id", "hostname", "isolation", "version"),
            ((labels, 1.0),),
        )
        yield gauge("fairlead_agent_registered", "Whether a master counts on it.", state.is_registered)
        yield counter(
            "fairlead_agent_sessions_ended", "Sessions with a master that ended.", self._sessions_ended()
        )
        yield counters(
            "fairlead_agent_unknown",
            "Messages and values of newer masters that this version does not know, by what they are.",
            "what",
            self._unknowns.counts.copy(),
        )
        yield gauges(
            "fairlead_agent_tasks",
            "Tasks that are not over, by state.",
            "state",
            Counter(task.state.value for task in state.live.values()),
        )
        yield Family(
            "counter",
            "fairlead_agent_statuses",
            "Statuses by state and reason: OUT_OF_MEMORY, EXECUTOR_FAILED and their like are faults.",
            ("state", "reason"),
            tuple(((key[0].value, key[1].value), float(count)) for key, count in state.tallies.items()),
        )
        yield gauge(
            "fairlead_agent_statuses_unacknowledged",
            "Statuses that the master has not acknowledged.",
            sum(map(len, state.outboxes.values())),
        )
        yield gauge(
            "fairlead_agent_executor_connected", "Whether the executor is there.", state.is_executor_connected
        )
        yield counter(
            "fairlead_agent_executors_lost", "Executors that died or were given up.", state.executors_lost
        )
        yield gauge("fairlead_agent_sandboxes", "Sandboxes of tasks that are over.", len(state.sandboxes))
        yield gauge(
            "fairlead_agent_sandbox_bytes", "What they hold, as far as measured.", state.sandbox_bytes
        )
        yield from self._amounts()
        if self._telemetry is not None and self._telemetry.link is not None:
            yield from telemetry_families(self._telemetry.link.counters)

    def _amounts(self) -> Iterator[Family]:
        state, settings = self._machine.state, self._settings
        used = Counter[str]()
        for task in state.live.values():
            if task.usage is not None:
                used["mem"] += task.usage.mem_bytes
                used["disk"] += task.usage.sandbox_bytes
        yield resources(
            "fairlead_agent_resource_capacity", "What it offers.", amounts_of(settings.kinds, settings.total)
        )
        yield resources(
            "fairlead_agent_resource_used",
            "What its tasks were last measured to use.",
            {"cpus": state.used_cpus_milli / 1000, "mem": used["mem"], "disk": used["disk"]},
        )
