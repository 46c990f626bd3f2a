"""A scene is the event stream of one imagined proof, built with the wire's own structs and a fixed clock.

The console is given nothing else; what a test expects on the screen follows from the figures here.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from prover.wire import (
    BufferAllocated,
    BufferReleased,
    BufferTouched,
    CollectorCost,
    CpuSample,
    Event,
    GpuSample,
    Hello,
    HostSample,
    InnerEnded,
    JobEnded,
    JobSubmitted,
    MemSample,
    Outcome,
    OuterEnded,
    Owner,
    Place,
    Policy,
    ProcessSeen,
    Progress,
    Span,
    Stage,
    StageBegan,
    StageEnded,
    State,
)

MS = 1_000_000
START_NS = 1_000_000 * MS
PID = 41207
BASE_BYTES = 180_000_000
SHARED_BYTES = 120_000_000
KERNELS = {
    Stage.NTT_H: ("ntt_h", 60, 3_000_000, "fr_mul"),
    Stage.MSM_H: ("msm_h", 320, 4_000_000, "point_add"),
    Stage.BATCH_ADD: ("batch_add", 90, 900_000, "point_add"),
    Stage.TAIL_MSM: ("tail_msm", 130, 1_600_000, "point_add"),
}


@dataclass
class Scene:
    """Events so far and the clock; memory is what its buffers and a base hold."""

    t_ns: int = START_NS
    events: list[Event] = field(default_factory=list)
    resident: float = BASE_BYTES
    next_buffer: int = 1
    user_ns: int = 0
    system_ns: int = 0
    faults: int = 0
    last_slow_ns: int = 0
    gpu: bool = False
    util: float = 0.0

    def add(self, event: Event) -> None:
        self.events.append(event)

    def wait(
        self, ms: float, *, grow_bytes: float = 0.0, step_ms: float = 20.0, user: float = 2.0, system: float = 0.05
    ) -> None:
        """Lets time pass: memory changes linearly and every instrument is read."""
        steps = max(1, round(ms / step_ms))
        for _ in range(steps):
            self.t_ns += int(ms * MS / steps)
            self.resident += grow_bytes / steps
            self.user_ns += int(user * ms * MS / steps)
            self.system_ns += int(system * ms * MS / steps)
            if grow_bytes > 0:
                self.faults += int(grow_bytes / steps / 4096)
            self.add(
                MemSample(
                    t_ns=self.t_ns, pid=PID, resident_bytes=int(self.resident) + SHARED_BYTES,
                    shared_bytes=SHARED_BYTES, cost_ns=9000, late_ns=100_000,
                )
            )  # fmt: skip
            if self.t_ns - self.last_slow_ns >= 200 * MS:
                self.last_slow_ns = self.t_ns
                self._slow_samples()

    def _slow_samples(self) -> None:
        self.add(
            CpuSample(
                t_ns=self.t_ns, pid=PID, run_ns=self.user_ns + self.system_ns, user_ns=self.user_ns,
                system_ns=self.system_ns, minor_faults=self.faults, threads=9, states={"R": 2, "S": 7},
            )
        )  # fmt: skip
        self.add(
            HostSample(
                t_ns=self.t_ns, mem_available_bytes=19_000_000_000 - int(self.resident),
                mem_total_bytes=25_000_000_000,
                cgroup_bytes=int(self.resident) + 2_000_000_000, cgroup_limit_bytes=24_000_000_000,
                cpu_busy_percent=71.0,
            )
        )  # fmt: skip
        if self.gpu:
            self.add(
                GpuSample(
                    t_ns=self.t_ns, device=0, name="NVIDIA H200", util_percent=self.util, mem_used_bytes=41_200_000_000,
                    mem_total_bytes=139_800_000_000, power_w=412.0, temperature_c=61.0, sm_mhz=1980,
                )
            )  # fmt: skip

    def stage(self, job_id: str, stage: Stage, circuit: int | None = None) -> None:
        self.add(StageBegan(t_ns=self.t_ns, job_id=job_id, stage=stage, circuit=circuit, thread="worker"))

    def end(self, job_id: str, stage: Stage, circuit: int | None = None) -> None:
        self.add(StageEnded(t_ns=self.t_ns, job_id=job_id, stage=stage, circuit=circuit, thread="worker"))


def opening(scene: Scene) -> None:
    """What a console hears first: who speaks and which process is watched."""
    note = "" if scene.gpu else "libnvidia-ml.so.1 was not found: no NVIDIA driver here"
    devices = ["NVIDIA H200"] if scene.gpu else []
    scene.add(
        Hello(
            t_ns=scene.t_ns, unix_ns=1_790_000_000_000_000_000, source="collector", host="prover-1", pid=41200,
            version="0.1.0", cpu_count=2, mem_total_bytes=25_000_000_000, devices=devices, gpu_note=note,
        )
    )  # fmt: skip
    scene.add(ProcessSeen(t_ns=scene.t_ns, pid=PID, command="cuzk-prover serve"))
    scene.add(
        Hello(
            t_ns=scene.t_ns, unix_ns=1_790_000_000_000_000_000, source="prover", host="prover-1", pid=PID,
            version="0.1.0", backend="cuda" if scene.gpu else "cpu", cpu_count=2, devices=devices, gpu_note=note,
        )
    )  # fmt: skip
    scene.add(State(t_ns=scene.t_ns, policy=Policy.SYNC_4K))
    scene.wait(1000, user=0.0)


def proof(
    scene: Scene,
    job_id: str = "job-1",
    policy: Policy = Policy.SYNC_4K,
    circuit: str = "sha256-chain:8",
    circuits: int = 4,
    *,
    buffer_bytes: int = 300_000_000,
    compile_first: bool = True,
) -> None:
    """One whole job; with a sync policy its release is the gap, 12 GB/s in 4K pages."""
    begin = scene.t_ns
    scene.add(
        JobSubmitted(
            t_ns=begin, job_id=job_id, circuit=circuit, num_circuits=circuits, policy=policy, num_constraints=240_000,
            domain_size=262_144, predicted_peak_bytes=BASE_BYTES + SHARED_BYTES + buffer_bytes * circuits + 90_000_000,
            client="console",
        )
    )  # fmt: skip
    scene.stage(job_id, Stage.QUEUE)
    scene.wait(20)
    scene.end(job_id, Stage.QUEUE)
    if compile_first:
        scene.stage(job_id, Stage.COMPILE)
        for done in range(1, 5):
            scene.wait(400)
            scene.add(
                Progress(
                    t_ns=scene.t_ns,
                    job_id=job_id,
                    stage=Stage.COMPILE,
                    done=done * 10,
                    total=40,
                    unit="kernel",
                    what="msm_g1",
                )
            )
        scene.end(job_id, Stage.COMPILE)
    scene.stage(job_id, Stage.SRS)
    scene.wait(300)
    scene.end(job_id, Stage.SRS)
    buffers = _synthesis(scene, job_id, circuits, buffer_bytes)
    prove_began = scene.t_ns
    _prove(scene, job_id, circuits)
    inner_ended = scene.t_ns
    scene.util = 0.0
    scene.add(InnerEnded(t_ns=inner_ended, job_id=job_id, inner_ns=inner_ended - prove_began))
    if policy in (Policy.SYNC_4K, Policy.SYNC_HUGE):
        scene.stage(job_id, Stage.RELEASE)
        release(scene, buffers)
        scene.end(job_id, Stage.RELEASE)
        buffers = []
    else:
        scene.wait(2, step_ms=2)
    scene.add(OuterEnded(t_ns=scene.t_ns, job_id=job_id, outer_ns=scene.t_ns - prove_began))
    scene.end(job_id, Stage.PROVE)
    outer_ended = scene.t_ns
    scene.stage(job_id, Stage.VERIFY)
    if buffers:
        release(scene, buffers, synchronous=False)
    scene.wait(20)
    scene.end(job_id, Stage.VERIFY)
    metrics: dict[str, float | int | str | None] = {
        "inner_ms": (inner_ended - prove_began) / 1e6, "outer_ms": (outer_ended - prove_began) / 1e6,
        "gap_ms": (outer_ended - inner_ended) / 1e6, "total_ms": (scene.t_ns - begin) / 1e6,
    }  # fmt: skip
    scene.add(
        JobEnded(
            t_ns=scene.t_ns, job_id=job_id, outcome=Outcome.PROVED, proof_hex="ab" * 192 * circuits, verified=True,
            metrics=metrics, public_inputs=[["1", "2"]] * circuits,
        )
    )  # fmt: skip
    scene.add(CollectorCost(t_ns=scene.t_ns, cpu_ns=30 * MS, samples=500, late_p99_ns=900_000, cost_p99_ns=20_000))


def _synthesis(scene: Scene, job_id: str, circuits: int, buffer_bytes: int) -> list[tuple[int, int]]:
    buffers = []
    scene.stage(job_id, Stage.SYNTH)
    for index in range(circuits):
        for owner, share in ((Owner.ASSIGNMENT, 0.2), (Owner.ABC, 0.5), (Owner.SPLIT, 0.2), (Owner.TAIL_BASES, 0.1)):
            size = int(buffer_bytes * share)
            number = scene.next_buffer
            scene.next_buffer += 1
            buffers.append((number, size))
            scene.add(
                BufferAllocated(
                    t_ns=scene.t_ns, buffer_id=number, job_id=job_id, label=f"{owner} {index}", owner=owner,
                    place=Place.HOST, size_bytes=size, stage=Stage.SYNTH, circuit=index, page_bytes=4096,
                )
            )  # fmt: skip
            if owner is Owner.ASSIGNMENT:
                scene.stage(job_id, Stage.WITNESS, index)
            if owner is Owner.ABC:
                scene.end(job_id, Stage.WITNESS, index)
                scene.stage(job_id, Stage.EVAL_ABC, index)
            began = scene.t_ns
            scene.wait(150, grow_bytes=size, user=1.6, system=0.35)
            scene.add(BufferTouched(t_ns=scene.t_ns, buffer_id=number, resident_bytes=size, huge_bytes=0))
            if owner in (Owner.ASSIGNMENT, Owner.ABC):
                name = "witness" if owner is Owner.ASSIGNMENT else "eval_abc"
                scene.add(
                    Span(
                        t_ns=scene.t_ns, job_id=job_id, name=name, begin_ns=began, stage=Stage.SYNTH, circuit=index,
                        ops=240_000, op="constraint", moved_bytes=size,
                    )
                )  # fmt: skip
            scene.add(
                Progress(
                    t_ns=scene.t_ns, job_id=job_id, stage=Stage.SYNTH, circuit=index, 
                    done=60_000 * (len(buffers) % 4 or 4),
                    total=240_000, unit="constraint",
                )
            )  # fmt: skip
        scene.end(job_id, Stage.EVAL_ABC, index)
    scene.end(job_id, Stage.SYNTH)
    return buffers


def _prove(scene: Scene, job_id: str, circuits: int) -> None:
    scene.stage(job_id, Stage.PROVE)
    scene.util = 97.0
    scene.stage(job_id, Stage.PREP_MSM)
    scene.wait(60)
    scene.end(job_id, Stage.PREP_MSM)
    for stage, (name, ms, ops, op) in KERNELS.items():
        for index in range(circuits):
            scene.stage(job_id, stage, index)
            began = scene.t_ns
            scene.wait(ms)
            scene.add(
                Span(
                    t_ns=scene.t_ns, job_id=job_id, name=name, begin_ns=began, stage=stage, circuit=index, ops=ops, 
                    op=op,
                    moved_bytes=ops * 32, lane="cuda:0 s1" if scene.gpu else "cpu",
                    roof_percent=61.0 if scene.gpu else None,
                )
            )  # fmt: skip
            scene.end(job_id, stage, index)
    scene.stage(job_id, Stage.EPILOGUE)
    scene.wait(4, step_ms=2)
    scene.end(job_id, Stage.EPILOGUE)


def release(
    scene: Scene, buffers: list[tuple[int, int]], *, synchronous: bool = True, bytes_per_s: float = 12e9
) -> None:
    """Gives buffers back one after another; memory is read every 2 ms while it falls."""
    for number, size in buffers:
        began = scene.t_ns
        scene.wait(size / bytes_per_s * 1000, grow_bytes=-size, step_ms=2, user=0.0, system=1.0)
        scene.add(
            BufferReleased(
                t_ns=scene.t_ns,
                buffer_id=number,
                begin_ns=began,
                size_bytes=size,
                how="munmap",
                synchronous=synchronous,
            )
        )


def one_proof(*, gpu: bool = False, policy: Policy = Policy.SYNC_4K) -> Scene:
    """The whole scene: opening, a proof, and a second of quiet."""
    scene = Scene(gpu=gpu)
    opening(scene)
    proof(scene, policy=policy)
    scene.wait(1000, user=0.0)
    return scene
