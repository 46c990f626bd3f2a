"""The machine panel shows the GPU as NVML reads it, or says why there is none and shows the processors instead."""

from __future__ import annotations

import textwrap

from cuzktui import format as fmt
from cuzktui.model.snapshot import GpuView, ProcessView, Snapshot
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.dots import bar
from cuzktui.widgets.frame import Words, framed, words
from cuzktui.widgets.grid import Grid
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View


class MachinePanel(Canvas):
    """GPU, or host."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        return machine_grid(view, width, height)


def machine_grid(view: View, width: int, height: int) -> Grid:
    """The panel as text."""
    snapshot = view.snapshot
    if snapshot.gpus:
        first = snapshot.gpus[min(snapshot.gpus)]
        name = first.last.name or "GPU"
        title: Words = [(f"gpu {first.last.device}", Role.TITLE), (f" · {name}", Role.MUTED)]
        lines = _gpu_lines(first)
        others = [_short(gpu) for device, gpu in sorted(snapshot.gpus.items()) if gpu is not first]
        lines += others + _host_lines(snapshot)
        meter = first.last.util_percent
    else:
        title = [("host", Role.TITLE), (" · no GPU", Role.MUTED)]
        lines = _host_lines(snapshot)
        reason = snapshot.gpu_note or "no reading from NVML yet"
        lines += [[(text, Role.FAINT)] for text in textwrap.wrap(reason, max(8, width - 4))]
        meter = snapshot.host.cpu_busy_percent if snapshot.host is not None else None
    grid = framed(width, height, view.glyphs, title)
    inside = height - 2
    if inside < 1 or width < 16:
        return grid
    y = 1
    if inside >= 4:
        label = "util " if snapshot.gpus else "cpu  "
        x = grid.put(2, y, label, Role.MUTED)
        filled, rest = bar(None if meter is None else meter / 100, max(0, width - 4 - len(label) - 6), view.glyphs)
        x = grid.put(x, y, filled, Role.GPU if snapshot.gpus else Role.USER)
        grid.put(x, y, rest, Role.GRID)
        grid.put_right(width - 2, y, fmt.percent(meter), Role.STRONG)
        y += 1
    for line in lines[: inside - y + 1]:
        words(grid, 2, y, line, width - 4, view.glyphs)
        y += 1
    return grid


def _gpu_lines(gpu: GpuView) -> list[Words]:
    last = gpu.last
    lines: list[Words] = [
        [("mem  ", Role.MUTED), (fmt.size_of(last.mem_used_bytes, last.mem_total_bytes), Role.TEXT),
         (" · ours ", Role.MUTED), (fmt.size(last.process_bytes), Role.TEXT)],
        [("power ", Role.MUTED), (fmt.quantity(last.power_w, "W"), Role.TEXT), ("  sm ", Role.MUTED),
         (fmt.quantity(last.sm_mhz, "MHz"), Role.TEXT), (f"  {fmt.quantity(last.temperature_c, '°C')}", Role.TEXT)],
        [("pcie ↓ ", Role.MUTED), (fmt.rate(last.pcie_rx_bytes_per_s), Role.TEXT), (" ↑ ", Role.MUTED),
         (fmt.rate(last.pcie_tx_bytes_per_s), Role.TEXT)],
    ]  # fmt: skip
    if last.error:
        lines.insert(0, [(last.error, Role.BAD)])
    if last.throttle:
        lines.append([("throttled: ", Role.WARN), (last.throttle, Role.WARN)])
    return lines


def _short(gpu: GpuView) -> Words:
    last = gpu.last
    memory = fmt.size_of(last.mem_used_bytes, last.mem_total_bytes)
    return [(f"gpu {last.device}  ", Role.MUTED), (f"{fmt.percent(last.util_percent)}  {memory}", Role.TEXT)]


def _host_lines(snapshot: Snapshot) -> list[Words]:
    host, process = snapshot.host, snapshot.process
    lines: list[Words] = []
    if process is not None:
        lines.append(_threads(process))
    if host is not None:
        lines.append(
            [("pressure cpu ", Role.MUTED), (fmt.percent(host.cpu_pressure_percent), Role.TEXT),
             (" · memory ", Role.MUTED), (fmt.percent(host.mem_pressure_percent), Role.TEXT)]
        )  # fmt: skip
        if host.oom_kills:
            lines.append([(f"{host.oom_kills} killed for memory in this cgroup", Role.BAD)])
    cost = snapshot.cost
    if cost is not None:
        share = fmt.percent(snapshot.collector_cpu_percent)
        late = fmt.duration(cost.late_p99_ns if cost.samples else None)
        lines.append(
            [("collector ", Role.MUTED), (share, Role.TEXT), (" · late p99 ", Role.MUTED), (late, Role.TEXT)]
        )
    return lines


def _threads(process: ProcessView) -> Words:
    threads, running, faults = (process.cpu.last(name) for name in ("threads", "running", "minor_faults_per_s"))
    return [
        ("runs ", Role.MUTED), (f"{fmt.count(running)} of {fmt.count(threads)}", Role.TEXT),
        (" · faults ", Role.MUTED), (f"{fmt.count(faults)}/s", Role.TEXT),
    ]  # fmt: skip
