"""Event streams with known answers: a job whose memory ramps, stands and falls at given rates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from prover import wire
from prover.wire import Outcome, Owner, Place, Policy, Stage

MS = 1_000_000
S = 1_000_000_000
GB = 1_000_000_000
START = 5_000 * S


def mem(t_ns: int, anon_bytes: float, *, pid: int = 41, shared_bytes: int = 200_000_000) -> wire.MemSample:
    """One reading of statm."""
    return wire.MemSample(
        t_ns=t_ns, pid=pid, resident_bytes=int(anon_bytes) + shared_bytes, shared_bytes=shared_bytes, cost_ns=5000
    )


@dataclass
class Profile:
    """Memory as straight lines between (time, bytes) corners."""

    corners: list[tuple[int, float]]

    def at(self, t_ns: int) -> float:
        before = self.corners[0]
        for corner in self.corners:
            if corner[0] >= t_ns:
                if corner[0] == before[0]:
                    return corner[1]
                share = (t_ns - before[0]) / (corner[0] - before[0])
                return before[1] + share * (corner[1] - before[1])
            before = corner
        return before[1]

    def samples(self, every_ns: int = 20 * MS, *, pid: int = 41) -> Iterator[wire.MemSample]:
        """Readings at equal intervals from the first corner to the last."""
        t_ns = self.corners[0][0]
        while t_ns <= self.corners[-1][0]:
            yield mem(t_ns, self.at(t_ns), pid=pid)
            t_ns += every_ns


@dataclass
class Story:
    """One job in the shape of the investigation: synth fills memory, prove computes, release gives it back.

    All lengths in ms; `gap_ms` of synchronous release at the end of `prove`, or `async_ms` in the background.
    """

    job_id: str = "job-1"
    begin_ns: int = START
    queue_ms: int = 40
    srs_ms: int = 200
    synth_ms: int = 2000
    kernel_ms: int = 4000
    gap_ms: int = 800
    async_ms: int = 0
    verify_ms: int = 50
    buffers: int = 8
    buffer_bytes: int = 1 * GB
    baseline_bytes: int = 300_000_000
    circuits: int = 2
    policy: Policy = Policy.SYNC_4K
    sample_ms: int = 20
    with_ledger: bool = True
    events: list[wire.Event] = field(default_factory=list)

    @property
    def synth_begin_ns(self) -> int:
        return self.begin_ns + (self.queue_ms + self.srs_ms) * MS

    @property
    def prove_begin_ns(self) -> int:
        return self.synth_begin_ns + self.synth_ms * MS

    @property
    def inner_end_ns(self) -> int:
        return self.prove_begin_ns + self.kernel_ms * MS

    @property
    def outer_end_ns(self) -> int:
        return self.inner_end_ns + self.gap_ms * MS

    @property
    def end_ns(self) -> int:
        return self.outer_end_ns + self.verify_ms * MS

    @property
    def release_ms(self) -> int:
        return self.async_ms or self.gap_ms

    @property
    def total_bytes(self) -> int:
        return self.buffers * self.buffer_bytes

    def profile(self) -> Profile:
        """Anonymous memory of the prover."""
        top = self.baseline_bytes + self.total_bytes
        return Profile(
            [
                (self.begin_ns, self.baseline_bytes),
                (self.synth_begin_ns, self.baseline_bytes),
                (self.prove_begin_ns, top),
                (self.inner_end_ns, top),
                (self.inner_end_ns + self.release_ms * MS, self.baseline_bytes),
                (self.end_ns + max(self.release_ms, 500) * MS + S, self.baseline_bytes),
            ]
        )

    def build(self) -> list[wire.Event]:
        """The whole stream in order of time, sequence numbers included."""
        events: list[wire.Event] = [
            wire.Hello(
                t_ns=self.begin_ns - 300 * MS, unix_ns=1_790_000_000 * S, host="test", pid=41, backend="cpu",
                cpu_count=2, mem_total_bytes=24 * GB, gpu_note="no NVIDIA driver", kernel="6.1",
            ),
            wire.ProcessSeen(t_ns=self.begin_ns - 299 * MS, pid=41, command="python -m prover serve"),
            *self._job(),
            *self.profile().samples(self.sample_ms * MS),
            *self._cpu(),
        ]  # fmt: skip
        if self.with_ledger and self.buffers:
            events.extend(self._ledger())
        events.sort(key=lambda event: event.t_ns)
        return events

    def _job(self) -> Iterator[wire.Event]:
        job, at = self.job_id, self.begin_ns
        yield wire.JobSubmitted(
            t_ns=at, job_id=job, circuit="sha256-chain:8", num_circuits=self.circuits, policy=self.policy,
            num_constraints=240_000, domain_size=1 << 18, predicted_peak_bytes=self.baseline_bytes + self.total_bytes,
        )  # fmt: skip
        marks = [
            (Stage.QUEUE, at, at + self.queue_ms * MS),
            (Stage.SRS, at + self.queue_ms * MS, self.synth_begin_ns),
            (Stage.SYNTH, self.synth_begin_ns, self.prove_begin_ns),
            (Stage.PROVE, self.prove_begin_ns, self.outer_end_ns),
            (Stage.VERIFY, self.outer_end_ns, self.end_ns),
        ]
        for stage, begin_ns, end_ns in marks:
            yield wire.StageBegan(t_ns=begin_ns, job_id=job, stage=stage, thread="worker")
            yield wire.StageEnded(t_ns=end_ns, job_id=job, stage=stage, thread="worker")
        yield from self._kernels()
        yield wire.InnerEnded(t_ns=self.inner_end_ns, job_id=job, inner_ns=self.inner_end_ns - self.prove_begin_ns)
        yield wire.OuterEnded(t_ns=self.outer_end_ns, job_id=job, outer_ns=self.outer_end_ns - self.prove_begin_ns)
        yield wire.JobEnded(
            t_ns=self.end_ns, job_id=job, outcome=Outcome.PROVED, proof_hex="00" * 192, verified=True,
            metrics={"total_ms": (self.end_ns - self.begin_ns) / MS, "gap_ms": float(self.gap_ms)},
        )  # fmt: skip

    def _kernels(self) -> Iterator[wire.Event]:
        job = self.job_id
        each = self.synth_ms * MS // (2 * self.circuits)
        for circuit in range(self.circuits):
            at = self.synth_begin_ns + 2 * circuit * each
            for k, (stage, name) in enumerate(((Stage.WITNESS, "witness"), (Stage.EVAL_ABC, "eval_abc"))):
                begin_ns, end_ns = at + k * each, at + (k + 1) * each
                yield wire.StageBegan(t_ns=begin_ns, job_id=job, stage=stage, circuit=circuit)
                yield wire.StageEnded(t_ns=end_ns, job_id=job, stage=stage, circuit=circuit)
                yield wire.Span(
                    t_ns=end_ns, begin_ns=begin_ns, job_id=job, name=name, stage=stage, circuit=circuit, ops=120_000,
                    op="constraint", cpu_ns=end_ns - begin_ns,
                )  # fmt: skip
            yield wire.Progress(
                t_ns=at + 2 * each, job_id=job, stage=Stage.SYNTH, circuit=circuit, done=120_000, total=120_000,
                unit="constraint",
            )  # fmt: skip
        part = self.kernel_ms * MS // (4 * self.circuits)
        at = self.prove_begin_ns
        for stage in (Stage.NTT_H, Stage.MSM_H, Stage.BATCH_ADD, Stage.TAIL_MSM):
            for circuit in range(self.circuits):
                yield wire.StageBegan(t_ns=at, job_id=job, stage=stage, circuit=circuit, thread="worker")
                yield wire.StageEnded(t_ns=at + part, job_id=job, stage=stage, circuit=circuit, thread="worker")
                yield wire.Span(
                    t_ns=at + part, begin_ns=at, job_id=job, name=stage.value, stage=stage, circuit=circuit,
                    ops=1 << 18, op="point_add", moved_bytes=1 << 24, roof_percent=50.0,
                )  # fmt: skip
                at += part

    def _cpu(self) -> Iterator[wire.CpuSample]:
        """User time while computing, system time while releasing, both at a full core."""
        fall = (self.inner_end_ns, self.inner_end_ns + self.release_ms * MS)
        t_ns, user, system = self.begin_ns, 0, 0
        while t_ns <= self.end_ns + S:
            yield wire.CpuSample(t_ns=t_ns, pid=41, run_ns=user + system, user_ns=user, system_ns=system, threads=4)
            step = 200 * MS
            inside = max(0, min(t_ns + step, fall[1]) - max(t_ns, fall[0]))
            system += inside
            user += max(0, min(t_ns + step, self.inner_end_ns) - t_ns) if t_ns >= self.synth_begin_ns else 0
            t_ns += step

    def _ledger(self) -> Iterator[wire.Event]:
        fill = self.synth_ms * MS // self.buffers
        fall = self.release_ms * MS // self.buffers
        for k in range(self.buffers):
            at = self.synth_begin_ns + k * fill
            yield wire.BufferAllocated(
                t_ns=at, buffer_id=k + 1, job_id=self.job_id, label=f"a[{k}]",
                owner=Owner.ABC if k % 2 else Owner.ASSIGNMENT, place=Place.HOST, size_bytes=self.buffer_bytes,
                stage=Stage.SYNTH, page_bytes=4096,
            )  # fmt: skip
            yield wire.BufferTouched(t_ns=at + fill, buffer_id=k + 1, resident_bytes=self.buffer_bytes)
            begin_ns = self.inner_end_ns + k * fall
            yield wire.BufferReleased(
                t_ns=begin_ns + fall, buffer_id=k + 1, begin_ns=begin_ns, size_bytes=self.buffer_bytes, how="munmap",
                synchronous=not self.async_ms, thread="release",
            )  # fmt: skip
