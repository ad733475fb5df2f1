"""OperatorService: listings in pages, changes as they happen, orders to the core. Long answers are made in parts."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any, Final, TypeVar

import grpc

from fairlead_master import views
from fairlead_master.allocation import placement
from fairlead_master.allocation.policies import names
from fairlead_master.allocation.weights import Weight
from fairlead_master.core import events
from fairlead_master.core.actions import AnswerOperator, KillOutcome
from fairlead_master.core.explain import explain
from fairlead_master.core.state import Master
from fairlead_master.picture import SWEEP_MS, Picture
from fairlead_master.runner import Runner
from fairlead_proto import fields, limits
from fairlead_proto.codes import CallCode
from fairlead_proto.fields import InvalidFieldError
from fairlead_proto.ids import FrameworkId, Role, TaskId
from fairlead_proto.v1 import operator_pb2 as pb
from fairlead_proto.v1 import operator_pb2_grpc

Row = TypeVar("Row")
Context = Any
"""grpc.aio.ServicerContext; the stubs make it generic, the class is not at run time."""

CHANGES_PER_MESSAGE_MAX: Final = 1_000
WATCH_INTERVAL_S: Final = 0.05
"""Changes of this long share a message: a watcher is a person or a screen."""

PICTURE_PAUSE_S: Final = 0.01
"""Between the parts of a first picture: 20,000 tasks are sent within some three seconds, and others have most of the loop."""

IDS_PER_STEP_MAX: Final = 500
"""Of a kill that names its framework, as of one that a framework asks for. Where none is named, each id is looked for in all
frameworks and is a step of its own, 3 to 6 ms with 10,000 of them."""

_STATUS: Final = {
    CallCode.INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    CallCode.UNKNOWN: grpc.StatusCode.NOT_FOUND,
    CallCode.UNAUTHORIZED: grpc.StatusCode.PERMISSION_DENIED,
    CallCode.LIMIT: grpc.StatusCode.RESOURCE_EXHAUSTED,
    CallCode.INFEASIBLE: grpc.StatusCode.FAILED_PRECONDITION,
}


class OperatorService(operator_pb2_grpc.OperatorServiceServicer):
    """Reads the core between steps, in parts where that is long; orders go to it as events."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    @property
    def _master(self) -> Master:
        return self._runner.machine.master

    async def GetCluster(self, _request: pb.GetClusterRequest, _context: Context) -> pb.Cluster:
        return await self._runner.in_parts(views.cluster(self._master, self._runner.clock.now_ms()))

    # A listing's version is that of its beginning: what changes while it is made is told again to who watches from there.

    async def ListTasks(self, request: pb.ListTasksRequest, context: Context) -> pb.ListTasksResponse:
        master, runner = self._master, self._runner
        answer = pb.ListTasksResponse(version=master.version)
        if request.task_ids:
            found = views.find_tasks(master, request.task_ids, request.framework_id)
            await runner.in_parts(views.fill(found, answer.tasks))
            return answer
        states = frozenset(request.states)
        rows = views.select_tasks(master, states, request.framework_id)
        taken: list[views.TaskRow] = await self._page(rows, views.task_row_key, request, answer, context)
        if not taken and not views.is_known_framework(master, request.framework_id):
            detail = f"framework_id: expected a framework this master knows, got {request.framework_id!r}"
            await context.abort(grpc.StatusCode.NOT_FOUND, detail)
        infos = (views.task_row_info(master, row, states) for row in taken)
        await runner.in_parts(views.fill(infos, answer.tasks))
        return answer

    async def ListAgents(self, request: pb.ListRequest, context: Context) -> pb.ListAgentsResponse:
        master = self._master
        answer = pb.ListAgentsResponse(version=master.version)
        ids = await self._page(list(master.agents), str, request, answer, context)
        agents = master.agents
        infos = (views.agent_info(master, agents[each]) if each in agents else None for each in ids)
        await self._runner.in_parts(views.fill(infos, answer.agents))
        return answer

    async def ListFrameworks(self, request: pb.ListRequest, context: Context) -> pb.ListFrameworksResponse:
        master = self._master
        answer = pb.ListFrameworksResponse(version=master.version)
        known = list({**master.completed_frameworks, **master.frameworks})
        ids = await self._page(known, str, request, answer, context)
        found = (master.frameworks.get(each) or master.completed_frameworks.get(each) for each in ids)
        infos = (views.framework_info(master, each) if each is not None else None for each in found)
        await self._runner.in_parts(views.fill(infos, answer.frameworks))
        return answer

    async def ListRoles(self, request: pb.ListRequest, context: Context) -> pb.ListRolesResponse:
        master = self._master
        await self._check_page(request.page_size, context)
        answer = views.role_list(master)
        roles = await self._runner.in_parts(views.roles(master))
        taken = await self._page(roles, attrgetter("role"), request, answer, context)
        await self._runner.in_parts(views.fill(taken, answer.roles))
        return answer

    async def ListOffers(self, request: pb.ListRequest, context: Context) -> pb.ListOffersResponse:
        master, offers, clock = self._master, self._master.offers, self._runner.clock
        answer = pb.ListOffersResponse(version=master.version)
        ids = await self._page(list(offers), str, request, answer, context)
        infos = (
            views.offer_info(master, offers[each], clock.now_ms()) if each in offers else None for each in ids
        )
        await self._runner.in_parts(views.fill(infos, answer.offers))
        return answer

    async def ListClasses(self, request: pb.ListRequest, context: Context) -> pb.ListClassesResponse:
        master = self._master
        answer = pb.ListClassesResponse(version=master.version)
        rows = views.class_rows(master)
        taken = await self._page(rows, views.class_row_key, request, answer, context)
        await self._runner.in_parts(views.fill(views.class_infos(master, taken), answer.classes))
        return answer

    async def _page(
        self,
        rows: Iterable[Row | None],
        key: Callable[[Row], str],
        request: pb.ListRequest | pb.ListTasksRequest,
        answer: Any,
        context: Context,
    ) -> list[Row]:
        """The rows of the page asked for; the token of the next one is in the answer then."""
        await self._check_page(request.page_size, context)
        taken, answer.next_page_token = await self._runner.in_parts(
            views.page(rows, key, request.page_size, request.page_token)
        )
        return taken

    async def _check_page(self, size: int, context: Context) -> None:
        if not 0 <= size <= views.PAGE_SIZE_MAX:
            detail = f"page_size: expected 0 to {views.PAGE_SIZE_MAX}, got {size}"
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, detail)

    async def Watch(self, request: pb.WatchRequest, context: Context) -> None:
        """Send what changed, in order; a reader that lags behind the kept changes is told to list again."""
        if request.rows:
            await self._watch_rows(context)
            return
        master = self._master
        kinds = frozenset(request.kinds)
        seen = request.from_version or master.version
        changed = asyncio.Event()
        number = self._runner.add_watcher(changed.set)
        try:
            await context.write(pb.Changes(version=seen, resync=seen > master.version))
            seen = min(seen, master.version)
            while True:
                if seen == master.version:
                    changed.clear()
                    await changed.wait()
                    await asyncio.sleep(WATCH_INTERVAL_S)
                message = views.changes_after(master, seen, kinds, CHANGES_PER_MESSAGE_MAX)
                seen = message.version
                if message.changes or message.resync:
                    await context.write(message)
        finally:
            self._runner.remove_watcher(number)

    async def _watch_rows(self, context: Context) -> None:
        """Send a picture, and what changes of it as it is by then."""
        picture, clock = Picture(self._master), self._runner.clock
        changed = asyncio.Event()
        number = self._runner.add_watcher(changed.set)
        pause_s = PICTURE_PAUSE_S
        try:
            while True:
                message = await self._runner.in_parts(picture.take(clock.now_ms()))
                if message is not None:
                    await context.write(message)
                if picture.is_whole:
                    pause_s = WATCH_INTERVAL_S
                    changed.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(SWEEP_MS / 1000):
                            await changed.wait()
                await asyncio.sleep(pause_s)
        finally:
            self._runner.remove_watcher(number)

    async def KillTasks(self, request: pb.KillTasksRequest, context: Context) -> pb.KillTasksResponse:
        grace_period_ms = await self._checked(
            context, lambda: fields.read_duration("grace_period_ms", request.grace_period_ms)
        )
        answer = pb.KillTasksResponse()
        owner = FrameworkId(request.framework_id) if request.framework_id else None
        most = IDS_PER_STEP_MAX if owner else 1
        for start in range(0, len(request.task_ids), most):
            for outcome in await self._kill(request.task_ids[start : start + most], owner, grace_period_ms):
                answer.items.add(
                    task_id=outcome.task_id,
                    framework_id=outcome.framework_id or "",
                    outcome=outcome.outcome,
                    detail=outcome.detail,
                )
        return answer

    async def _kill(
        self, task_ids: Iterable[str], owner: FrameworkId | None, grace_period_ms: int
    ) -> Sequence[KillOutcome]:
        ids = tuple(map(TaskId, task_ids))
        answer = await self._runner.ask(
            lambda number: events.OperatorKillAsked(
                request=number, task_ids=ids, framework_id=owner, grace_period_ms=grace_period_ms
            )
        )
        return answer.outcomes

    async def TeardownFramework(
        self, request: pb.TeardownFrameworkRequest, context: Context
    ) -> pb.TeardownFrameworkResponse:
        detail = await self._checked(context, lambda: fields.read_name("detail", request.detail))
        answer = await self._ask(
            context,
            lambda number: events.OperatorTeardownAsked(
                request=number, framework_id=FrameworkId(request.framework_id), detail=detail
            ),
        )
        return pb.TeardownFrameworkResponse(tasks_killed=answer.tasks_killed)

    async def Explain(self, request: pb.ExplainRequest, context: Context) -> pb.Explanation:
        master = self._master
        version = master.version
        answer = await self._runner.in_parts(explain(master, request.id))
        if answer is None:
            detail = (
                f"id: expected a task, framework/class or framework this master knows, got {request.id!r}; "
                "of tasks that wait it knows 32 of a kind by name at most, and none that its framework holds back, "
                "as of an array with so many at once: ask about their framework instead"
            )
            await context.abort(grpc.StatusCode.NOT_FOUND, detail)
            raise AssertionError("abort raises")
        return pb.Explanation(
            id=answer.identity,
            kind=answer.kind,
            reason=f"WAIT_REASON_{answer.reason.value}",
            sentence=answer.sentence,
            evidence=answer.evidence,
            next_steps=answer.next_steps,
            epoch=master.epoch,
            version=version,
        )

    async def GetPolicy(self, _request: pb.GetPolicyRequest, _context: Context) -> pb.PolicyInfo:
        settings = self._master.settings.allocation
        return pb.PolicyInfo(
            policy=settings.policy,
            placement=settings.placement,
            when_head_does_not_fit=settings.when_head_does_not_fit,
            demand=settings.demand,
            known_policies=names.NAMES,
            known_placements=placement.NAMES,
        )

    async def SetPolicy(self, request: pb.SetPolicyRequest, context: Context) -> pb.PolicyInfo:
        await self._ask(
            context,
            lambda number: events.PolicySet(
                request=number,
                policy=request.policy or None,
                placement=request.placement or None,
                when_head_does_not_fit=request.when_head_does_not_fit or None,
                demand=request.demand or None,
            ),
        )
        return await self.GetPolicy(pb.GetPolicyRequest(), context)

    async def SetWeight(self, request: pb.SetWeightRequest, context: Context) -> pb.SetWeightResponse:
        role, weight = await self._checked(context, lambda: self._read_weight(request))
        await self._ask(context, lambda number: events.WeightSet(request=number, role=role, weight=weight))
        return pb.SetWeightResponse()

    def _read_weight(self, request: pb.SetWeightRequest) -> tuple[Role, Weight]:
        names = self._master.kinds.names
        places = {}
        for name, weight in request.resource_weights.items():
            if name not in names:
                raise InvalidFieldError(f"resource_weights: expected one of {', '.join(names)}, got {name!r}")
            places[names.index(name)] = fields.read_weight(f"resource_weights.{name}", weight)
        if not request.role:
            raise InvalidFieldError("role: expected a role, got none")
        role = fields.read_role("role", request.role)
        return role, Weight(fields.read_weight("weight", request.weight), places or None)

    async def AllocationLog(
        self, request: pb.AllocationLogRequest, context: Context
    ) -> pb.AllocationLogResponse:
        if not 0 <= request.limit <= limits.CLASSES_MAX:
            detail = f"limit: expected 0 to {limits.CLASSES_MAX}, got {request.limit}"
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, detail)
        return pb.AllocationLogResponse(decisions=views.decisions(self._master, request.limit or 100))

    async def _ask(self, context: Context, make: Any) -> AnswerOperator:
        answer = await self._runner.ask(make)
        if answer.code is not CallCode.OK:
            await context.abort(_STATUS[answer.code], answer.error)
        return answer

    async def _checked(self, context: Context, read: Any) -> Any:
        try:
            return read()
        except InvalidFieldError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
