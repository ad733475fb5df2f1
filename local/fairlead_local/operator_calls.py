"""What a local cluster asks of its own master."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import grpc

from fairlead_proto.v1.operator_pb2 import ListRequest, TeardownFrameworkRequest
from fairlead_proto.v1.operator_pb2_grpc import OperatorServiceStub
from fairlead_sdk.grpc_transport import CHANNEL_OPTIONS

ANSWER_TIMEOUT_S: Final = 10.0
"""For one answer: a master gives it in milliseconds, unless its host swaps."""

PAGE_SIZE: Final = 5_000
"""The most a master lists at once, and more agents and frameworks than a local cluster has."""


@contextmanager
def operator_at(address: str) -> Iterator[OperatorServiceStub]:
    """The operator service of a master, for as long as the context."""
    with grpc.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
        yield OperatorServiceStub(channel)


def isolations(operator: OperatorServiceStub) -> list[str]:
    """What holds tasks to their limits, of each active agent; empty if nobody answers."""
    with suppress(grpc.RpcError):
        agents = operator.ListAgents(ListRequest(page_size=PAGE_SIZE), timeout=ANSWER_TIMEOUT_S).agents
        return [agent.isolation for agent in agents if agent.state == "ACTIVE"]
    return []


def end_frameworks(operator: OperatorServiceStub, timeout_s: float) -> None:
    """End all frameworks with their tasks, as far as the time allows; of a master that does not answer none."""
    deadline_s = time.monotonic() + timeout_s

    def remaining_s() -> float:
        return max(0.0, deadline_s - time.monotonic())

    with suppress(grpc.RpcError):
        for framework in operator.ListFrameworks(
            ListRequest(page_size=PAGE_SIZE), timeout=remaining_s()
        ).frameworks:
            if framework.state != "COMPLETED":
                with suppress(grpc.RpcError):  # it has ended meanwhile
                    request = TeardownFrameworkRequest(
                        framework_id=framework.framework_id, detail="the cluster was stopped"
                    )
                    operator.TeardownFramework(request, timeout=remaining_s())
