from fairlead_proto.v1 import agent_pb2 as _agent_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReadRequest(_message.Message):
    __slots__ = ("framework_id", "task_id", "path", "offset", "length", "wait_ms", "agent_id")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    task_id: str
    path: str
    offset: int
    length: int
    wait_ms: int
    agent_id: str
    def __init__(self, framework_id: _Optional[str] = ..., task_id: _Optional[str] = ..., path: _Optional[str] = ..., offset: _Optional[int] = ..., length: _Optional[int] = ..., wait_ms: _Optional[int] = ..., agent_id: _Optional[str] = ...) -> None: ...

class ReadResponse(_message.Message):
    __slots__ = ("offset", "data", "size", "complete")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    offset: int
    data: bytes
    size: int
    complete: bool
    def __init__(self, offset: _Optional[int] = ..., data: _Optional[bytes] = ..., size: _Optional[int] = ..., complete: bool = ...) -> None: ...

class ListFilesRequest(_message.Message):
    __slots__ = ("framework_id", "task_id", "path")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    task_id: str
    path: str
    def __init__(self, framework_id: _Optional[str] = ..., task_id: _Optional[str] = ..., path: _Optional[str] = ...) -> None: ...

class ListFilesResponse(_message.Message):
    __slots__ = ("entries",)
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[_agent_pb2.FileEntry]
    def __init__(self, entries: _Optional[_Iterable[_Union[_agent_pb2.FileEntry, _Mapping]]] = ...) -> None: ...

class FollowRequest(_message.Message):
    __slots__ = ("framework_id", "positions")
    FRAMEWORK_ID_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    framework_id: str
    positions: _containers.RepeatedCompositeFieldContainer[_agent_pb2.OutputPosition]
    def __init__(self, framework_id: _Optional[str] = ..., positions: _Optional[_Iterable[_Union[_agent_pb2.OutputPosition, _Mapping]]] = ...) -> None: ...

class Output(_message.Message):
    __slots__ = ("pieces",)
    PIECES_FIELD_NUMBER: _ClassVar[int]
    pieces: _containers.RepeatedCompositeFieldContainer[_agent_pb2.OutputPiece]
    def __init__(self, pieces: _Optional[_Iterable[_Union[_agent_pb2.OutputPiece, _Mapping]]] = ...) -> None: ...
