"""The framework SDK: ask for resources by demand and launch tasks on what is offered.

    from fairlead_sdk import Framework, Task

    async with Framework("sweep", role="research") as framework:
        results = await framework.run([Task(["job", str(i)], cpus=1, mem="512MiB") for i in range(100)])

``fairlead_sdk.sync`` has the same without ``await``; ``Scheduler`` is the class to subclass for a scheduler of one's own;
``fairlead_sim.testing`` has a cluster in memory to test either. Names are imported when they are first used, because
grpc takes longer to import than everything else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# What a type checker sees; at run time `__getattr__` does the same, later.
if TYPE_CHECKING:
    from fairlead_proto.codes import Rejection as Rejection
    from fairlead_proto.task_state import Reason as Reason
    from fairlead_proto.task_state import TaskState as TaskState
    from fairlead_proto.task_state import is_terminal as is_terminal
    from fairlead_proto.tasks import Constraint as Constraint
    from fairlead_proto.tasks import Operator as Operator
    from fairlead_proto.tasks import TaskStatus as TaskStatus
    from fairlead_proto.tasks import TaskUsage as TaskUsage
    from fairlead_sdk.amounts import Amounts as Amounts
    from fairlead_sdk.arrays import Array as Array
    from fairlead_sdk.calls import Demand as Demand
    from fairlead_sdk.calls import Launch as Launch
    from fairlead_sdk.calls import Scope as Scope
    from fairlead_sdk.client import MasterClient as MasterClient
    from fairlead_sdk.constraints import parse_constraint as parse_constraint
    from fairlead_sdk.demand_classes import demand_class as demand_class
    from fairlead_sdk.demand_classes import quanta_class as quanta_class
    from fairlead_sdk.errors import Closed as Closed
    from fairlead_sdk.errors import FairleadError as FairleadError
    from fairlead_sdk.errors import FrameworkExpired as FrameworkExpired
    from fairlead_sdk.errors import Infeasible as Infeasible
    from fairlead_sdk.errors import MasterUnreachable as MasterUnreachable
    from fairlead_sdk.errors import Refused as Refused
    from fairlead_sdk.errors import Superseded as Superseded
    from fairlead_sdk.events import AcceptItem as AcceptItem
    from fairlead_sdk.events import Connected as Connected
    from fairlead_sdk.events import Disconnected as Disconnected
    from fairlead_sdk.events import Offer as Offer
    from fairlead_sdk.framework import Framework as Framework
    from fairlead_sdk.handles import ArrayHandle as ArrayHandle
    from fairlead_sdk.handles import TaskHandle as TaskHandle
    from fairlead_sdk.matching import fitting_tasks as fitting_tasks
    from fairlead_sdk.operator_client import OperatorClient as OperatorClient
    from fairlead_sdk.output import OutputFollower as OutputFollower
    from fairlead_sdk.output import TaskOutput as TaskOutput
    from fairlead_sdk.scheduler import Driver as Driver
    from fairlead_sdk.scheduler import Scheduler as Scheduler
    from fairlead_sdk.scheduler import run_scheduler as run_scheduler
    from fairlead_sdk.task import Progress as Progress
    from fairlead_sdk.task import Task as Task
    from fairlead_sdk.task import TaskResult as TaskResult
    from fairlead_sdk.transport import Transport as Transport

_MODULES = {
    "fairlead_proto.task_state": ("Reason", "TaskState", "is_terminal"),
    "fairlead_proto.tasks": ("Constraint", "Operator", "TaskStatus", "TaskUsage"),
    "fairlead_sdk.amounts": ("Amounts",),
    "fairlead_sdk.arrays": ("Array",),
    "fairlead_sdk.calls": ("Demand", "Launch", "Scope"),
    "fairlead_sdk.client": ("MasterClient",),
    "fairlead_sdk.constraints": ("parse_constraint",),
    "fairlead_sdk.demand_classes": ("demand_class", "quanta_class"),
    "fairlead_sdk.errors": (
        "Closed",
        "FairleadError",
        "FrameworkExpired",
        "Infeasible",
        "MasterUnreachable",
        "Refused",
        "Superseded",
    ),
    "fairlead_proto.codes": ("Rejection",),
    "fairlead_sdk.events": ("AcceptItem", "Connected", "Disconnected", "Offer"),
    "fairlead_sdk.framework": ("Framework",),
    "fairlead_sdk.handles": ("ArrayHandle", "TaskHandle"),
    "fairlead_sdk.matching": ("fitting_tasks",),
    "fairlead_sdk.operator_client": ("OperatorClient",),
    "fairlead_sdk.output": ("OutputFollower", "TaskOutput"),
    "fairlead_sdk.scheduler": ("Driver", "Scheduler", "run_scheduler"),
    "fairlead_sdk.task": ("Progress", "Task", "TaskResult"),
    "fairlead_sdk.transport": ("Transport",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "AcceptItem",
    "Amounts",
    "Array",
    "ArrayHandle",
    "Closed",
    "Connected",
    "Constraint",
    "Demand",
    "Disconnected",
    "Driver",
    "FairleadError",
    "Framework",
    "FrameworkExpired",
    "Infeasible",
    "Launch",
    "MasterClient",
    "MasterUnreachable",
    "Offer",
    "Operator",
    "OperatorClient",
    "OutputFollower",
    "Progress",
    "Reason",
    "Refused",
    "Rejection",
    "Scheduler",
    "Scope",
    "Superseded",
    "Task",
    "TaskHandle",
    "TaskOutput",
    "TaskResult",
    "TaskState",
    "TaskStatus",
    "TaskUsage",
    "Transport",
    "demand_class",
    "fitting_tasks",
    "is_terminal",
    "parse_constraint",
    "quanta_class",
    "run_scheduler",
]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
