from fairlead_proto.v1 import types_pb2 as _types_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FileCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FILE_CODE_UNSPECIFIED: _ClassVar[FileCode]
    FILE_CODE_OK: _ClassVar[FileCode]
    FILE_CODE_NOT_FOUND: _ClassVar[FileCode]
    FILE_CODE_OUTSIDE_SANDBOX: _ClassVar[FileCode]
    FILE_CODE_UNREADABLE: _ClassVar[FileCode]
    FILE_CODE_COLLECTED: _ClassVar[FileCode]

class RefusalCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REFUSAL_CODE_UNSPECIFIED: _ClassVar[RefusalCode]
    REFUSAL_CODE_INVALID: _ClassVar[RefusalCode]
    REFUSAL_CODE_OLD_EPOCH: _ClassVar[RefusalCode]
    REFUSAL_CODE_SUPERSEDED: _ClassVar[RefusalCode]
    REFUSAL_CODE_TOO_SLOW: _ClassVar[RefusalCode]
    REFUSAL_CODE_LIMIT: _ClassVar[RefusalCode]
FILE_CODE_UNSPECIFIED: FileCode
FILE_CODE_OK: FileCode
FILE_CODE_NOT_FOUND: FileCode
FILE_CODE_OUTSIDE_SANDBOX: FileCode
FILE_CODE_UNREADABLE: FileCode
FILE_CODE_COLLECTED: FileCode
REFUSAL_CODE_UNSPECIFIED: RefusalCode
REFUSAL_CODE_INVALID: RefusalCode
REFUSAL_CODE_OLD_EPOCH: RefusalCode
REFUSAL_CODE_SUPERSEDED: RefusalCode
REFUSAL_CODE_TOO_SLOW: RefusalCode
REFUSAL_CODE_LIMIT: RefusalCode

class AgentMessages(_message.Message):
    __slots__ = ("messages",)
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    messages: _containers.RepeatedCompositeFieldContainer[AgentMessage]
    def __init__(self, messages: _Optional[_Iterable[_Union[AgentMessage, _Mapping]]] = ...) -> None: ...

class AgentMessage(_message.Message):
    __slots__ = ("register", "heartbeat", "statuses", "file_chunk", "goodbye")
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    FILE_CHUNK_FIELD_NUMBER: _ClassVar[int]
    GOODBYE_FIELD_NUMBER: _ClassVar[int]
    register: Register
    heartbeat: AgentHeartbeat
    statuses: StatusReports
    file_chunk: FileChunk
    goodbye: Goodbye
    def __init__(self, register: _Optional[_Union[Register, _Mapping]] = ..., heartbeat: _Optional[_Union[AgentHeartbeat, _Mapping]] = ..., statuses: _Optional[_Union[StatusReports, _Mapping]] = ..., file_chunk: _Optional[_Union[FileChunk, _Mapping]] = ..., goodbye: _Optional[_Union[Goodbye, _Mapping]] = ...) -> None: ...

class Register(_message.Message):
    __slots__ = ("agent_id", "incarnation", "hostname", "total", "attributes", "tasks", "unacknowledged", "last_epoch", "agent_time_ms", "isolation", "version", "answers_ping", "capabilities")
    class AttributesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    HOSTNAME_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    UNACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    LAST_EPOCH_FIELD_NUMBER: _ClassVar[int]
    AGENT_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    ISOLATION_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_PING_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    incarnation: int
    hostname: str
    total: _types_pb2.Resources
    attributes: _containers.ScalarMap[str, str]
    tasks: _containers.RepeatedCompositeFieldContainer[RunningTask]
    unacknowledged: _containers.RepeatedCompositeFieldContainer[_types_pb2.TaskStatus]
    last_epoch: int
    agent_time_ms: int
    isolation: str
    version: str
    answers_ping: bool
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, agent_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., hostname: _Optional[str] = ..., total: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., attributes: _Optional[_Mapping[str, str]] = ..., tasks: _Optional[_Iterable[_Union[RunningTask, _Mapping]]] = ..., unacknowledged: _Optional[_Iterable[_Union[_types_pb2.TaskStatus, _Mapping]]] = ..., last_epoch: _Optional[int] = ..., agent_time_ms: _Optional[int] = ..., isolation: _Optional[str] = ..., version: _Optional[str] = ..., answers_ping: bool = ..., capabilities: _Optional[_Iterable[str]] = ...) -> None: ...

class RunningTask(_message.Message):
    __slots__ = ("framework_id", "task", "state", "sequence", "ran_ms")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    RAN_MS_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    task: _types_pb2.TaskSpec
    state: _types_pb2.TaskState
    sequence: int
    ran_ms: int
    def __init__(self, framework_id: _Optional[str] = ..., task: _Optional[_Union[_types_pb2.TaskSpec, _Mapping]] = ..., state: _Optional[_Union[_types_pb2.TaskState, str]] = ..., sequence: _Optional[int] = ..., ran_ms: _Optional[int] = ...) -> None: ...

class AgentHeartbeat(_message.Message):
    __slots__ = ("agent_time_ms", "used", "tasks")
    AGENT_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    agent_time_ms: int
    used: _types_pb2.Resources
    tasks: _containers.RepeatedCompositeFieldContainer[TaskUsageReport]
    def __init__(self, agent_time_ms: _Optional[int] = ..., used: _Optional[_Union[_types_pb2.Resources, _Mapping]] = ..., tasks: _Optional[_Iterable[_Union[TaskUsageReport, _Mapping]]] = ...) -> None: ...

class TaskUsageReport(_message.Message):
    __slots__ = ("framework_id", "task_id", "usage")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    task_id: str
    usage: _types_pb2.TaskUsage
    def __init__(self, framework_id: _Optional[str] = ..., task_id: _Optional[str] = ..., usage: _Optional[_Union[_types_pb2.TaskUsage, _Mapping]] = ...) -> None: ...

class StatusReports(_message.Message):
    __slots__ = ("statuses", "columns")
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    statuses: _containers.RepeatedCompositeFieldContainer[_types_pb2.TaskStatus]
    columns: _containers.RepeatedCompositeFieldContainer[_types_pb2.StatusColumns]
    def __init__(self, statuses: _Optional[_Iterable[_Union[_types_pb2.TaskStatus, _Mapping]]] = ..., columns: _Optional[_Iterable[_Union[_types_pb2.StatusColumns, _Mapping]]] = ...) -> None: ...

class FileAnswers(_message.Message):
    __slots__ = ("token", "chunks", "followed")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    FOLLOWED_FIELD_NUMBER: _ClassVar[int]
    token: str
    chunks: _containers.RepeatedCompositeFieldContainer[FileChunk]
    followed: _containers.RepeatedCompositeFieldContainer[FollowedOutput]
    def __init__(self, token: _Optional[str] = ..., chunks: _Optional[_Iterable[_Union[FileChunk, _Mapping]]] = ..., followed: _Optional[_Iterable[_Union[FollowedOutput, _Mapping]]] = ...) -> None: ...

class FileRequests(_message.Message):
    __slots__ = ("requests", "follow", "taken", "unfollow")
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    FOLLOW_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    UNFOLLOW_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[FileRequest]
    follow: _containers.RepeatedCompositeFieldContainer[FollowOutput]
    taken: _containers.RepeatedScalarFieldContainer[int]
    unfollow: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, requests: _Optional[_Iterable[_Union[FileRequest, _Mapping]]] = ..., follow: _Optional[_Iterable[_Union[FollowOutput, _Mapping]]] = ..., taken: _Optional[_Iterable[int]] = ..., unfollow: _Optional[_Iterable[int]] = ...) -> None: ...

class FollowOutput(_message.Message):
    __slots__ = ("follow_id", "framework_id", "positions", "window_bytes")
    FOLLOW_ID_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    follow_id: int
    framework_id: str
    positions: _containers.RepeatedCompositeFieldContainer[OutputPosition]
    window_bytes: int
    def __init__(self, follow_id: _Optional[int] = ..., framework_id: _Optional[str] = ..., positions: _Optional[_Iterable[_Union[OutputPosition, _Mapping]]] = ..., window_bytes: _Optional[int] = ...) -> None: ...

class OutputPosition(_message.Message):
    __slots__ = ("task_id", "stdout_offset", "stderr_offset")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    STDOUT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    STDERR_OFFSET_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    stdout_offset: int
    stderr_offset: int
    def __init__(self, task_id: _Optional[str] = ..., stdout_offset: _Optional[int] = ..., stderr_offset: _Optional[int] = ...) -> None: ...

class FollowedOutput(_message.Message):
    __slots__ = ("follow_id", "pieces")
    FOLLOW_ID_FIELD_NUMBER: _ClassVar[int]
    PIECES_FIELD_NUMBER: _ClassVar[int]
    follow_id: int
    pieces: _containers.RepeatedCompositeFieldContainer[OutputPiece]
    def __init__(self, follow_id: _Optional[int] = ..., pieces: _Optional[_Iterable[_Union[OutputPiece, _Mapping]]] = ...) -> None: ...

class OutputPiece(_message.Message):
    __slots__ = ("task_id", "path", "offset", "data", "complete")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    path: str
    offset: int
    data: bytes
    complete: bool
    def __init__(self, task_id: _Optional[str] = ..., path: _Optional[str] = ..., offset: _Optional[int] = ..., data: _Optional[bytes] = ..., complete: bool = ...) -> None: ...

class FileChunk(_message.Message):
    __slots__ = ("request_id", "code", "detail", "offset", "data", "size", "complete", "entries")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    code: FileCode
    detail: str
    offset: int
    data: bytes
    size: int
    complete: bool
    entries: _containers.RepeatedCompositeFieldContainer[FileEntry]
    def __init__(self, request_id: _Optional[int] = ..., code: _Optional[_Union[FileCode, str]] = ..., detail: _Optional[str] = ..., offset: _Optional[int] = ..., data: _Optional[bytes] = ..., size: _Optional[int] = ..., complete: bool = ..., entries: _Optional[_Iterable[_Union[FileEntry, _Mapping]]] = ...) -> None: ...

class FileEntry(_message.Message):
    __slots__ = ("path", "size", "modified_ms", "is_directory")
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_MS_FIELD_NUMBER: _ClassVar[int]
    IS_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    path: str
    size: int
    modified_ms: int
    is_directory: bool
    def __init__(self, path: _Optional[str] = ..., size: _Optional[int] = ..., modified_ms: _Optional[int] = ..., is_directory: bool = ...) -> None: ...

class Goodbye(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class MasterMessages(_message.Message):
    __slots__ = ("epoch", "messages")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    messages: _containers.RepeatedCompositeFieldContainer[MasterMessage]
    def __init__(self, epoch: _Optional[int] = ..., messages: _Optional[_Iterable[_Union[MasterMessage, _Mapping]]] = ...) -> None: ...

class MasterMessage(_message.Message):
    __slots__ = ("registered", "launch", "kill", "acknowledge", "file_request", "refused", "ping")
    REGISTERED_FIELD_NUMBER: _ClassVar[int]
    LAUNCH_FIELD_NUMBER: _ClassVar[int]
    KILL_FIELD_NUMBER: _ClassVar[int]
    ACKNOWLEDGE_FIELD_NUMBER: _ClassVar[int]
    FILE_REQUEST_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    registered: Registered
    launch: Launch
    kill: KillTasks
    acknowledge: AcknowledgeStatuses
    file_request: FileRequest
    refused: RegistrationRefused
    ping: Ping
    def __init__(self, registered: _Optional[_Union[Registered, _Mapping]] = ..., launch: _Optional[_Union[Launch, _Mapping]] = ..., kill: _Optional[_Union[KillTasks, _Mapping]] = ..., acknowledge: _Optional[_Union[AcknowledgeStatuses, _Mapping]] = ..., file_request: _Optional[_Union[FileRequest, _Mapping]] = ..., refused: _Optional[_Union[RegistrationRefused, _Mapping]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ...) -> None: ...

class Registered(_message.Message):
    __slots__ = ("agent_id", "epoch", "heartbeat_interval_ms", "version", "capabilities", "files_token")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    HEARTBEAT_INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    FILES_TOKEN_FIELD_NUMBER: _ClassVar[int]
    agent_id: str
    epoch: int
    heartbeat_interval_ms: int
    version: str
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    files_token: str
    def __init__(self, agent_id: _Optional[str] = ..., epoch: _Optional[int] = ..., heartbeat_interval_ms: _Optional[int] = ..., version: _Optional[str] = ..., capabilities: _Optional[_Iterable[str]] = ..., files_token: _Optional[str] = ...) -> None: ...

class RegistrationRefused(_message.Message):
    __slots__ = ("code", "detail")
    CODE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    code: RefusalCode
    detail: str
    def __init__(self, code: _Optional[_Union[RefusalCode, str]] = ..., detail: _Optional[str] = ...) -> None: ...

class Launch(_message.Message):
    __slots__ = ("tasks", "arrays")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[LaunchTask]
    arrays: _containers.RepeatedCompositeFieldContainer[LaunchArray]
    def __init__(self, tasks: _Optional[_Iterable[_Union[LaunchTask, _Mapping]]] = ..., arrays: _Optional[_Iterable[_Union[LaunchArray, _Mapping]]] = ...) -> None: ...

class LaunchArray(_message.Message):
    __slots__ = ("framework_id", "array")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    ARRAY_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    array: _types_pb2.TaskArray
    def __init__(self, framework_id: _Optional[str] = ..., array: _Optional[_Union[_types_pb2.TaskArray, _Mapping]] = ...) -> None: ...

class LaunchTask(_message.Message):
    __slots__ = ("framework_id", "task")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    task: _types_pb2.TaskSpec
    def __init__(self, framework_id: _Optional[str] = ..., task: _Optional[_Union[_types_pb2.TaskSpec, _Mapping]] = ...) -> None: ...

class KillTasks(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[KillTask]
    def __init__(self, tasks: _Optional[_Iterable[_Union[KillTask, _Mapping]]] = ...) -> None: ...

class KillTask(_message.Message):
    __slots__ = ("framework_id", "task_id", "grace_period_ms", "reason")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    GRACE_PERIOD_MS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    task_id: str
    grace_period_ms: int
    reason: _types_pb2.Reason
    def __init__(self, framework_id: _Optional[str] = ..., task_id: _Optional[str] = ..., grace_period_ms: _Optional[int] = ..., reason: _Optional[_Union[_types_pb2.Reason, str]] = ...) -> None: ...

class AcknowledgeStatuses(_message.Message):
    __slots__ = ("items", "columns")
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[StatusAcknowledgement]
    columns: _containers.RepeatedCompositeFieldContainer[_types_pb2.AcknowledgementColumns]
    def __init__(self, items: _Optional[_Iterable[_Union[StatusAcknowledgement, _Mapping]]] = ..., columns: _Optional[_Iterable[_Union[_types_pb2.AcknowledgementColumns, _Mapping]]] = ...) -> None: ...

class StatusAcknowledgement(_message.Message):
    __slots__ = ("framework_id", "task_id", "sequence")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    task_id: str
    sequence: int
    def __init__(self, framework_id: _Optional[str] = ..., task_id: _Optional[str] = ..., sequence: _Optional[int] = ...) -> None: ...

class FileRequest(_message.Message):
    __slots__ = ("request_id", "framework_id", "task_id", "path", "offset", "length", "wait_ms", "list")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    LIST_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    framework_id: str
    task_id: str
    path: str
    offset: int
    length: int
    wait_ms: int
    list: bool
    def __init__(self, request_id: _Optional[int] = ..., framework_id: _Optional[str] = ..., task_id: _Optional[str] = ..., path: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ..., wait_ms: _Optional[int] = ..., list: bool = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
