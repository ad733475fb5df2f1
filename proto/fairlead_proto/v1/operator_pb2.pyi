from fairlead_proto.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class WaitReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WAIT_REASON_UNSPECIFIED: _ClassVar[WaitReason]
    WAIT_REASON_NOT_WAITING: _ClassVar[WaitReason]
    WAIT_REASON_INFEASIBLE: _ClassVar[WaitReason]
    WAIT_REASON_CONSTRAINT: _ClassVar[WaitReason]
    WAIT_REASON_NO_AGENTS: _ClassVar[WaitReason]
    WAIT_REASON_RECOVERING: _ClassVar[WaitReason]
    WAIT_REASON_OFFERED: _ClassVar[WaitReason]
    WAIT_REASON_DECLINED: _ClassVar[WaitReason]
    WAIT_REASON_FROZEN: _ClassVar[WaitReason]
    WAIT_REASON_RESERVED: _ClassVar[WaitReason]
    WAIT_REASON_SHARE: _ClassVar[WaitReason]
    WAIT_REASON_FRAGMENTED: _ClassVar[WaitReason]
    WAIT_REASON_FULL: _ClassVar[WaitReason]
    WAIT_REASON_FRAMEWORK_AWAY: _ClassVar[WaitReason]
WAIT_REASON_UNSPECIFIED: WaitReason
WAIT_REASON_NOT_WAITING: WaitReason
WAIT_REASON_INFEASIBLE: WaitReason
WAIT_REASON_CONSTRAINT: WaitReason
WAIT_REASON_NO_AGENTS: WaitReason
WAIT_REASON_RECOVERING: WaitReason
WAIT_REASON_OFFERED: WaitReason
WAIT_REASON_DECLINED: WaitReason
WAIT_REASON_FROZEN: WaitReason
WAIT_REASON_RESERVED: WaitReason
WAIT_REASON_SHARE: WaitReason
WAIT_REASON_FRAGMENTED: WaitReason
WAIT_REASON_FULL: WaitReason
WAIT_REASON_FRAMEWORK_AWAY: WaitReason

class GetClusterRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Cluster(_message.Message):
    __slots__ = ("epoch", "version", "policy", "placement", "when_head_does_not_fit", "recovering", "recovering_agent_ids", "master_time_ms", "total", "allocated", "used", "agents", "frameworks", "tasks_active", "tasks_finished", "decisions", "cycles", "cpu_time_ms")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    WHEN_HEAD_DOES_NOT_FIT_FIELD_NUMBER: _ClassVar[int]
    RECOVERING_FIELD_NUMBER: _ClassVar[int]
    RECOVERING_AGENT_IDS_FIELD_NUMBER: _ClassVar[int]
    MASTER_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORKS_FIELD_NUMBER: _ClassVar[int]
    TASKS_ACTIVE_FIELD_NUMBER: _ClassVar[int]
    TASKS_FINISHED_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    CYCLES_FIELD_NUMBER: _ClassVar[int]
    CPU_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    version: str
    policy: str
    placement: str
    when_head_does_not_fit: str
    recovering: bool
    recovering_agent_ids: _containers.RepeatedScalarFieldContainer[str]
    master_time_ms: int
    total: _types_pb2.Resources
    allocated: _types_pb2.Resources
    used: _types_pb2.Resources
    agents: int
    frameworks: int
    tasks_active: int
    tasks_finished: int
    decisions: int
    cycles: int
    cpu_time_ms: int
    def __init__(self, epoch: _Optional[int] = ..., version: _Optional[str] = ..., policy: _Optional[str] = ..., placement: _Optional[str] = ..., when_head_does_not_fit: _Optional[str] = ..., recovering: bool = ..., recovering_agent_ids: _Optional[_Iterable[str]] = ..., master_time_ms: _Optional[int] = ..., total: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., allocated: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., used: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., agents: _Optional[int] = ..., frameworks: _Optional[int] = ..., tasks_active: _Optional[int] = ..., tasks_finished: _Optional[int] = ..., decisions: _Optional[int] = ..., cycles: _Optional[int] = ..., cpu_time_ms: _Optional[int] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "states", "framework_id", "task_ids")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    states: _containers.RepeatedScalarFieldContainer[str]
    framework_id: str
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., states: _Optional[_Iterable[str]] = ..., framework_id: _Optional[str] = ..., task_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class TaskInfo(_message.Message):
    __slots__ = ("task_id", "name", "framework_id", "framework", "role", "agent_id", "state", "resources", "submitted_ms", "started_ms", "finished_ms", "exit_code", "signal", "reason", "message", "usage", "command", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_MS_FIELD_NUMBER: _ClassVar[int]
    STARTED_MS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_MS_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    name: str
    framework_id: str
    framework: str
    role: str
    agent_id: str
    state: str
    resources: _types_pb2.Resources
    submitted_ms: int
    started_ms: int
    finished_ms: int
    exit_code: int
    signal: int
    reason: str
    message: str
    usage: _types_pb2.TaskUsage
    command: _containers.RepeatedScalarFieldContainer[str]
    labels: _containers.ScalarMap[str, str]
    def __init__(self, task_id: _Optional[str] = ..., name: _Optional[str] = ..., framework_id: _Optional[str] = ..., framework: _Optional[str] = ..., role: _Optional[str] = ..., agent_id: _Optional[str] = ..., state: _Optional[str] = ..., resources: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., submitted_ms: _Optional[int] = ..., started_ms: _Optional[int] = ..., finished_ms: _Optional[int] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., usage: _Optional[_Union[_types_pb2.TaskUsage, _Mapping]] = ..., command: _Optional[_Iterable[str]] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ListTasksResponse(_message.Message):
    __slots__ = ("tasks", "next_page_token", "version")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[TaskInfo]
    next_page_token: str
    version: int
    def __init__(self, tasks: _Optional[_Iterable[_Union[TaskInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class AgentInfo(_message.Message):
    __slots__ = ("agent_id", "hostname", "state", "attributes", "total", "allocated", "offered", "used", "tasks", "isolation", "clock_skew_ms", "registered_ms", "version")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_FIELD_NUMBER: _ClassVar[int]
    OFFERED_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    CLOCK_SKEW_MS_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_MS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    hostname: str
    state: str
    attributes: _containers.ScalarMap[str, str]
    total: _types_pb2.Resources
    allocated: _types_pb2.Resources
    offered: _types_pb2.Resources
    used: _types_pb2.Resources
    tasks: int
    isolation: str
    clock_skew_ms: int
    registered_ms: int
    version: str
    def __init__(self, agent_id: _Optional[str] = ..., hostname: _Optional[str] = ..., state: _Optional[str] = ..., attributes: _Optional[_Mapping[str, str]] = ..., total: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., allocated: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., offered: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., used: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., tasks: _Optional[int] = ..., isolation: _Optional[str] = ..., clock_skew_ms: _Optional[int] = ..., registered_ms: _Optional[int] = ..., version: _Optional[str] = ...) -> None: ...

class ListAgentsResponse(_message.Message):
    __slots__ = ("agents", "next_page_token", "version")
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    agents: _containers.RepeatedCompositeFieldContainer[AgentInfo]
    next_page_token: str
    version: int
    def __init__(self, agents: _Optional[_Iterable[_Union[AgentInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class FrameworkInfo(_message.Message):
    __slots__ = ("framework_id", "name", "role", "state", "pending", "running", "finished", "offers_sent", "offers_accepted", "offers_declined", "offers_expired", "demand_version", "registered_ms", "principal", "version")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    OFFERS_SENT_FIELD_NUMBER: _ClassVar[int]
    OFFERS_ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    OFFERS_DECLINED_FIELD_NUMBER: _ClassVar[int]
    OFFERS_EXPIRED_FIELD_NUMBER: _ClassVar[int]
    DEMAND_VERSION_FIELD_NUMBER: _ClassVar[int]
    REGISTERED_MS_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    name: str
    role: str
    state: str
    pending: int
    running: int
    finished: int
    offers_sent: int
    offers_accepted: int
    offers_declined: int
    offers_expired: int
    demand_version: int
    registered_ms: int
    principal: str
    version: str
    def __init__(self, framework_id: _Optional[str] = ..., name: _Optional[str] = ..., role: _Optional[str] = ..., state: _Optional[str] = ..., pending: _Optional[int] = ..., running: _Optional[int] = ..., finished: _Optional[int] = ..., offers_sent: _Optional[int] = ..., offers_accepted: _Optional[int] = ..., offers_declined: _Optional[int] = ..., offers_expired: _Optional[int] = ..., demand_version: _Optional[int] = ..., registered_ms: _Optional[int] = ..., principal: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class ListFrameworksResponse(_message.Message):
    __slots__ = ("frameworks", "next_page_token", "version")
    FRAMEWORKS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    frameworks: _containers.RepeatedCompositeFieldContainer[FrameworkInfo]
    next_page_token: str
    version: int
    def __init__(self, frameworks: _Optional[_Iterable[_Union[FrameworkInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class RoleInfo(_message.Message):
    __slots__ = ("role", "weight", "resource_weights", "dominant_share", "dominant_resource", "key", "fair_share", "pending", "running", "frameworks", "allocated", "rank", "used", "counted", "parent")
    class ResourceWeightsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ROLE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    DOMINANT_SHARE_FIELD_NUMBER: _ClassVar[int]
    DOMINANT_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    FAIR_SHARE_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORKS_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    COUNTED_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    role: str
    weight: float
    resource_weights: _containers.ScalarMap[str, float]
    dominant_share: float
    dominant_resource: str
    key: float
    fair_share: float
    pending: int
    running: int
    frameworks: int
    allocated: _types_pb2.Resources
    rank: int
    used: _types_pb2.Resources
    counted: _types_pb2.Resources
    parent: str
    def __init__(self, role: _Optional[str] = ..., weight: _Optional[float] = ..., resource_weights: _Optional[_Mapping[str, float]] = ..., dominant_share: _Optional[float] = ..., dominant_resource: _Optional[str] = ..., key: _Optional[float] = ..., fair_share: _Optional[float] = ..., pending: _Optional[int] = ..., running: _Optional[int] = ..., frameworks: _Optional[int] = ..., allocated: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., rank: _Optional[int] = ..., used: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., counted: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., parent: _Optional[str] = ...) -> None: ...

class ListRolesResponse(_message.Message):
    __slots__ = ("roles", "next_page_token", "version", "policy", "prices", "demand", "price_error", "bottlenecks")
    class PricesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ROLES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PRICES_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    PRICE_ERROR_FIELD_NUMBER: _ClassVar[int]
    BOTTLENECKS_FIELD_NUMBER: _ClassVar[int]
    roles: _containers.RepeatedCompositeFieldContainer[RoleInfo]
    next_page_token: str
    version: int
    policy: str
    prices: _containers.ScalarMap[str, float]
    demand: str
    price_error: float
    bottlenecks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, roles: _Optional[_Iterable[_Union[RoleInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., version: _Optional[int] = ..., policy: _Optional[str] = ..., prices: _Optional[_Mapping[str, float]] = ..., demand: _Optional[str] = ..., price_error: _Optional[float] = ..., bottlenecks: _Optional[_Iterable[str]] = ...) -> None: ...

class OfferInfo(_message.Message):
    __slots__ = ("offer_id", "framework_id", "framework", "agent_id", "class_id", "units", "resources", "expires_in_ms")
    OFFER_ID_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLASS_ID_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_IN_MS_FIELD_NUMBER: _ClassVar[int]
    offer_id: str
    framework_id: str
    framework: str
    agent_id: str
    class_id: str
    units: int
    resources: _types_pb2.Resources
    expires_in_ms: int
    def __init__(self, offer_id: _Optional[str] = ..., framework_id: _Optional[str] = ..., framework: _Optional[str] = ..., agent_id: _Optional[str] = ..., class_id: _Optional[str] = ..., units: _Optional[int] = ..., resources: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., expires_in_ms: _Optional[int] = ...) -> None: ...

class ListOffersResponse(_message.Message):
    __slots__ = ("offers", "next_page_token", "version")
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    offers: _containers.RepeatedCompositeFieldContainer[OfferInfo]
    next_page_token: str
    version: int
    def __init__(self, offers: _Optional[_Iterable[_Union[OfferInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class ClassInfo(_message.Message):
    __slots__ = ("framework_id", "class_id", "unit", "pending", "offered", "constraints")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    CLASS_ID_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    OFFERED_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    class_id: str
    unit: _types_pb2.Resources
    pending: int
    offered: int
    constraints: _containers.RepeatedCompositeFieldContainer[_types_pb2.Constraint]
    def __init__(self, framework_id: _Optional[str] = ..., class_id: _Optional[str] = ..., unit: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., pending: _Optional[int] = ..., offered: _Optional[int] = ..., constraints: _Optional[_Iterable[_Union[_types_pb2.Constraint, _Mapping]]] = ...) -> None: ...

class ListClassesResponse(_message.Message):
    __slots__ = ("classes", "next_page_token", "version")
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    classes: _containers.RepeatedCompositeFieldContainer[ClassInfo]
    next_page_token: str
    version: int
    def __init__(self, classes: _Optional[_Iterable[_Union[ClassInfo, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("from_version", "kinds", "rows")
    FROM_VERSION_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    from_version: int
    kinds: _containers.RepeatedScalarFieldContainer[str]
    rows: bool
    def __init__(self, from_version: _Optional[int] = ..., kinds: _Optional[_Iterable[str]] = ..., rows: bool = ...) -> None: ...

class Changes(_message.Message):
    __slots__ = ("version", "resync", "changes", "rows_due", "tasks", "agents", "frameworks", "roles")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    RESYNC_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    ROWS_DUE_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORKS_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    version: int
    resync: bool
    changes: _containers.RepeatedCompositeFieldContainer[Change]
    rows_due: int
    tasks: _containers.RepeatedCompositeFieldContainer[TaskInfo]
    agents: _containers.RepeatedCompositeFieldContainer[AgentInfo]
    frameworks: _containers.RepeatedCompositeFieldContainer[FrameworkInfo]
    roles: ListRolesResponse
    def __init__(self, version: _Optional[int] = ..., resync: bool = ..., changes: _Optional[_Iterable[_Union[Change, _Mapping]]] = ..., rows_due: _Optional[int] = ..., tasks: _Optional[_Iterable[_Union[TaskInfo, _Mapping]]] = ..., agents: _Optional[_Iterable[_Union[AgentInfo, _Mapping]]] = ..., frameworks: _Optional[_Iterable[_Union[FrameworkInfo, _Mapping]]] = ..., roles: _Optional[_Union[ListRolesResponse, _Mapping]] = ...) -> None: ...

class Change(_message.Message):
    __slots__ = ("kind", "id", "what")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    id: str
    what: str
    def __init__(self, kind: _Optional[str] = ..., id: _Optional[str] = ..., what: _Optional[str] = ...) -> None: ...

class KillTasksRequest(_message.Message):
    __slots__ = ("task_ids", "framework_id", "grace_period_ms")
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    GRACE_PERIOD_MS_FIELD_NUMBER: _ClassVar[int]
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    framework_id: str
    grace_period_ms: int
    def __init__(self, task_ids: _Optional[_Iterable[str]] = ..., framework_id: _Optional[str] = ..., grace_period_ms: _Optional[int] = ...) -> None: ...

class KillTasksResponse(_message.Message):
    __slots__ = ("items",)
    class Item(_message.Message):
        __slots__ = ("task_id", "framework_id", "outcome", "detail")
        TASK_ID_FIELD_NUMBER: _ClassVar[int]
        FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
        OUTCOME_FIELD_NUMBER: _ClassVar[int]
        DETAIL_FIELD_NUMBER: _ClassVar[int]
        task_id: str
        framework_id: str
        outcome: str
        detail: str
        def __init__(self, task_id: _Optional[str] = ..., framework_id: _Optional[str] = ..., outcome: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[KillTasksResponse.Item]
    def __init__(self, items: _Optional[_Iterable[_Union[KillTasksResponse.Item, _Mapping]]] = ...) -> None: ...

class TeardownFrameworkRequest(_message.Message):
    __slots__ = ("framework_id", "detail")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    detail: str
    def __init__(self, framework_id: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class TeardownFrameworkResponse(_message.Message):
    __slots__ = ("tasks_killed",)
    TASKS_KILLED_FIELD_NUMBER: _ClassVar[int]
    tasks_killed: int
    def __init__(self, tasks_killed: _Optional[int] = ...) -> None: ...

class ExplainRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class Explanation(_message.Message):
    __slots__ = ("id", "kind", "reason", "sentence", "evidence", "next_steps", "epoch", "version")
    class EvidenceEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ID_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    NEXT_STEPS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    id: str
    kind: str
    reason: WaitReason
    sentence: str
    evidence: _containers.ScalarMap[str, str]
    next_steps: _containers.RepeatedScalarFieldContainer[str]
    epoch: int
    version: int
    def __init__(self, id: _Optional[str] = ..., kind: _Optional[str] = ..., reason: _Optional[_Union[WaitReason, str]] = ..., sentence: _Optional[str] = ..., evidence: _Optional[_Mapping[str, str]] = ..., next_steps: _Optional[_Iterable[str]] = ..., epoch: _Optional[int] = ..., version: _Optional[int] = ...) -> None: ...

class GetPolicyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SetPolicyRequest(_message.Message):
    __slots__ = ("policy", "placement", "when_head_does_not_fit", "demand")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    WHEN_HEAD_DOES_NOT_FIT_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    policy: str
    placement: str
    when_head_does_not_fit: str
    demand: str
    def __init__(self, policy: _Optional[str] = ..., placement: _Optional[str] = ..., when_head_does_not_fit: _Optional[str] = ..., demand: _Optional[str] = ...) -> None: ...

class PolicyInfo(_message.Message):
    __slots__ = ("policy", "placement", "when_head_does_not_fit", "known_policies", "known_placements", "demand")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    WHEN_HEAD_DOES_NOT_FIT_FIELD_NUMBER: _ClassVar[int]
    KNOWN_POLICIES_FIELD_NUMBER: _ClassVar[int]
    KNOWN_PLACEMENTS_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    policy: str
    placement: str
    when_head_does_not_fit: str
    known_policies: _containers.RepeatedScalarFieldContainer[str]
    known_placements: _containers.RepeatedScalarFieldContainer[str]
    demand: str
    def __init__(self, policy: _Optional[str] = ..., placement: _Optional[str] = ..., when_head_does_not_fit: _Optional[str] = ..., known_policies: _Optional[_Iterable[str]] = ..., known_placements: _Optional[_Iterable[str]] = ..., demand: _Optional[str] = ...) -> None: ...

class SetWeightRequest(_message.Message):
    __slots__ = ("role", "weight", "resource_weights")
    class ResourceWeightsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ROLE_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    role: str
    weight: float
    resource_weights: _containers.ScalarMap[str, float]
    def __init__(self, role: _Optional[str] = ..., weight: _Optional[float] = ..., resource_weights: _Optional[_Mapping[str, float]] = ...) -> None: ...

class SetWeightResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class AllocationLogRequest(_message.Message):
    __slots__ = ("limit",)
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    limit: int
    def __init__(self, limit: _Optional[int] = ...) -> None: ...

class Decision(_message.Message):
    __slots__ = ("number", "time_ms", "framework_id", "role", "agent_id", "class_id", "units", "key_before", "key_after", "policy")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TIME_MS_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    CLASS_ID_FIELD_NUMBER: _ClassVar[int]
    UNITS_FIELD_NUMBER: _ClassVar[int]
    KEY_BEFORE_FIELD_NUMBER: _ClassVar[int]
    KEY_AFTER_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    number: int
    time_ms: int
    framework_id: str
    role: str
    agent_id: str
    class_id: str
    units: int
    key_before: float
    key_after: float
    policy: str
    def __init__(self, number: _Optional[int] = ..., time_ms: _Optional[int] = ..., framework_id: _Optional[str] = ..., role: _Optional[str] = ..., agent_id: _Optional[str] = ..., class_id: _Optional[str] = ..., units: _Optional[int] = ..., key_before: _Optional[float] = ..., key_after: _Optional[float] = ..., policy: _Optional[str] = ...) -> None: ...

class AllocationLogResponse(_message.Message):
    __slots__ = ("decisions",)
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    decisions: _containers.RepeatedCompositeFieldContainer[Decision]
    def __init__(self, decisions: _Optional[_Iterable[_Union[Decision, _Mapping]]] = ...) -> None: ...
