from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class SubmitRequest(_message.Message):
    __slots__ = ("circuit", "num_circuits", "policy", "job_id", "client", "zkey_path", "wtns_path", "c1_path", "key_path", "backend")
    CIRCUIT_FIELD_NUMBER: _ClassVar[int]
    NUM_CIRCUITS_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    ZKEY_PATH_FIELD_NUMBER: _ClassVar[int]
    WTNS_PATH_FIELD_NUMBER: _ClassVar[int]
    C1_PATH_FIELD_NUMBER: _ClassVar[int]
    KEY_PATH_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    circuit: str
    num_circuits: int
    policy: str
    job_id: str
    client: str
    zkey_path: str
    wtns_path: str
    c1_path: str
    key_path: str
    backend: str
    def __init__(self, circuit: _Optional[str] = ..., num_circuits: _Optional[int] = ..., policy: _Optional[str] = ..., job_id: _Optional[str] = ..., client: _Optional[str] = ..., zkey_path: _Optional[str] = ..., wtns_path: _Optional[str] = ..., c1_path: _Optional[str] = ..., key_path: _Optional[str] = ..., backend: _Optional[str] = ...) -> None: ...

class SubmitReply(_message.Message):
    __slots__ = ("job_id", "queue_position")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    QUEUE_POSITION_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    queue_position: int
    def __init__(self, job_id: _Optional[str] = ..., queue_position: _Optional[int] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("job_id",)
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    def __init__(self, job_id: _Optional[str] = ...) -> None: ...

class CancelReply(_message.Message):
    __slots__ = ("was_running", "was_queued")
    WAS_RUNNING_FIELD_NUMBER: _ClassVar[int]
    WAS_QUEUED_FIELD_NUMBER: _ClassVar[int]
    was_running: bool
    was_queued: bool
    def __init__(self, was_running: _Optional[bool] = ..., was_queued: _Optional[bool] = ...) -> None: ...

class PolicyRequest(_message.Message):
    __slots__ = ("policy",)
    POLICY_FIELD_NUMBER: _ClassVar[int]
    policy: str
    def __init__(self, policy: _Optional[str] = ...) -> None: ...

class PolicyReply(_message.Message):
    __slots__ = ("policy",)
    POLICY_FIELD_NUMBER: _ClassVar[int]
    policy: str
    def __init__(self, policy: _Optional[str] = ...) -> None: ...

class ListCircuitsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListCircuitsReply(_message.Message):
    __slots__ = ("usage",)
    USAGE_FIELD_NUMBER: _ClassVar[int]
    usage: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, usage: _Optional[_Iterable[str]] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("client",)
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    client: str
    def __init__(self, client: _Optional[str] = ...) -> None: ...

class EventLine(_message.Message):
    __slots__ = ("line",)
    LINE_FIELD_NUMBER: _ClassVar[int]
    line: bytes
    def __init__(self, line: _Optional[bytes] = ...) -> None: ...

class ShutdownRequest(_message.Message):
    __slots__ = ("even_if_busy",)
    EVEN_IF_BUSY_FIELD_NUMBER: _ClassVar[int]
    even_if_busy: bool
    def __init__(self, even_if_busy: _Optional[bool] = ...) -> None: ...

class ShutdownReply(_message.Message):
    __slots__ = ("accepted", "jobs_of_others")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    JOBS_OF_OTHERS_FIELD_NUMBER: _ClassVar[int]
    accepted: bool
    jobs_of_others: int
    def __init__(self, accepted: _Optional[bool] = ..., jobs_of_others: _Optional[int] = ...) -> None: ...
