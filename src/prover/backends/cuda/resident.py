"""A proving key for one card: uploaded once where it fits, else its queries are streamed from the host in turn."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from prover import wire
from prover.backends.cuda.device import Device
from prover.backends.cuda.failures import OutOfDeviceMemory
from prover.backends.cuda.launch import Memory, Window
from prover.keys import ProvingKey, QueryName
from prover.profile import G1_BYTES
from prover.run import Run, now
from prover.wire import Stage

UPLOAD_CHUNK_BYTES = 256 << 20
WORKING_SHARE = 0.25
"""Part of the card that a key must leave to the working memory of a proof."""


@dataclass(frozen=True, slots=True)
class DeviceQuery:
    """Points of one query and how they find their scalars."""

    points: Memory | None
    """None where they are streamed."""
    count: int
    wires: Memory | None
    first_wire: int
    class_of: QueryName
    """Query whose classification of the scalars this one shares: itself, or one with the same wires."""


def require_room(key_bytes: int, device: Device) -> None:
    """Raises OutOfDeviceMemory where a key of this size would leave too little for a proof."""
    for attempt in range(2):
        free, total = device.memory_bytes
        if key_bytes <= free - WORKING_SHARE * total:
            return
        if attempt == 0:
            device.trim()
    raise OutOfDeviceMemory(key_bytes, free, device.name)


class Placement(StrEnum):
    """Where a key's points live between proofs."""

    AUTO = "auto"
    """On the card where they leave it enough working memory, else on the host."""
    DEVICE = "device"
    HOST = "host"


class CudaKey:
    """Implements `prover.backends.ResidentKey`.

    Raises:
        OutOfDeviceMemory: the card cannot hold what its placement needs: the key, or its largest query.
    """

    def __init__(self, key: ProvingKey, device: Device, run: Run, placement: Placement = Placement.AUTO) -> None:
        self.key, self._device, self._run = key, device, run
        self.is_streamed = self._choose(placement)
        self._streamed: tuple[QueryName | None, Memory] | None = None
        began = now()
        self._done_bytes = 0
        self.h = None if self.is_streamed else self._upload(key.h_query, run)
        self.queries: dict[QueryName, DeviceQuery] = {}
        for name in QueryName:
            self._add(name, run)
        if self.is_streamed:
            return
        self._announce()
        run.emit(
            wire.Span(
                t_ns=now(), job_id=run.job_id, name="upload key", begin_ns=began, stage=Stage.SRS,
                lane=f"cuda:{device.index} copy", moved_bytes=key.size_bytes,
            )
        )  # fmt: skip

    @staticmethod
    def of(key: ProvingKey, device: Device, run: Run, h: Memory, queries: dict[QueryName, DeviceQuery]) -> CudaKey:
        """A key whose points are on the card already."""
        made = CudaKey.__new__(CudaKey)
        made.key, made._device, made._run, made.h, made.queries = key, device, run, h, queries
        made.is_streamed, made._streamed = False, None
        made._announce()
        return made

    def points(self, name: QueryName | None, run: Run) -> Memory:
        """Points of a query on the card (None: the H query); a streamed one stays until another is asked for."""
        resident = self.h if name is None else self.queries[name].points
        if resident is not None:
            return resident
        if self._streamed is None or self._streamed[0] is not name:
            self._streamed = None
            began = now()
            points = self.key.h_query if name is None else self.key.query(name).points
            self._streamed = (name, self._upload(points, run))
            run.emit(
                wire.Span(
                    t_ns=now(), job_id=run.job_id, name=f"stream {name or 'h'}", begin_ns=began,
                    lane=f"cuda:{self._device.index} copy", moved_bytes=points.nbytes,
                )
            )  # fmt: skip
        return self._streamed[1]

    def _choose(self, placement: Placement) -> bool:
        """Whether the key is streamed."""
        if placement is not Placement.HOST:
            try:
                require_room(self.key.size_bytes, self._device)
                return False
            except OutOfDeviceMemory:
                if placement is Placement.DEVICE:
                    raise
        key = self.key
        require_room(max(len(key.h_query) * G1_BYTES, *(key.query(q).points.nbytes for q in QueryName)), self._device)
        self._run.notice(
            f"{self._device.name}: the proving key of {key.size_bytes / 1e9:.1f} GB stays on the host; its queries are "
            "streamed, one at a time",
            "info" if placement is Placement.HOST else "warning",
        )
        return True

    def _announce(self) -> None:
        self._buffer_id = (1 << 40) + now() % (1 << 40)
        self._run.emit(
            wire.BufferAllocated(
                t_ns=now(), buffer_id=self._buffer_id, job_id=self._run.job_id, label="proving key",
                owner=wire.Owner.SRS, place=wire.Place.DEVICE, size_bytes=self.key.size_bytes, stage=Stage.SRS,
                device=self._device.name,
            )
        )  # fmt: skip

    def close(self) -> None:
        """Gives the device memory back to the card."""
        began = now()
        if not self.queries:
            return
        self.queries.clear()
        self.h = self._streamed = None
        self._device.trim()
        if self.is_streamed:
            return
        self._run.emit(
            wire.BufferReleased(
                t_ns=now(), buffer_id=self._buffer_id, begin_ns=began, size_bytes=self.key.size_bytes, how="device"
            )
        )

    def _add(self, name: QueryName, run: Run) -> None:
        query = self.key.query(name)
        same = name
        for other, there in self.queries.items():
            known = self.key.query(other)
            if len(known.points) == len(query.points) and known.first_wire == query.first_wire and (
                known.wires is query.wires
                or (known.wires is not None and query.wires is not None and np.array_equal(known.wires, query.wires))
            ):  # fmt: skip
                same = there.class_of
                break
        wires = self.queries[same].wires if same in self.queries else None
        if wires is None and query.wires is not None:
            wires = self._upload(query.wires, run)
        points = None if self.is_streamed else self._upload(query.points, run)
        first_wire = 0 if wires is not None else query.first_wire
        self.queries[name] = DeviceQuery(points, len(query.points), wires, first_wire, same)

    def _upload(self, values: npt.NDArray, run: Run) -> Memory:
        flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        memory = self._device.empty(max(flat.nbytes, 16))
        for low in range(0, flat.nbytes, UPLOAD_CHUNK_BYTES):
            run.check()
            part = flat[low : low + UPLOAD_CHUNK_BYTES]
            self._device.copy_in(Window(memory, low, part.nbytes), part)
            self._device.synchronize()
            self._done_bytes += part.nbytes
            if not self.is_streamed:
                run.progress(Stage.SRS, self._done_bytes, self.key.size_bytes, "bytes", what="key to the GPU")
        return memory
