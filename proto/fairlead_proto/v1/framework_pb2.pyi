from fairlead_proto.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CallCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CALL_CODE_UNSPECIFIED: _ClassVar[CallCode]
    CALL_CODE_OK: _ClassVar[CallCode]
    CALL_CODE_INVALID: _ClassVar[CallCode]
    CALL_CODE_INFEASIBLE: _ClassVar[CallCode]
    CALL_CODE_UNKNOWN: _ClassVar[CallCode]
    CALL_CODE_UNAUTHORIZED: _ClassVar[CallCode]
    CALL_CODE_LIMIT: _ClassVar[CallCode]

class Rejection(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REJECTION_UNSPECIFIED: _ClassVar[Rejection]
    REJECTION_EXPIRED: _ClassVar[Rejection]
    REJECTION_NO_FIT: _ClassVar[Rejection]
    REJECTION_INVALID: _ClassVar[Rejection]
    REJECTION_UNAUTHORIZED: _ClassVar[Rejection]
    REJECTION_AGENT_GONE: _ClassVar[Rejection]

class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ERROR_CODE_UNSPECIFIED: _ClassVar[ErrorCode]
    ERROR_CODE_INVALID: _ClassVar[ErrorCode]
    ERROR_CODE_SUPERSEDED: _ClassVar[ErrorCode]
    ERROR_CODE_UNKNOWN_FRAMEWORK: _ClassVar[ErrorCode]
    ERROR_CODE_TOO_SLOW: _ClassVar[ErrorCode]
    ERROR_CODE_OLD_EPOCH: _ClassVar[ErrorCode]
    ERROR_CODE_UNAUTHORIZED: _ClassVar[ErrorCode]
    ERROR_CODE_LIMIT: _ClassVar[ErrorCode]
    ERROR_CODE_SHUTTING_DOWN: _ClassVar[ErrorCode]
CALL_CODE_UNSPECIFIED: CallCode
CALL_CODE_OK: CallCode
CALL_CODE_INVALID: CallCode
CALL_CODE_INFEASIBLE: CallCode
CALL_CODE_UNKNOWN: CallCode
CALL_CODE_UNAUTHORIZED: CallCode
CALL_CODE_LIMIT: CallCode
REJECTION_UNSPECIFIED: Rejection
REJECTION_EXPIRED: Rejection
REJECTION_NO_FIT: Rejection
REJECTION_INVALID: Rejection
REJECTION_UNAUTHORIZED: Rejection
REJECTION_AGENT_GONE: Rejection
ERROR_CODE_UNSPECIFIED: ErrorCode
ERROR_CODE_INVALID: ErrorCode
ERROR_CODE_SUPERSEDED: ErrorCode
ERROR_CODE_UNKNOWN_FRAMEWORK: ErrorCode
ERROR_CODE_TOO_SLOW: ErrorCode
ERROR_CODE_OLD_EPOCH: ErrorCode
ERROR_CODE_UNAUTHORIZED: ErrorCode
ERROR_CODE_LIMIT: ErrorCode
ERROR_CODE_SHUTTING_DOWN: ErrorCode

class FrameworkCalls(_message.Message):
    __slots__ = ("calls",)
    CALLS_FIELD_NUMBER: _ClassVar[int]
    calls: _containers.RepeatedCompositeFieldContainer[FrameworkCall]
    def __init__(self, calls: _Optional[_Iterable[_Union[FrameworkCall, _Mapping]]] = ...) -> None: ...

class FrameworkCall(_message.Message):
    __slots__ = ("request_id", "hello", "set_demand", "accept", "decline", "kill", "acknowledge", "reconcile", "teardown")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    SET_DEMAND_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_FIELD_NUMBER: _ClassVar[int]
    DECLINE_FIELD_NUMBER: _ClassVar[int]
    KILL_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    RECONCILE_FIELD_NUMBER: _ClassVar[int]
    TEARDOWN_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    hello: Hello
    set_demand: SetDemand
    accept: Accept
    decline: Decline
    kill: Kill
    acknowledge: Acknowledge
    reconcile: Reconcile
    teardown: Teardown
    def __init__(self, request_id: _Optional[int] = ..., hello: _Optional[_Union[Hello, _Mapping]] = ..., set_demand: _Optional[_Union[SetDemand, _Mapping]] = ..., accept: _Optional[_Union[Accept, _Mapping]] = ..., decline: _Optional[_Union[Decline, _Mapping]] = ..., kill: _Optional[_Union[Kill, _Mapping]] = ..., acknowledge: _Optional[_Union[Acknowledge, _Mapping]] = ..., reconcile: _Optional[_Union[Reconcile, _Mapping]] = ..., teardown: _Optional[_Union[Teardown, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("framework_id", "name", "role", "failover_timeout_ms", "principal", "last_epoch", "weight", "version", "capabilities")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    FAILOVER_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    LAST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    name: str
    role: str
    failover_timeout_ms: int
    principal: str
    last_epoch: int
    weight: float
    version: str
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, framework_id: _Optional[str] = ..., name: _Optional[str] = ..., role: _Optional[str] = ..., failover_timeout_ms: _Optional[int] = ..., principal: _Optional[str] = ..., last_epoch: _Optional[int] = ..., weight: _Optional[float] = ..., version: _Optional[str] = ..., capabilities: _Optional[_Iterable[str]] = ...) -> None: ...

class SetDemand(_message.Message):
    __slots__ = ("version", "classes", "lift_declines")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    LIFT_DECLINES_FIELD_NUMBER: _ClassVar[int]
    version: int
    classes: _containers.RepeatedCompositeFieldContainer[DemandClass]
    lift_declines: bool
    def __init__(self, version: _Optional[int] = ..., classes: _Optional[_Iterable[_Union[DemandClass, _Mapping]]] = ..., lift_declines: bool = ...) -> None: ...

class DemandClass(_message.Message):
    __slots__ = ("class_id", "unit", "units", "constraints", "waiting_task_ids")
    CLASS_ID_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    WAITING_TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    class_id: str
    unit: _types_pb2.Resources
    units: int
    constraints: _containers.RepeatedCompositeFieldContainer[_types_pb2.Constraint]
    waiting_task_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, class_id: _Optional[str] = ..., unit: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., units: _Optional[int] = ..., constraints: _Optional[_Iterable[_Union[_types_pb2.Constraint, _Mapping]]] = ..., waiting_task_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class Accept(_message.Message):
    __slots__ = ("offer_id", "tasks", "arrays")
    OFFER_ID_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    offer_id: str
    tasks: _containers.RepeatedCompositeFieldContainer[_types_pb2.TaskSpec]
    arrays: _containers.RepeatedCompositeFieldContainer[_types_pb2.TaskArray]
    def __init__(self, offer_id: _Optional[str] = ..., tasks: _Optional[_Iterable[_Union[_types_pb2.TaskSpec, _Mapping]]] = ..., arrays: _Optional[_Iterable[_Union[_types_pb2.TaskArray, _Mapping]]] = ...) -> None: ...

class Decline(_message.Message):
    __slots__ = ("offer_ids", "reason", "scope", "ttl_ms")
    class Scope(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SCOPE_UNSPECIFIED: _ClassVar[Decline.Scope]
        SCOPE_AGENT: _ClassVar[Decline.Scope]
        SCOPE_CLASS: _ClassVar[Decline.Scope]
        SCOPE_NOTHING: _ClassVar[Decline.Scope]
    SCOPE_UNSPECIFIED: Decline.Scope
    SCOPE_AGENT: Decline.Scope
    SCOPE_CLASS: Decline.Scope
    SCOPE_NOTHING: Decline.Scope
    OFFER_IDS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    TTL_MS_FIELD_NUMBER: _ClassVar[int]
    offer_ids: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    scope: Decline.Scope
    ttl_ms: int
    def __init__(self, offer_ids: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ..., scope: _Optional[_Union[Decline.Scope, str]] = ..., ttl_ms: _Optional[int] = ...) -> None: ...

class Kill(_message.Message):
    __slots__ = ("task_ids", "grace_period_ms")
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    GRACE_PERIOD_MS_FIELD_NUMBER: _ClassVar[int]
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    grace_period_ms: int
    def __init__(self, task_ids: _Optional[_Iterable[str]] = ..., grace_period_ms: _Optional[int] = ...) -> None: ...

class Acknowledge(_message.Message):
    __slots__ = ("items", "columns")
    class Item(_message.Message):
        __slots__ = ("task_id", "sequence", "agent_id")
        TASK_ID_FIELD_NUMBER: _ClassVar[int]
        SEQUENCE_FIELD_NUMBER: _ClassVar[int]
        AGENT_ID_FIELD_NUMBER: _ClassVar[int]
        task_id: str
        sequence: int
        agent_id: str
        def __init__(self, task_id: _Optional[str] = ..., sequence: _Optional[int] = ..., agent_id: _Optional[str] = ...) -> None: ...
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Acknowledge.Item]
    columns: _containers.RepeatedCompositeFieldContainer[_types_pb2.AcknowledgementColumns]
    def __init__(self, items: _Optional[_Iterable[_Union[Acknowledge.Item, _Mapping]]] = ..., columns: _Optional[_Iterable[_Union[_types_pb2.AcknowledgementColumns, _Mapping]]] = ...) -> None: ...

class Reconcile(_message.Message):
    __slots__ = ("task_ids",)
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, task_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class Teardown(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class FrameworkEvents(_message.Message):
    __slots__ = ("epoch", "events")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    events: _containers.RepeatedCompositeFieldContainer[FrameworkEvent]
    def __init__(self, epoch: _Optional[int] = ..., events: _Optional[_Iterable[_Union[FrameworkEvent, _Mapping]]] = ...) -> None: ...

class FrameworkEvent(_message.Message):
    __slots__ = ("welcome", "result", "accept_result", "offers", "rescind", "statuses", "reconcile_done", "agent_gone", "error", "heartbeat")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_RESULT_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    RESCIND_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    RECONCILE_DONE_FIELD_NUMBER: _ClassVar[int]
    AGENT_GONE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    result: CallResult
    accept_result: AcceptResult
    offers: Offers
    rescind: Rescind
    statuses: TaskStatuses
    reconcile_done: ReconcileDone
    agent_gone: AgentGone
    error: Error
    heartbeat: Heartbeat
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., result: _Optional[_Union[CallResult, _Mapping]] = ..., accept_result: _Optional[_Union[AcceptResult, _Mapping]] = ..., offers: _Optional[_Union[Offers, _Mapping]] = ..., rescind: _Optional[_Union[Rescind, _Mapping]] = ..., statuses: _Optional[_Union[TaskStatuses, _Mapping]] = ..., reconcile_done: _Optional[_Union[ReconcileDone, _Mapping]] = ..., agent_gone: _Optional[_Union[AgentGone, _Mapping]] = ..., error: _Optional[_Union[Error, _Mapping]] = ..., heartbeat: _Optional[_Union[Heartbeat, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("framework_id", "epoch", "heartbeat_interval_ms", "failover_timeout_ms", "role", "custom_resources", "version", "capabilities")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    FAILOVER_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_RESOURCES_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    epoch: int
    heartbeat_interval_ms: int
    failover_timeout_ms: int
    role: str
    custom_resources: _containers.RepeatedScalarFieldContainer[str]
    version: str
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, framework_id: _Optional[str] = ..., epoch: _Optional[int] = ..., heartbeat_interval_ms: _Optional[int] = ..., failover_timeout_ms: _Optional[int] = ..., role: _Optional[str] = ..., custom_resources: _Optional[_Iterable[str]] = ..., version: _Optional[str] = ..., capabilities: _Optional[_Iterable[str]] = ...) -> None: ...

class CallResult(_message.Message):
    __slots__ = ("request_id", "code", "detail", "demand_version", "infeasible")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    DEMAND_VERSION_FIELD_NUMBER: _ClassVar[int]
    INFEASIBLE_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    code: CallCode
    detail: str
    demand_version: int
    infeasible: _containers.RepeatedCompositeFieldContainer[Infeasible]
    def __init__(self, request_id: _Optional[int] = ..., code: _Optional[_Union[CallCode, str]] = ..., detail: _Optional[str] = ..., demand_version: _Optional[int] = ..., infeasible: _Optional[_Iterable[_Union[Infeasible, _Mapping]]] = ...) -> None: ...

class Infeasible(_message.Message):
    __slots__ = ("class_id", "best_agent_id", "missing", "detail")
    CLASS_ID_FIELD_NUMBER: _ClassVar[int]
    BEST_AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    class_id: str
    best_agent_id: str
    missing: _types_pb2.Resources
    detail: str
    def __init__(self, class_id: _Optional[str] = ..., best_agent_id: _Optional[str] = ..., missing: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., detail: _Optional[str] = ...) -> None: ...

class AcceptResult(_message.Message):
    __slots__ = ("request_id", "offer_id", "items", "launched")
    class Item(_message.Message):
        __slots__ = ("task_id", "launched", "rejection", "detail")
        TASK_ID_FIELD_NUMBER: _ClassVar[int]
        LAUNCHED_FIELD_NUMBER: _ClassVar[int]
        REJECTION_FIELD_NUMBER: _ClassVar[int]
        DETAIL_FIELD_NUMBER: _ClassVar[int]
        task_id: str
        launched: bool
        rejection: Rejection
        detail: str
        def __init__(self, task_id: _Optional[str] = ..., launched: bool = ..., rejection: _Optional[_Union[Rejection, str]] = ..., detail: _Optional[str] = ...) -> None: ...
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    OFFER_ID_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    LAUNCHED_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    offer_id: str
    items: _containers.RepeatedCompositeFieldContainer[AcceptResult.Item]
    launched: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, request_id: _Optional[int] = ..., offer_id: _Optional[str] = ..., items: _Optional[_Iterable[_Union[AcceptResult.Item, _Mapping]]] = ..., launched: _Optional[_Iterable[str]] = ...) -> None: ...

class Offer(_message.Message):
    __slots__ = ("offer_id", "agent_id", "hostname", "attributes", "class_id", "demand_version", "units", "unit", "lease_ms")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    OFFER_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    CLASS_ID_FIELD_NUMBER: _ClassVar[int]
    DEMAND_VERSION_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    offer_id: str
    agent_id: str
    hostname: str
    attributes: _containers.ScalarMap[str, str]
    class_id: str
    demand_version: int
    units: int
    unit: _types_pb2.Resources
    lease_ms: int
    def __init__(self, offer_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., hostname: _Optional[str] = ..., attributes: _Optional[_Mapping[str, str]] = ..., class_id: _Optional[str] = ..., demand_version: _Optional[int] = ..., units: _Optional[int] = ..., unit: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., lease_ms: _Optional[int] = ...) -> None: ...

class Offers(_message.Message):
    __slots__ = ("offers",)
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    offers: _containers.RepeatedCompositeFieldContainer[Offer]
    def __init__(self, offers: _Optional[_Iterable[_Union[Offer, _Mapping]]] = ...) -> None: ...

class Rescind(_message.Message):
    __slots__ = ("offer_ids", "reason")
    OFFER_IDS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    offer_ids: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    def __init__(self, offer_ids: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ...) -> None: ...

class TaskStatuses(_message.Message):
    __slots__ = ("statuses", "columns")
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    statuses: _containers.RepeatedCompositeFieldContainer[_types_pb2.TaskStatus]
    columns: _containers.RepeatedCompositeFieldContainer[_types_pb2.StatusColumns]
    def __init__(self, statuses: _Optional[_Iterable[_Union[_types_pb2.TaskStatus, _Mapping]]] = ..., columns: _Optional[_Iterable[_Union[_types_pb2.StatusColumns, _Mapping]]] = ...) -> None: ...

class ReconcileDone(_message.Message):
    __slots__ = ("request_id", "recovering_agent_ids")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    RECOVERING_AGENT_IDS_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    recovering_agent_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, request_id: _Optional[int] = ..., recovering_agent_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class AgentGone(_message.Message):
    __slots__ = ("agent_id", "reason")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    reason: str
    def __init__(self, agent_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "detail")
    CODE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    code: ErrorCode
    detail: str
    def __init__(self, code: _Optional[_Union[ErrorCode, str]] = ..., detail: _Optional[str] = ...) -> None: ...

class Heartbeat(_message.Message):
    __slots__ = ("master_time_ms",)
    MASTER_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    master_time_ms: int
    def __init__(self, master_time_ms: _Optional[int] = ...) -> None: ...
