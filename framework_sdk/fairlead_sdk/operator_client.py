"""A thin client for operators and command lines: listings, watching, orders, logs.

Listings come as the messages of ``operator.proto``: records to be shown, documented there, and nothing is decided from them.
"""

import os

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import grpc

from fairlead_proto.backoff import Backoff
from fairlead_proto.v1 import operator_pb2, operator_pb2_grpc
from fairlead_sdk import sandbox_files
from fairlead_sdk.address import resolve_master
from fairlead_sdk.clock import sleep
from fairlead_sdk.errors import LinkBroken, MasterUnreachable
from fairlead_sdk.grpc_transport import CHANNEL_OPTIONS, GrpcTransport, read_rpc_error

_Response = TypeVar("_Response")

DEADLINE_S: Final = 5.0
"""A master answers a page in milliseconds; a person at a prompt gives up at about this time."""


IDS_PER_REQUEST: Final = 1_000
"""A master takes requests of 256 KiB, and ids of 200 bytes."""


class OperatorClient:
    """A connection to the master's operator and files services. Use it as an async context manager.

    Every method raises ``MasterUnreachable`` if no master answers within the deadline, and ``Refused`` if it says no:
    its ``code`` is ``UNKNOWN`` for an id that is not known, ``INVALID`` for a bad argument, ``UNAUTHORIZED``, ``LIMIT``.

    Args:
        master: HOST:PORT; None is ``FAIRLEAD_MASTER``, then 127.0.0.1:5050.
        deadline: seconds one request may take.
    """

    def __init__(self, master: str | None = None, *, deadline: float = DEADLINE_S) -> None:
        self.address = resolve_master(master)
        self._deadline = deadline
        self._transport = GrpcTransport(self.address)
        self._channel: grpc.aio.Channel | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let the connection go; a second call does nothing."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()
        await self._transport.close()

    # --- listings ------------------------------------------------------------------------------------------------

    async def cluster(self) -> operator_pb2.Cluster:
        """The master and its cluster in numbers."""
        return await self._ask("GetCluster", operator_pb2.GetClusterRequest(), operator_pb2.Cluster)

    async def tasks(
        self, *, states: Iterable[str] = (), framework_id: str = "", task_ids: Iterable[str] = ()
    ) -> AsyncIterator[operator_pb2.TaskInfo]:
        """Tasks in id order, page by page; ``states`` are names, ``PENDING`` among them. Those asked for by id come as asked."""
        for ids in _in_requests(task_ids) or [[]]:
            request = operator_pb2.ListTasksRequest(states=states, framework_id=framework_id, task_ids=ids)
            async for task in self._rows("ListTasks", request, operator_pb2.ListTasksResponse):
                yield task

    def agents(self) -> AsyncIterator[operator_pb2.AgentInfo]:
        """Agents in id order."""
        return self._rows("ListAgents", operator_pb2.ListRequest(), operator_pb2.ListAgentsResponse)

    def frameworks(self) -> AsyncIterator[operator_pb2.FrameworkInfo]:
        """Frameworks in id order."""
        return self._rows("ListFrameworks", operator_pb2.ListRequest(), operator_pb2.ListFrameworksResponse)

    def roles(self) -> AsyncIterator[operator_pb2.RoleInfo]:
        """Roles in id order, with their shares."""
        return self._rows("ListRoles", operator_pb2.ListRequest(), operator_pb2.ListRolesResponse)

    async def prices(self) -> dict[str, float]:
        """What the whole of each resource costs under ``pf`` and its kin, in units of weight; empty without prices."""
        request = operator_pb2.ListRequest(page_size=1)
        return dict((await self._ask("ListRoles", request, operator_pb2.ListRolesResponse)).prices)

    def offers(self) -> AsyncIterator[operator_pb2.OfferInfo]:
        """Outstanding offers in id order."""
        return self._rows("ListOffers", operator_pb2.ListRequest(), operator_pb2.ListOffersResponse)

    def classes(self) -> AsyncIterator[operator_pb2.ClassInfo]:
        """Demand classes, by framework and class id: what frameworks want."""
        return self._rows("ListClasses", operator_pb2.ListRequest(), operator_pb2.ListClassesResponse)

    async def watch(
        self, *, kinds: Iterable[str] = (), from_version: int = 0, rows: bool = False
    ) -> AsyncIterator[operator_pb2.Changes]:
        """What changes from now on, or after a version; for ever, over restarts of the master.

        With ``rows``, in place of changes: the rows of all agents, frameworks, tasks that run, and roles, and then those that
        changed. A ``Changes`` with ``resync`` set comes before all of them: forget the rows there are.

        A ``Changes`` with ``resync`` set means that some were missed: list again. One is made here when the stream
        broke, because the next master may not have the changes in between.

        Raises:
            MasterUnreachable: no master there to begin with. A master that goes away later is waited for.
        """
        clock, backoff = self._transport.clock, Backoff(self._transport.jitter)
        version, was_there = from_version, False
        while True:
            request = operator_pb2.WatchRequest(from_version=version, kinds=kinds, rows=rows)
            try:
                async for changes in self._stub().Watch(request):
                    was_there, version = True, changes.version
                    backoff.reset()
                    yield changes
                reason = "the master ended the stream"
            except grpc.aio.AioRpcError as error:
                trouble = read_rpc_error(error)
                if not isinstance(trouble, LinkBroken):
                    raise trouble from None
                reason = str(trouble)
            if not was_there:
                raise MasterUnreachable(self.address, reason)
            await sleep(clock, backoff.next_ms())
            version = 0
            yield operator_pb2.Changes(resync=True)

    # --- orders --------------------------------------------------------------------------------------------------

    async def kill_tasks(
        self, task_ids: Iterable[str], *, framework_id: str = "", grace_period_ms: int = 0
    ) -> list[operator_pb2.KillTasksResponse.Item]:
        """End tasks; one outcome an id, in order."""
        outcomes: list[operator_pb2.KillTasksResponse.Item] = []
        for ids in _in_requests(task_ids):
            request = operator_pb2.KillTasksRequest(
                task_ids=ids, framework_id=framework_id, grace_period_ms=grace_period_ms
            )
            outcomes += (await self._ask("KillTasks", request, operator_pb2.KillTasksResponse)).items
        return outcomes

    async def teardown_framework(self, framework_id: str) -> int:
        """End a framework for good; returns how many tasks were asked to end."""
        request = operator_pb2.TeardownFrameworkRequest(framework_id=framework_id)
        return int(
            (
                await self._ask("TeardownFramework", request, operator_pb2.TeardownFrameworkResponse)
            ).tasks_killed
        )

    async def explain(self, id: str) -> operator_pb2.Explanation:
        """Why a task, a class (``framework/class``) or a framework waits."""
        return await self._ask("Explain", operator_pb2.ExplainRequest(id=id), operator_pb2.Explanation)

    async def policy(self) -> operator_pb2.PolicyInfo:
        """The policy and placement in force, and those there are."""
        return await self._ask("GetPolicy", operator_pb2.GetPolicyRequest(), operator_pb2.PolicyInfo)

    async def set_policy(
        self, policy: str = "", *, placement: str = "", when_head_does_not_fit: str = "", demand: str = ""
    ) -> operator_pb2.PolicyInfo:
        """Change what is not empty; returns what is in force then."""
        request = operator_pb2.SetPolicyRequest(
            policy=policy, placement=placement, when_head_does_not_fit=when_head_does_not_fit, demand=demand
        )
        return await self._ask("SetPolicy", request, operator_pb2.PolicyInfo)

    async def set_weight(
        self, role: str, weight: float, *, resource_weights: Mapping[str, float] | None = None
    ) -> None:
        """Give a role a weight, and others for some resources."""
        request = operator_pb2.SetWeightRequest(
            role=role, weight=weight, resource_weights=resource_weights or {}
        )
        await self._ask("SetWeight", request, operator_pb2.SetWeightResponse)

    async def allocation_log(self, limit: int = 0) -> list[operator_pb2.Decision]:
        """The last decisions of the allocator, newest first; 0 is the master's 100."""
        response = await self._ask(
            "AllocationLog",
            operator_pb2.AllocationLogRequest(limit=limit),
            operator_pb2.AllocationLogResponse,
        )
        return list(response.decisions)

    # --- sandboxes -----------------------------------------------------------------------------------------------

    async def read_log(
        self, task_id: str, *, path: str = "stdout", framework_id: str = "", tail_bytes: int = 0
    ) -> bytes:
        """What is in a file of a task's sandbox now; with ``tail_bytes`` at most its end."""
        file = sandbox_files.SandboxFile(framework_id=framework_id, task_id=task_id, path=path)
        return await sandbox_files.read_whole(
            self._transport.read_file, file, address=self.address, tail_bytes=tail_bytes
        )

    async def follow(
        self, task_id: str, *, path: str = "stdout", framework_id: str = "", offset: int = 0
    ) -> AsyncIterator[bytes]:
        """A file's bytes as they are written, until the task is over; a master that goes away is waited for.

        A negative ``offset`` begins that many bytes before the end.

        Raises:
            MasterUnreachable: no master there to begin with.
        """
        await self.cluster()
        file = sandbox_files.SandboxFile(framework_id=framework_id, task_id=task_id, path=path)
        async for piece in sandbox_files.follow(
            self._transport.read_file,
            file,
            offset=offset,
            clock=self._transport.clock,
            jitter=self._transport.jitter,
        ):
            yield piece

    # --- inside --------------------------------------------------------------------------------------------------

    def _stub(self) -> Any:
        if self._channel is None:
            self._channel = grpc.aio.insecure_channel(self.address, options=CHANNEL_OPTIONS)
        return operator_pb2_grpc.OperatorServiceStub(self._channel)

    async def _ask(self, rpc: str, request: Any, kind: type[_Response]) -> _Response:
        method: Callable[..., Any] = getattr(self._stub(), rpc)
        try:
            response = await method(request, timeout=self._deadline)
        except grpc.aio.AioRpcError as error:
            trouble = read_rpc_error(error)
            if isinstance(trouble, LinkBroken):
                raise MasterUnreachable(self.address, str(trouble)) from None
            raise trouble from None
        assert isinstance(response, kind), f"{rpc} was answered by {type(response).__name__}"
        return response

    async def _rows(self, rpc: str, request: Any, kind: type[Any]) -> AsyncIterator[Any]:
        """The rows of a listing, asked for page by page; a page has them in a field of the listing's name."""
        while True:
            page = await self._ask(rpc, request, kind)
            for row in getattr(page, rpc.removeprefix("List").lower()):
                yield row
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token


def _in_requests(task_ids: Iterable[str]) -> list[list[str]]:
    ids = list(task_ids)
    return [ids[start : start + IDS_PER_REQUEST] for start in range(0, len(ids), IDS_PER_REQUEST)]
