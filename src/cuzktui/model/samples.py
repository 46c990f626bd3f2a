"""Folds of what the collector measures (processes, host, GPUs, its own cost), and of the lens that follows a fall."""

from __future__ import annotations

from msgspec.structs import replace

from cuzktui.model.phases import Segmenter, step
from cuzktui.model.series import Series
from cuzktui.model.snapshot import ACTIVITY, CPU, CPU_WINDOW_NS, GPU, MEMORY, GpuView, Lens, ProcessView, Snapshot
from prover import wire

MAX_PROCESSES = 64
MAX_GPUS = 64
MAX_LENSES = 8
LENS_BEFORE_NS = 100_000_000
LENS_SETTLE_NS = 300_000_000
LENS_LONGEST_NS = 120_000_000_000
OUTGROWN_BYTES, OUTGROWN_RATIO = 64 << 20, 1.5
FALL_BYTES = 64 << 20
"""A fall of a foreign process smaller than this opens no lens."""


def _process(snapshot: Snapshot, pid: int, t_ns: int) -> ProcessView:
    return snapshot.processes.get(pid) or _new_process(snapshot, pid, t_ns)


def _new_process(snapshot: Snapshot, pid: int, t_ns: int) -> ProcessView:
    memory_series = Series(MEMORY, snapshot.memory_capacity)
    return ProcessView(
        pid=pid, seen_ns=t_ns, memory=memory_series, cpu=Series(CPU, capacity=32768),
        activity=Series(ACTIVITY, snapshot.memory_capacity),
    )  # fmt: skip


def _with_process(snapshot: Snapshot, view: ProcessView) -> Snapshot:
    processes = {**snapshot.processes, view.pid: view}
    while len(processes) > MAX_PROCESSES:
        oldest = next(pid for pid in processes if pid not in (snapshot.main_pid, view.pid))
        del processes[oldest]
    return replace(snapshot, processes=processes, main_pid=snapshot.main_pid or view.pid)


def process_seen(snapshot: Snapshot, event: wire.ProcessSeen) -> Snapshot:
    """A process is watched from here on; a new prover becomes the one that is drawn, a stranger once it outgrows it."""
    view = _process(snapshot, event.pid, event.t_ns)
    if view.ended is not None:
        view = _new_process(snapshot, event.pid, event.t_ns)
    snapshot = _with_process(snapshot, replace(view, command=event.command, role=event.role))
    drawn = snapshot.process
    if event.role == "prover" or drawn is None or (drawn.ended is not None and drawn.role == "prover"):
        return replace(snapshot, main_pid=event.pid)
    return snapshot


def process_ended(snapshot: Snapshot, event: wire.ProcessEnded) -> Snapshot:
    """A process is gone, and with a prover its jobs."""
    view = replace(_process(snapshot, event.pid, event.t_ns), ended=event)
    snapshot = _with_process(snapshot, view)
    if snapshot.lens is not None and snapshot.lens.pid == event.pid:
        snapshot = _close_lens(snapshot, event.t_ns)
    if snapshot.hello is None or snapshot.hello.pid != event.pid:
        return snapshot
    reason = event.reason or "the prover ended"
    jobs = tuple(
        job if job.is_done else replace(job, ended_ns=event.t_ns, outcome=wire.Outcome.FAILED, error=reason)
        for job in snapshot.jobs
    )
    return replace(snapshot, jobs=jobs, running=None, queued=())


def memory(snapshot: Snapshot, event: wire.MemSample) -> Snapshot:
    """One reading of statm: the series, the phases, the peaks, the lens."""
    view = _process(snapshot, event.pid, event.t_ns)
    anon, resident = event.anon_bytes, event.resident_bytes
    view = replace(
        view,
        memory=view.memory.append(event.t_ns, (anon, event.shared_bytes, resident)),
        segmenter=step(view.segmenter, event.t_ns, float(anon)),
        peak_anon_bytes=max(view.peak_anon_bytes, anon),
        peak_resident_bytes=max(view.peak_resident_bytes, resident),
        late_max_ns=max(view.late_max_ns, event.late_ns),
    )
    snapshot = _with_process(snapshot, view)
    if view.pid != snapshot.main_pid and _outgrows(view, snapshot):
        snapshot = replace(snapshot, main_pid=view.pid)
    if view.pid != snapshot.main_pid:
        return snapshot
    job = snapshot.find_job(snapshot.running) if snapshot.running else None
    if job is not None and (anon > (job.peak_anon_bytes or 0) or resident > (job.peak_resident_bytes or 0)):
        raised = replace(
            job, peak_anon_bytes=max(anon, job.peak_anon_bytes or 0),
            peak_resident_bytes=max(resident, job.peak_resident_bytes or 0),
        )  # fmt: skip
        snapshot = replace(snapshot, jobs=tuple(raised if j is job else j for j in snapshot.jobs))
    return _follow(snapshot, view, event)


def _outgrows(view: ProcessView, snapshot: Snapshot) -> bool:
    """A stranger that holds far more than the stranger that is drawn is the one at work; each change needs more."""
    drawn = snapshot.process
    if drawn is None or drawn.role != "foreign" or view.role != "foreign" or snapshot.hello is not None:
        return False
    return view.peak_anon_bytes > max(OUTGROWN_BYTES, OUTGROWN_RATIO * drawn.peak_anon_bytes)


def _follow(snapshot: Snapshot, view: ProcessView, event: wire.MemSample) -> Snapshot:
    """The lens takes the sample, closes once memory has settled, or opens when a stranger's memory falls."""
    lens = snapshot.lens
    if lens is not None and lens.is_open and lens.pid == view.pid:
        lens = replace(lens, samples=lens.samples.append(event.t_ns, (event.anon_bytes,)))
        snapshot = replace(snapshot, lenses=(*snapshot.lenses[:-1], lens))
        if _has_settled(lens, view.segmenter, event.t_ns):
            return _close_lens(snapshot, event.t_ns)
        return snapshot
    is_ours = snapshot.hello is not None and snapshot.hello.pid == view.pid
    if not is_ours and view.is_falling:
        seen = view.segmenter
        if seen.move_begin_bytes - event.anon_bytes >= max(FALL_BYTES, 0.05 * seen.move_begin_bytes):
            return open_lens(snapshot, "", seen.move_begin_ns, "memory falls")
    return snapshot


def _has_settled(lens: Lens, seen: Segmenter, t_ns: int) -> bool:
    if t_ns - lens.begin_ns > LENS_LONGEST_NS:
        return True
    if seen.is_falling:
        return False
    if lens.reason == "inner ended":
        return lens.gap_end_ns is not None and t_ns - lens.gap_end_ns >= LENS_SETTLE_NS
    return t_ns - seen.run_begin_ns >= LENS_SETTLE_NS


def open_lens(snapshot: Snapshot, job_id: str, t_ns: int, reason: str) -> Snapshot:
    """A lens on the drawn process from a little before `t_ns`."""
    view = snapshot.process
    if view is None:
        return snapshot
    snapshot = _close_lens(snapshot, t_ns)
    window_begin_ns = t_ns - LENS_BEFORE_NS
    samples = Series(("anon",), capacity=32768)
    times, values = view.memory.window(window_begin_ns, snapshot.t_ns)
    for at, row in zip(times[-16384:], values[-16384:], strict=True):
        samples = samples.append(int(at), (float(row[0]),))
    top = view.memory.at(t_ns, "anon")
    lens = Lens(
        job_id=job_id, pid=view.pid, reason=reason, window_begin_ns=window_begin_ns, begin_ns=t_ns,
        top_bytes=top if top is not None else 0.0, samples=samples,
    )  # fmt: skip
    return replace(snapshot, lenses=(*snapshot.lenses, lens)[-MAX_LENSES:])


def end_lens_gap(snapshot: Snapshot, job_id: str, t_ns: int) -> Snapshot:
    """The call has returned: the counter stops, the lens goes on until memory has settled."""
    lens = snapshot.lens
    if lens is None or lens.job_id != job_id or lens.gap_end_ns is not None:
        return snapshot
    return replace(snapshot, lenses=(*snapshot.lenses[:-1], replace(lens, gap_end_ns=t_ns)))


def _close_lens(snapshot: Snapshot, t_ns: int) -> Snapshot:
    lens = snapshot.lens
    if lens is None or not lens.is_open:
        return snapshot
    return replace(snapshot, lenses=(*snapshot.lenses[:-1], replace(lens, end_ns=t_ns)))


def cpu(snapshot: Snapshot, event: wire.CpuSample) -> Snapshot:
    """Cumulative CPU times become percents of one core over at least 200 ms."""
    view = _active(_process(snapshot, event.pid, event.t_ns), event)
    now = (event.t_ns, event.user_ns, event.system_ns, event.run_ns or 0, event.minor_faults)
    before = view.cpu_before
    if before is None or event.user_ns < before[1] or event.t_ns < before[0]:
        return _with_process(snapshot, replace(view, cpu_before=now))
    length_ns = event.t_ns - before[0]
    if length_ns < CPU_WINDOW_NS:
        return _with_process(snapshot, view)
    user, system, run = (100.0 * (now[k] - before[k]) / length_ns for k in (1, 2, 3))
    row = (
        system, user, run if event.run_ns is not None else None, (now[4] - before[4]) / (length_ns / 1e9),
        float(event.states.get("R", 0)), float(event.states.get("D", 0)), float(event.threads),
    )  # fmt: skip
    return _with_process(snapshot, replace(view, cpu=view.cpu.append(event.t_ns, row), cpu_before=now))


def _active(view: ProcessView, event: wire.CpuSample) -> ProcessView:
    """The process with one row more of `activity`; a reading without schedstat gives none, the first one no rates."""
    before = view.activity_before
    if event.run_ns is None:
        return view
    view = replace(view, activity_before=(event.t_ns, event.run_ns, event.minor_faults))
    run_percent = faults_per_s = 0.0
    if before is not None:
        length_ns = event.t_ns - before[0]
        if length_ns <= 0 or event.run_ns < before[1]:
            return view
        run_percent = 100.0 * (event.run_ns - before[1]) / length_ns
        faults_per_s = (event.minor_faults - before[2]) / (length_ns / 1e9)
    waits = [0, 0, 0]
    for channel, threads in event.wchan.items():
        waits[_wait_kind(channel)] += threads
    running, asleep, blocked = (event.states.get(state, 0) for state in "RSD")
    unreadable = max(0, asleep + blocked - sum(waits))
    row = (run_percent, faults_per_s, *map(float, (running, blocked, *waits, unreadable)))
    return replace(view, activity=view.activity.append(event.t_ns, row))


def _wait_kind(channel: str) -> int:
    """0 a lock, 1 a clock or a poll, 2 anything else, by the kernel function that a thread waits in."""
    if any(word in channel for word in ("futex", "mutex", "rwsem", "flock", "fcntl_setlk", "lock_file", "semtimedop")):
        return 0
    if any(word in channel for word in ("nanosleep", "poll", "select", "epoll", "sigtimedwait", "do_wait", "pause")):
        return 1
    return 2


def host(snapshot: Snapshot, event: wire.HostSample) -> Snapshot:
    row = (
        event.mem_available_bytes, event.cgroup_bytes, event.cpu_busy_percent, event.mem_pressure_percent,
        event.cpu_pressure_percent,
    )  # fmt: skip
    return replace(snapshot, host=event, host_series=snapshot.host_series.append(event.t_ns, row))


def gpu(snapshot: Snapshot, event: wire.GpuSample) -> Snapshot:
    before = snapshot.gpus.get(event.device)
    if before is None and len(snapshot.gpus) >= MAX_GPUS:
        return snapshot
    series = before.series if before is not None else Series(GPU, capacity=16384)
    row = (
        event.util_percent, event.mem_used_bytes, event.process_bytes, event.power_w, event.sm_mhz,
        event.temperature_c,
    )  # fmt: skip
    view = GpuView(last=event, series=series.append(event.t_ns, row))
    return replace(snapshot, gpus={**snapshot.gpus, event.device: view})


def collector_cost(snapshot: Snapshot, event: wire.CollectorCost) -> Snapshot:
    before = snapshot.cost
    percent = None
    if before is not None and event.t_ns > before.t_ns and event.cpu_ns >= before.cpu_ns:
        percent = 100.0 * (event.cpu_ns - before.cpu_ns) / (event.t_ns - before.t_ns)
    return replace(snapshot, cost=event, collector_cpu_percent=percent)
