# ruff: noqa: N802 - the schema names the handlers
"""A master of canned answers on real gRPC, to hold the command line against: it records what it is asked."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from fairlead_proto.v1 import files_pb2, files_pb2_grpc, operator_pb2, operator_pb2_grpc, types_pb2

GIB = 2**30


def a_task(task_id: str, **fields: Any) -> operator_pb2.TaskInfo:
    defaults: dict[str, Any] = {
        "task_id": task_id,
        "name": f"name of {task_id}",
        "framework_id": "fw-1",
        "framework": "sweep",
        "role": "eng/ml",
        "agent_id": "agent-1",
        "state": "RUNNING",
        "resources": types_pb2.Resources(cpus_milli=1500, mem_bytes=GIB, gpus_milli=500),
        "submitted_ms": 1_000,
        "started_ms": 2_000,
    }
    return operator_pb2.TaskInfo(**{**defaults, **fields})


def an_agent(agent_id: str = "agent-1") -> operator_pb2.AgentInfo:
    return operator_pb2.AgentInfo(
        agent_id=agent_id,
        hostname="host-1",
        state="ACTIVE",
        attributes={"rack": "a", "disk": "ssd"},
        total=types_pb2.Resources(cpus_milli=4000, mem_bytes=8 * GIB, custom_milli={"licenses": 2000}),
        allocated=types_pb2.Resources(cpus_milli=2500, mem_bytes=2 * GIB),
        used=types_pb2.Resources(cpus_milli=100, mem_bytes=GIB // 2),
        tasks=2,
        isolation="none",
    )


class CannedMaster(
    operator_pb2_grpc.OperatorServiceServicer,
    files_pb2_grpc.FilesServiceServicer,
    health_pb2_grpc.HealthServicer,  # type: ignore[misc]  # untyped
):
    """Serves what its attributes say; ``refusal`` makes every call fail with that code and text."""

    def __init__(self) -> None:
        self.tasks = [a_task("t-1"), a_task("t-2", state="PENDING", agent_id="", started_ms=0)]
        self.agents = [an_agent()]
        self.classes: list[operator_pb2.ClassInfo] = []
        self.time_ms = 10_000
        self.page_size = 1000
        self.prices: dict[str, float] = {}
        self.bottlenecks: list[str] = []
        self.refusal: tuple[grpc.StatusCode, str] | None = None
        self.requests: list[Any] = []
        self.outputs: dict[str, bytes] = {"stdout": b"one\ntwo\nthree\n", "stderr": b"oops\n"}
        self.policy = operator_pb2.PolicyInfo(
            policy="drf",
            placement="align",
            when_head_does_not_fit="skip",
            known_policies=["drf", "fifo", "slots:K"],
            known_placements=["align", "pack", "spread"],
        )
        self.health = health_pb2.HealthCheckResponse.SERVING
        self.version = 7
        self._changed = threading.Condition()

    def change(self) -> None:
        """Let watchers see one more change."""
        with self._changed:
            self.version += 1
            self._changed.notify_all()

    def _note(self, request: Any, context: grpc.ServicerContext) -> None:
        self.requests.append(request)
        if self.refusal is not None:
            context.abort(*self.refusal)

    def _page(self, items: list[Any], request: Any) -> tuple[list[Any], str]:
        begin = int(request.page_token or 0)
        end = begin + self.page_size
        return items[begin:end], str(end) if end < len(items) else ""

    def ListTasks(self, request: Any, context: grpc.ServicerContext) -> operator_pb2.ListTasksResponse:
        self._note(request, context)
        wanted = [
            task
            for task in self.tasks
            if (not request.states or task.state in request.states)
            and request.framework_id in ("", task.framework_id)
            and (not request.task_ids or task.task_id in request.task_ids)
        ]
        page, token = self._page(wanted, request)
        return operator_pb2.ListTasksResponse(tasks=page, next_page_token=token, version=self.version)

    def ListAgents(self, request: Any, context: grpc.ServicerContext) -> operator_pb2.ListAgentsResponse:
        self._note(request, context)
        page, token = self._page(self.agents, request)
        return operator_pb2.ListAgentsResponse(agents=page, next_page_token=token, version=self.version)

    def ListFrameworks(
        self, request: Any, context: grpc.ServicerContext
    ) -> operator_pb2.ListFrameworksResponse:
        self._note(request, context)
        framework = operator_pb2.FrameworkInfo(
            framework_id="fw-1",
            name="sweep",
            role="eng/ml",
            state="CONNECTED",
            pending=3,
            running=2,
            finished=9,
        )
        return operator_pb2.ListFrameworksResponse(frameworks=[framework], version=self.version)

    def ListRoles(self, request: Any, context: grpc.ServicerContext) -> operator_pb2.ListRolesResponse:
        self._note(request, context)
        role = operator_pb2.RoleInfo(
            role="eng/ml",
            weight=2,
            resource_weights={"cpus": 3.0},
            dominant_share=0.625,
            dominant_resource="cpus",
            key=0.3125,
            fair_share=0.5,
            pending=3,
            running=2,
            frameworks=1,
            allocated=types_pb2.Resources(cpus_milli=2500),
            rank=1,
        )
        idle = operator_pb2.RoleInfo(role="idle", weight=1, key=float("inf"))
        return operator_pb2.ListRolesResponse(
            roles=[role, idle],
            version=self.version,
            prices=self.prices,
            price_error=3e-7 if self.prices else 0,
            policy=self.policy.policy,
            bottlenecks=self.bottlenecks,
        )

    def ListOffers(self, request: Any, context: grpc.ServicerContext) -> operator_pb2.ListOffersResponse:
        self._note(request, context)
        offer = operator_pb2.OfferInfo(
            offer_id="o-1",
            framework_id="fw-1",
            framework="sweep",
            agent_id="agent-1",
            class_id="c-1",
            units=2,
            resources=types_pb2.Resources(cpus_milli=2000),
            expires_in_ms=4000,
        )
        return operator_pb2.ListOffersResponse(offers=[offer], version=self.version)

    def ListClasses(self, request: Any, context: grpc.ServicerContext) -> operator_pb2.ListClassesResponse:
        self._note(request, context)
        page, token = self._page(self.classes, request)
        return operator_pb2.ListClassesResponse(classes=page, next_page_token=token, version=self.version)

    def GetCluster(self, request: Any, context: grpc.ServicerContext) -> operator_pb2.Cluster:
        self._note(request, context)
        return operator_pb2.Cluster(master_time_ms=self.time_ms)

    def Watch(self, request: Any, context: grpc.ServicerContext) -> Iterator[operator_pb2.Changes]:
        self._note(request, context)
        told = request.from_version
        while context.is_active():
            with self._changed:
                if self.version <= told:
                    self._changed.wait(0.05)
            if self.version > told:
                told = self.version
                change = operator_pb2.Change(kind="task", id="fw-1/t-1", what="FINISHED")
                yield operator_pb2.Changes(version=told, changes=[change])

    def KillTasks(self, request: Any, context: grpc.ServicerContext) -> operator_pb2.KillTasksResponse:
        self._note(request, context)
        known = {task.task_id for task in self.tasks}
        items = [
            operator_pb2.KillTasksResponse.Item(
                task_id=task_id, framework_id="fw-1", outcome="killing" if task_id in known else "unknown"
            )
            for task_id in request.task_ids
        ]
        return operator_pb2.KillTasksResponse(items=items)

    def TeardownFramework(
        self, request: Any, context: grpc.ServicerContext
    ) -> operator_pb2.TeardownFrameworkResponse:
        self._note(request, context)
        return operator_pb2.TeardownFrameworkResponse(tasks_killed=2)

    def Explain(self, request: Any, context: grpc.ServicerContext) -> operator_pb2.Explanation:
        self._note(request, context)
        return operator_pb2.Explanation(
            id=request.id,
            kind="task",
            reason=operator_pb2.WAIT_REASON_FULL,
            sentence="it needs 4 cpus and 1.5 are free in all",
            evidence={"cpus wanted": "4", "cpus free": "1.5"},
            next_steps=["wait for a task to end", "add an agent"],
            epoch=3,
            version=7,
        )

    def GetPolicy(self, request: Any, context: grpc.ServicerContext) -> operator_pb2.PolicyInfo:
        self._note(request, context)
        return self.policy

    def SetPolicy(self, request: Any, context: grpc.ServicerContext) -> operator_pb2.PolicyInfo:
        self._note(request, context)
        self.policy.policy = request.policy or self.policy.policy
        return self.policy

    def SetWeight(self, request: Any, context: grpc.ServicerContext) -> operator_pb2.SetWeightResponse:
        self._note(request, context)
        return operator_pb2.SetWeightResponse()

    def AllocationLog(
        self, request: Any, context: grpc.ServicerContext
    ) -> operator_pb2.AllocationLogResponse:
        self._note(request, context)
        decision = operator_pb2.Decision(
            number=5,
            role="eng/ml",
            framework_id="fw-1",
            agent_id="agent-1",
            units=1,
            key_before=0.1,
            key_after=0.2,
        )
        return operator_pb2.AllocationLogResponse(decisions=[decision])

    def Read(self, request: Any, context: grpc.ServicerContext) -> files_pb2.ReadResponse:
        self._note(request, context)
        text = self.outputs[request.path]
        offset = max(0, len(text) + request.offset) if request.offset < 0 else min(request.offset, len(text))
        data = text[offset : offset + (request.length or 65536)]
        is_whole = offset + len(data) == len(text)
        return files_pb2.ReadResponse(offset=offset, data=data, size=len(text), complete=is_whole)

    def Check(self, request: Any, context: grpc.ServicerContext) -> Any:
        self._note(request, context)
        return health_pb2.HealthCheckResponse(status=self.health)


class ServedMaster:
    """A canned master that listens on loopback for as long as the context."""

    def __init__(self) -> None:
        self.master = CannedMaster()
        self._server = grpc.server(ThreadPoolExecutor(max_workers=8))
        operator_pb2_grpc.add_OperatorServiceServicer_to_server(self.master, self._server)
        files_pb2_grpc.add_FilesServiceServicer_to_server(self.master, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self.master, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.stop(grace=0).wait()
