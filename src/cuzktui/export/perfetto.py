"""Perfetto's own protobuf (TrackEvent): integer nanoseconds of CLOCK_MONOTONIC, counters with units.

Needs the `perfetto` package (extra `trace`); the layout is that of the Chrome trace.
"""

from __future__ import annotations

from typing import Any

from cuzktui.export.layout import Async, Layout, Slice, Value, lay_out
from prover.errors import BadRequest
from prover.wire import Event

_SEQUENCE = 1
_REALTIME, _MONOTONIC, _BOOTTIME = 1, 3, 6
"""Perfetto's built-in clocks; its importer places everything on the boot clock and needs to be told how they relate."""


def render_perfetto(events: list[Event]) -> bytes:
    """The trace of a stream as a serialised `perfetto.protos.Trace`.

    Raises:
        BadRequest: the package is not installed.
    """
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
    except ImportError as error:
        raise BadRequest("perfetto export needs the package `perfetto`: pip install 'cuzktui[trace]'") from error
    writer = _Writer(pb, lay_out(events))
    return writer.trace().SerializeToString()


class _Writer:
    """One trace under construction; `_uuid` hands out track numbers."""

    def __init__(self, pb: Any, layout: Layout) -> None:
        self._pb, self._layout = pb, layout
        self._trace: Any = pb.Trace()
        self._uuid = 100
        self._timed: list[tuple[int, int, Any]] = []

    def trace(self) -> Any:
        """The whole trace, packets in order of time."""
        self._clocks()
        for process, name in self._layout.processes.items():
            track = self._track(process, None)
            track.process.pid, track.process.process_name = process, name
        self._lanes()
        self._counters()
        self._asyncs()
        for mark in self._layout.instants:
            event = self._event(mark.t_ns, 2, mark.process, "TYPE_INSTANT", mark.name, "mark")
            self._annotate(event, mark.args)
        self._timed.sort(key=lambda entry: entry[:2])
        for _, _, packet in self._timed:
            self._trace.packet.append(packet)
        self._trace.packet[0].sequence_flags = self._pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        return self._trace

    def _clocks(self) -> None:
        """One instant on every clock: run time counts as boot time, which differs only by sleep of the host."""
        packet = self._trace.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.clock_snapshot.primary_trace_clock = _MONOTONIC
        base_ns = self._layout.base_ns
        for clock, t_ns in ((_MONOTONIC, base_ns), (_BOOTTIME, base_ns), (_REALTIME, self._layout.unix_ns)):
            entry = packet.clock_snapshot.clocks.add()
            entry.clock_id, entry.timestamp = clock, max(0, t_ns)

    def _lanes(self) -> None:
        flows = {stop: flow.ident for flow in self._layout.flows for stop in flow.stops}
        for lane in self._layout.lanes:
            uuid = self._next()
            track = self._track(uuid, lane.process)
            track.name, track.sibling_order_rank = lane.name, lane.thread
            for piece in lane.slices:
                begin = self._slice(uuid, piece)
                flow = flows.get((piece.begin_ns, lane.process, lane.thread))
                if flow is not None and piece.category == "stage":
                    begin.flow_ids.append(flow)

    def _counters(self) -> None:
        units = {"bytes": self._pb.CounterDescriptor.UNIT_SIZE_BYTES, "count": self._pb.CounterDescriptor.UNIT_COUNT}
        for counter in self._layout.counters:
            for column, key in enumerate(counter.keys):
                uuid = self._next()
                track = self._track(uuid, counter.process)
                track.name = f"{counter.name} {key}" if len(counter.keys) > 1 else counter.name
                if counter.unit in units:
                    track.counter.unit = units[counter.unit]
                else:
                    track.counter.unit_name = counter.unit
                for t_ns, values in counter.rows:
                    event = self._event(t_ns, 2, uuid, "TYPE_COUNTER")
                    event.double_counter_value = values[column]

    def _asyncs(self) -> None:
        for piece in self._layout.asyncs:
            uuid = self._next()
            self._track(uuid, piece.process).name = piece.category
            self._slice(uuid, piece)

    def _slice(self, uuid: int, piece: Slice | Async) -> Any:
        """Begin and end of a slice; returns the begin event."""
        begin = self._event(piece.begin_ns, 3, uuid, "TYPE_SLICE_BEGIN", piece.name, piece.category)
        self._annotate(begin, piece.args)
        self._event(piece.end_ns, 1 if piece.end_ns > piece.begin_ns else 4, uuid, "TYPE_SLICE_END")
        return begin

    def _next(self) -> int:
        self._uuid += 1
        return self._uuid

    def _track(self, uuid: int, parent: int | None) -> Any:
        packet = self._trace.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.track_descriptor.uuid = uuid
        if parent is not None:
            packet.track_descriptor.parent_uuid = parent
        return packet.track_descriptor

    def _event(self, t_ns: int, rank: int, uuid: int, kind: str, name: str = "", category: str = "") -> Any:
        """A timed event; at one instant slices end (1) before counters (2) and before others begin (3)."""
        packet = self._pb.TracePacket()
        packet.timestamp, packet.timestamp_clock_id = t_ns, _MONOTONIC
        packet.trusted_packet_sequence_id = _SEQUENCE
        event = packet.track_event
        event.type, event.track_uuid = getattr(self._pb.TrackEvent, kind), uuid
        if name:
            event.name = name
        if category:
            event.categories.append(category)
        self._timed.append((t_ns, rank, packet))
        return event

    def _annotate(self, event: Any, args: dict[str, Value]) -> None:
        for key, value in args.items():
            note = event.debug_annotations.add()
            note.name = key
            if isinstance(value, bool):
                note.bool_value = value
            elif isinstance(value, int):
                note.int_value = value
            elif isinstance(value, float):
                note.double_value = value
            else:
                note.string_value = value
