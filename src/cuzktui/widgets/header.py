"""The header says in one line what is watched, what runs, and whether it can be trusted: REPLAY, LOST, recording."""

from __future__ import annotations

from cuzktui import format as fmt
from cuzktui.model.snapshot import JobView, ProcessView, Snapshot
from cuzktui.widgets.canvas import Canvas
from cuzktui.widgets.frame import Words, words
from cuzktui.widgets.grid import Grid, clip
from cuzktui.widgets.roles import Role
from cuzktui.widgets.view import View

_SOURCES = {"live": "embedded"}
"""A live source has a prover of its own: it is called embedded."""
_SEPARATOR = (" · ", Role.FAINT)


class Header(Canvas):
    """One line at the top."""

    def draw(self, view: View, width: int, height: int) -> Grid:
        return header_grid(view, width, height)


def header_grid(view: View, width: int, height: int = 1) -> Grid:
    """The line as text."""
    grid = Grid(width, height)
    right = _flags(view)
    right_width = sum(len(text) for text, _ in right)
    start = max(0, width - right_width - 1)
    words(grid, start, 0, right, right_width, view.glyphs)
    left: Words = [("cuzktui ", Role.TITLE), *_source(view)]
    job = _job_line(view)
    job_width = sum(len(text) for text, _ in job)
    end = words(grid, 1, 0, left, max(0, start - 2 - min(job_width + 2, start // 2)), view.glyphs)
    room = max(0, start - end - 4)
    words(grid, end + 2, 0, _fitted(job, room, view), room, view.glyphs)
    return grid


def _fitted(job: Words, room: int, view: View) -> Words:
    """The line of a job, cut in its title: its state comes last and is what an operator looks for."""
    if len(job) < 3 or sum(len(text) for text, _ in job) <= room:
        return job
    (title, role), *state = job
    left = room - sum(len(text) for text, _ in state)
    return [(clip(title, left, view.glyphs.ellipsis), role), *state] if left >= 4 else state[1:]


def _source(view: View) -> Words:
    snapshot = view.snapshot
    pieces: list[tuple[str, Role]] = [(_SOURCES.get(view.source, view.source), Role.TEXT)]
    process, hello = snapshot.process, snapshot.hello
    if process is not None:
        if process.ended is not None:
            role = Role.MUTED if _has_left(snapshot) else Role.BAD
            pieces += [_SEPARATOR, (f"{_who(process)} {process.pid} ended", role)]
        else:
            pieces += [_SEPARATOR, (f"{_who(process)} {process.pid}", Role.TEXT)]
    if hello is not None:
        pieces += [_SEPARATOR, ("GPU lost", Role.BAD) if hello.gpu_lost else (_device(snapshot), Role.TEXT)]
    elif process is None:
        pieces += [_SEPARATOR, ("starting …", Role.WARN)]
    return pieces


def _device(snapshot: Snapshot) -> str:
    hello = snapshot.hello
    if hello is None or not hello.backend:
        return "no backend yet"
    if hello.backend and hello.backend != "cuda":
        return f"{hello.backend} ×{hello.cpu_count}" if hello.cpu_count else hello.backend
    names = [device.replace("NVIDIA ", "") for device in hello.devices]
    models = {name.partition(" ")[2] for name in names}
    if len(names) > 1 and len(models) == 1:
        return f"cuda {len(names)} × {models.pop()}"
    name = " + ".join(names)
    return name if name.startswith("cuda") else f"cuda {name}".rstrip()


def _job_line(view: View) -> Words:
    job = view.job
    if job is None and (view.is_read_only or view.snapshot.is_replay):
        return [(view.snapshot.process.command, Role.MUTED)] if view.snapshot.process is not None else []
    if job is None:
        return [("next ", Role.FAINT), (f"{view.choice} · {view.policy.value}", Role.MUTED)]
    role = Role.STRONG if not job.is_done else Role.MUTED
    return [(job_title(job), role), _SEPARATOR, (job_state(job), state_role(job))]


def job_title(job: JobView) -> str:
    """What was asked for: `sha256-chain:8 ×4 · sync-4k`."""
    policy = f" · {job.policy.value}" if job.policy is not None else ""
    return f"{job.job_id} · {job.circuit or job.kind} ×{job.num_circuits}{policy}"


def job_state(job: JobView) -> str:
    """One word for where a job is."""
    if job.outcome is not None:
        return "verified" if job.verified and job.outcome == "proved" else job.outcome.value
    if job.is_in_gap:
        return "GAP"
    stage = job.stage_now
    return stage.stage.value if stage is not None else "queued"


def state_role(job: JobView) -> Role:
    """How that word looks."""
    if job.outcome is not None:
        return {"proved": Role.GOOD, "cancelled": Role.WARN}.get(job.outcome.value, Role.BAD)
    return Role.GAP_LABEL if job.is_in_gap else Role.STAGE_PROVE


def _flags(view: View) -> Words:
    snapshot, bullet = view.snapshot, view.glyphs.bullet
    pieces: list[tuple[str, Role]] = []
    if view.is_read_only and not snapshot.is_replay:
        pieces.append(("READ ONLY  ", Role.MUTED))
    if lost_sources(snapshot):
        pieces.append((f"LOST {', '.join(lost_sources(snapshot))}  ", Role.BAD))
    if view.is_frozen:
        pieces.append(("FROZEN  ", Role.WARN))
    elif not view.is_live:
        pieces.append(("LOOKING BACK  ", Role.WARN))
    clock = fmt.clock(snapshot.elapsed_ns)
    if snapshot.is_replay:
        pieces.append((f"REPLAY {clock}{' ended' if _has_replay_ended(snapshot) else ''}", Role.WARN))
    elif view.recording:
        pieces += [(f"{bullet} ", Role.ON), (f"rec {clock}", Role.TEXT)]
    else:
        pieces.append((f"not recording {clock}", Role.MUTED))
    return pieces


def _has_replay_ended(snapshot: Snapshot) -> bool:
    state = snapshot.sources.get("replay")
    return state is not None and not state.alive


def lost_sources(snapshot: Snapshot) -> list[str]:
    """Names of what has been lost; what was never there (NVML on a host without a GPU) is no loss."""
    quiet = {"replay"} if snapshot.gpus else {"replay", "nvml"}
    names = [name for name, state in snapshot.sources.items() if not state.alive and name not in quiet]
    process = snapshot.process
    if _has_left(snapshot):
        return [name for name in names if name != "prover"]
    if process is not None and process.ended is not None and _who(process) not in names:
        names.append(_who(process))
    return names


def _has_left(snapshot: Snapshot) -> bool:
    """A replay that shows how the recorded console was left in good order."""
    process = snapshot.process
    return snapshot.is_replay and process is not None and process.ended is not None and process.ended.exit_code == 0


def _who(process: ProcessView) -> str:
    return "prover" if process.role == "prover" else "process"
