from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TaskState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_STATE_UNSPECIFIED: _ClassVar[TaskState]
    TASK_STATE_STAGING: _ClassVar[TaskState]
    TASK_STATE_STARTING: _ClassVar[TaskState]
    TASK_STATE_RUNNING: _ClassVar[TaskState]
    TASK_STATE_KILLING: _ClassVar[TaskState]
    TASK_STATE_FINISHED: _ClassVar[TaskState]
    TASK_STATE_FAILED: _ClassVar[TaskState]
    TASK_STATE_KILLED: _ClassVar[TaskState]
    TASK_STATE_ERROR: _ClassVar[TaskState]
    TASK_STATE_DROPPED: _ClassVar[TaskState]
    TASK_STATE_LOST: _ClassVar[TaskState]
    TASK_STATE_UNREACHABLE: _ClassVar[TaskState]
    TASK_STATE_GONE: _ClassVar[TaskState]

class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_UNSPECIFIED: _ClassVar[Reason]
    REASON_NONE: _ClassVar[Reason]
    REASON_EXITED: _ClassVar[Reason]
    REASON_SIGNALED: _ClassVar[Reason]
    REASON_OUT_OF_MEMORY: _ClassVar[Reason]
    REASON_COMMAND_NOT_FOUND: _ClassVar[Reason]
    REASON_COMMAND_NOT_EXECUTABLE: _ClassVar[Reason]
    REASON_SANDBOX_FAILED: _ClassVar[Reason]
    REASON_KILLED_BY_FRAMEWORK: _ClassVar[Reason]
    REASON_KILLED_BY_OPERATOR: _ClassVar[Reason]
    REASON_FRAMEWORK_REMOVED: _ClassVar[Reason]
    REASON_STAGING_TIMEOUT: _ClassVar[Reason]
    REASON_AGENT_DISCONNECTED: _ClassVar[Reason]
    REASON_AGENT_RESTARTED: _ClassVar[Reason]
    REASON_AGENT_REMOVED: _ClassVar[Reason]
    REASON_INVALID_TASK: _ClassVar[Reason]
    REASON_UNKNOWN_TASK: _ClassVar[Reason]
    REASON_RECONCILIATION: _ClassVar[Reason]
    REASON_EXECUTOR_FAILED: _ClassVar[Reason]
    REASON_MAX_RUNTIME: _ClassVar[Reason]
    REASON_AGENT_RETURNED: _ClassVar[Reason]
    REASON_INFEASIBLE: _ClassVar[Reason]
TASK_STATE_UNSPECIFIED: TaskState
TASK_STATE_STAGING: TaskState
TASK_STATE_STARTING: TaskState
TASK_STATE_RUNNING: TaskState
TASK_STATE_KILLING: TaskState
TASK_STATE_FINISHED: TaskState
TASK_STATE_FAILED: TaskState
TASK_STATE_KILLED: TaskState
TASK_STATE_ERROR: TaskState
TASK_STATE_DROPPED: TaskState
TASK_STATE_LOST: TaskState
TASK_STATE_UNREACHABLE: TaskState
TASK_STATE_GONE: TaskState
REASON_UNSPECIFIED: Reason
REASON_NONE: Reason
REASON_EXITED: Reason
REASON_SIGNALED: Reason
REASON_OUT_OF_MEMORY: Reason
REASON_COMMAND_NOT_FOUND: Reason
REASON_COMMAND_NOT_EXECUTABLE: Reason
REASON_SANDBOX_FAILED: Reason
REASON_KILLED_BY_FRAMEWORK: Reason
REASON_KILLED_BY_OPERATOR: Reason
REASON_FRAMEWORK_REMOVED: Reason
REASON_STAGING_TIMEOUT: Reason
REASON_AGENT_DISCONNECTED: Reason
REASON_AGENT_RESTARTED: Reason
REASON_AGENT_REMOVED: Reason
REASON_INVALID_TASK: Reason
REASON_UNKNOWN_TASK: Reason
REASON_RECONCILIATION: Reason
REASON_EXECUTOR_FAILED: Reason
REASON_MAX_RUNTIME: Reason
REASON_AGENT_RETURNED: Reason
REASON_INFEASIBLE: Reason

class Resources(_message.Message):
    __slots__ = ("cpus_milli", "mem_bytes", "disk_bytes", "gpus_milli", "custom_milli")
    class CustomMilliEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CPUS_MILLI_FIELD_NUMBER: _ClassVar[int]
    MEM_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_BYTES_FIELD_NUMBER: _ClassVar[int]
    GPUS_MILLI_FIELD_NUMBER: _ClassVar[int]
    CUSTOM_MILLI_FIELD_NUMBER: _ClassVar[int]
    cpus_milli: int
    mem_bytes: int
    disk_bytes: int
    gpus_milli: int
    custom_milli: _containers.ScalarMap[str, int]
    def __init__(self, cpus_milli: _Optional[int] = ..., mem_bytes: _Optional[int] = ..., disk_bytes: _Optional[int] = ..., gpus_milli: _Optional[int] = ..., custom_milli: _Optional[_Mapping[str, int]] = ...) -> None: ...

class TaskSpec(_message.Message):
    __slots__ = ("task_id", "name", "resources", "command", "environment", "working_directory", "kill_grace_period_ms", "max_runtime_ms", "labels", "no_files")
    class EnvironmentEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    RESOURCES_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    ENVIRONMENT_FIELD_NUMBER: _ClassVar[int]
    WORKING_DIRECTORY_FIELD_NUMBER: _ClassVar[int]
    KILL_GRACE_PERIOD_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_RUNTIME_MS_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    NO_FILES_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    name: str
    resources: Resources
    command: _containers.RepeatedScalarFieldContainer[str]
    environment: _containers.ScalarMap[str, str]
    working_directory: str
    kill_grace_period_ms: int
    max_runtime_ms: int
    labels: _containers.ScalarMap[str, str]
    no_files: bool
    def __init__(self, task_id: _Optional[str] = ..., name: _Optional[str] = ..., resources: _Optional[_Union[Resources, _Mapping]] = ..., command: _Optional[_Iterable[str]] = ..., environment: _Optional[_Mapping[str, str]] = ..., working_directory: _Optional[str] = ..., kill_grace_period_ms: _Optional[int] = ..., max_runtime_ms: _Optional[int] = ..., labels: _Optional[_Mapping[str, str]] = ..., no_files: bool = ...) -> None: ...

class TaskArray(_message.Message):
    __slots__ = ("template", "indices", "count", "arguments", "attempt")
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    INDICES_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    template: TaskSpec
    indices: _containers.RepeatedScalarFieldContainer[int]
    count: int
    arguments: _containers.RepeatedScalarFieldContainer[str]
    attempt: int
    def __init__(self, template: _Optional[_Union[TaskSpec, _Mapping]] = ..., indices: _Optional[_Iterable[int]] = ..., count: _Optional[int] = ..., arguments: _Optional[_Iterable[str]] = ..., attempt: _Optional[int] = ...) -> None: ...

class TaskUsage(_message.Message):
    __slots__ = ("cpu_time_ms", "mem_bytes", "mem_peak_bytes", "mem_limit_bytes", "sandbox_bytes", "stdout_bytes", "stderr_bytes")
    CPU_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    MEM_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEM_PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEM_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_BYTES_FIELD_NUMBER: _ClassVar[int]
    STDOUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    STDERR_BYTES_FIELD_NUMBER: _ClassVar[int]
    cpu_time_ms: int
    mem_bytes: int
    mem_peak_bytes: int
    mem_limit_bytes: int
    sandbox_bytes: int
    stdout_bytes: int
    stderr_bytes: int
    def __init__(self, cpu_time_ms: _Optional[int] = ..., mem_bytes: _Optional[int] = ..., mem_peak_bytes: _Optional[int] = ..., mem_limit_bytes: _Optional[int] = ..., sandbox_bytes: _Optional[int] = ..., stdout_bytes: _Optional[int] = ..., stderr_bytes: _Optional[int] = ...) -> None: ...

class TaskStatus(_message.Message):
    __slots__ = ("framework_id", "task_id", "agent_id", "sequence", "state", "reason", "message", "timestamp_ms", "exit_code", "signal", "usage")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_MS_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    task_id: str
    agent_id: str
    sequence: int
    state: TaskState
    reason: Reason
    message: str
    timestamp_ms: int
    exit_code: int
    signal: int
    usage: TaskUsage
    def __init__(self, framework_id: _Optional[str] = ..., task_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., sequence: _Optional[int] = ..., state: _Optional[_Union[TaskState, str]] = ..., reason: _Optional[_Union[Reason, str]] = ..., message: _Optional[str] = ..., timestamp_ms: _Optional[int] = ..., exit_code: _Optional[int] = ..., signal: _Optional[int] = ..., usage: _Optional[_Union[TaskUsage, _Mapping]] = ...) -> None: ...

class StatusColumns(_message.Message):
    __slots__ = ("framework_id", "agent_id", "task_ids", "sequences", "states", "reasons", "timestamps_ms", "exit_codes", "measured", "usage")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCES_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMPS_MS_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODES_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    agent_id: str
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    sequences: _containers.RepeatedScalarFieldContainer[int]
    states: _containers.RepeatedScalarFieldContainer[TaskState]
    reasons: _containers.RepeatedScalarFieldContainer[Reason]
    timestamps_ms: _containers.RepeatedScalarFieldContainer[int]
    exit_codes: _containers.RepeatedScalarFieldContainer[int]
    measured: _containers.RepeatedScalarFieldContainer[bool]
    usage: UsageColumns
    def __init__(self, framework_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., task_ids: _Optional[_Iterable[str]] = ..., sequences: _Optional[_Iterable[int]] = ..., states: _Optional[_Iterable[_Union[TaskState, str]]] = ..., reasons: _Optional[_Iterable[_Union[Reason, str]]] = ..., timestamps_ms: _Optional[_Iterable[int]] = ..., exit_codes: _Optional[_Iterable[int]] = ..., measured: _Optional[_Iterable[bool]] = ..., usage: _Optional[_Union[UsageColumns, _Mapping]] = ...) -> None: ...

class UsageColumns(_message.Message):
    __slots__ = ("cpu_time_ms", "mem_bytes", "mem_peak_bytes", "mem_limit_bytes", "sandbox_bytes", "stdout_bytes", "stderr_bytes")
    CPU_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    MEM_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEM_PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEM_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_BYTES_FIELD_NUMBER: _ClassVar[int]
    STDOUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    STDERR_BYTES_FIELD_NUMBER: _ClassVar[int]
    cpu_time_ms: _containers.RepeatedScalarFieldContainer[int]
    mem_bytes: _containers.RepeatedScalarFieldContainer[int]
    mem_peak_bytes: _containers.RepeatedScalarFieldContainer[int]
    mem_limit_bytes: _containers.RepeatedScalarFieldContainer[int]
    sandbox_bytes: _containers.RepeatedScalarFieldContainer[int]
    stdout_bytes: _containers.RepeatedScalarFieldContainer[int]
    stderr_bytes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, cpu_time_ms: _Optional[_Iterable[int]] = ..., mem_bytes: _Optional[_Iterable[int]] = ..., mem_peak_bytes: _Optional[_Iterable[int]] = ..., mem_limit_bytes: _Optional[_Iterable[int]] = ..., sandbox_bytes: _Optional[_Iterable[int]] = ..., stdout_bytes: _Optional[_Iterable[int]] = ..., stderr_bytes: _Optional[_Iterable[int]] = ...) -> None: ...

class AcknowledgementColumns(_message.Message):
    __slots__ = ("framework_id", "agent_id", "task_ids", "sequences")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCES_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    agent_id: str
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    sequences: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, framework_id: _Optional[str] = ..., agent_id: _Optional[str] = ..., task_ids: _Optional[_Iterable[str]] = ..., sequences: _Optional[_Iterable[int]] = ...) -> None: ...

class Constraint(_message.Message):
    __slots__ = ("attribute", "operator", "values")
    class Operator(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        OPERATOR_UNSPECIFIED: _ClassVar[Constraint.Operator]
        OPERATOR_EQUALS: _ClassVar[Constraint.Operator]
        OPERATOR_NOT_EQUALS: _ClassVar[Constraint.Operator]
        OPERATOR_EXISTS: _ClassVar[Constraint.Operator]
        OPERATOR_NOT_EXISTS: _ClassVar[Constraint.Operator]
        OPERATOR_MATCHES: _ClassVar[Constraint.Operator]
    OPERATOR_UNSPECIFIED: Constraint.Operator
    OPERATOR_EQUALS: Constraint.Operator
    OPERATOR_NOT_EQUALS: Constraint.Operator
    OPERATOR_EXISTS: Constraint.Operator
    OPERATOR_NOT_EXISTS: Constraint.Operator
    OPERATOR_MATCHES: Constraint.Operator
    ATTRIBUTE_FIELD_NUMBER: _ClassVar[int]
    OPERATOR_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    attribute: str
    operator: Constraint.Operator
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, attribute: _Optional[str] = ..., operator: _Optional[_Union[Constraint.Operator, str]] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...
