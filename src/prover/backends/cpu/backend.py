"""The CPU backend: the six verbs on numba kernels, a fixed number of threads, one span for every routine that ran.

Operation counts come from the work at hand: butterflies of the domain, nonzero digits and buckets of these scalars.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from prover import wire
from prover.arena import Scope
from prover.backends import ResidentKey, Scalars, Split
from prover.backends.cpu.batch_sum import batch_sum
from prover.backends.cpu.digits import Room, recode, windows_of
from prover.backends.cpu.fixed_base import FixedBase
from prover.backends.cpu.msm import CHUNK, bucket_msm
from prover.backends.cpu.ntt import Twiddles, bit_reverse, dif, dit, quotient_in_place, twiddles
from prover.backends.cpu.points import add
from prover.backends.cpu.split import CpuSplit, chosen, split, tail_rows
from prover.backends.cpu.warm import compile_kernels
from prover.backends.cpu.workers import Tick, Workers
from prover.keys import HBasis, ProvingKey, QueryName
from prover.params import COSET_BELLMAN, ROOT_BELLMAN, ROOT_SNARKJS, R, root_of_unity
from prover.profile import HostNeed, TailProfile
from prover.run import Run, now
from prover.wire import Owner, Stage

T = TypeVar("T")
U64 = npt.NDArray[np.uint64]
FR_BYTES = 32


@dataclass(slots=True)
class CpuKey:
    """A key as the kernels want it: writable-typed, aligned, contiguous; mapped pages stay mapped pages."""

    key: ProvingKey
    room: Room | None = None
    """The job's scratch, between `prep_msm` and the split's `close`."""

    def leave_room(self) -> None:
        self.room = None

    def close(self) -> None:
        """Nothing of its own to give back."""


@dataclass(slots=True)
class CpuScalars:
    values: U64 | None
    """(n, 4): a view of the `a` buffer."""

    def close(self) -> None:
        self.values = None


@dataclass(slots=True)
class _Work:
    """What a routine did; filled in while it runs."""

    ops: int | None = None
    moved_bytes: int | None = None


class CpuBackend:
    """Implements `prover.backends.Backend`.

    Args:
        threads: by default every core this process may run on.
    """

    name = "cpu"
    lost = ""

    def __init__(self, threads: int | None = None) -> None:
        self._workers = Workers(threads)
        self.threads = self._workers.threads
        self.devices = (f"cpu ({self.threads} thread{'s' if self.threads > 1 else ''})",)

    def warm_up(self, run: Run) -> None:
        """Compiles every kernel of a proof or loads it from the cache."""
        compile_kernels(run)

    def load_key(self, key: ProvingKey, run: Run) -> CpuKey:
        run.check()
        return CpuKey(key)

    def each(self, key: ResidentKey, count: int, work: Callable[[int], T]) -> list[T]:
        return [work(circuit) for circuit in range(count)]

    def ntt_h(self, key: ResidentKey, a: U64, b: U64, c: U64, run: Run, circuit: int) -> CpuScalars:
        """Scalars for the H query, in place of `a`."""
        pk = key.key
        log_size = pk.domain_size.bit_length() - 1
        lagrange = pk.h_basis is HBasis.LAGRANGE_ODD
        root = ROOT_SNARKJS if lagrange else ROOT_BELLMAN
        shift = root_of_unity(log_size + 1, root) if lagrange else COSET_BELLMAN
        inverse, forward = twiddles(log_size, root=root, inverse=True), twiddles(log_size, root=root, shift=shift)
        total = 6 if lagrange else 7
        for i, column in enumerate((a, b, c)):
            with self._transform("intt", forward, run, circuit, 2 * i, total) as tick:
                dif(column, inverse, self._workers, tick)
            with self._transform("coset_ntt", forward, run, circuit, 2 * i + 1, total) as tick:
                dit(column, forward, self._workers, tick)
        n, once = pk.domain_size, pow(pk.domain_size, -1, R)
        divisor = 1 if lagrange else pow((pow(COSET_BELLMAN, n, R) - 1) * n, -1, R)
        with self._span("quotient", run, Stage.NTT_H, circuit, "fr_mul", 4 * n, 4 * n * FR_BYTES):
            quotient_in_place(a, b, c, once * once * divisor % R, once * divisor % R, self._workers)
        if not lagrange:
            with self._transform("coset_intt", forward, run, circuit, 6, total) as tick:
                undo = twiddles(log_size, root=root, shift=shift, inverse=True)
                dif(a, undo, self._workers, tick)
                bit_reverse(a)
        return CpuScalars(a)

    def msm_h(self, key: ResidentKey, h: Scalars, run: Run, circuit: int) -> U64:
        assert isinstance(h, CpuScalars) and h.values is not None
        points = key.key.h_query
        return self._msm(key, points, h.values[: len(points)], None, run, Stage.MSM_H, circuit, "h")

    def prep_msm(self, key: ResidentKey, assignments: Sequence[U64], scope: Scope, run: Run) -> CpuSplit:
        assert isinstance(key, CpuKey)
        count = min(CHUNK, len(key.key.h_query))
        magnitudes = scope.array("msm magnitudes", Owner.SCRATCH, (count, 4), stage=Stage.PREP_MSM)
        rows = scope.array("msm digits", Owner.SCRATCH, (count * windows_of(count),), np.int16, stage=Stage.PREP_MSM)
        with self._span("split", run, Stage.PREP_MSM, None, "wire", key.key.num_wires * len(assignments)) as work:
            result = split(key.key, assignments, scope, run, self._workers)
            gathered = sum(q.bases.nbytes for q in result.queries.values())
            work.moved_bytes = sum(x.nbytes for x in assignments) + 2 * gathered + sum(x.nbytes for x in result.scalars)
        key.room, result.on_close = Room(magnitudes, rows), key.leave_room
        return result

    def batch_add(self, key: ResidentKey, split: Split, query: QueryName, run: Run, circuit: int) -> U64:
        assert isinstance(split, CpuSplit)
        stage = Stage.B_G2_MSM if query is QueryName.B_G2 else Stage.BATCH_ADD
        points = key.key.query(query)
        with self._span(f"batch_add {query}", run, stage, circuit, "point_add") as work:
            positions = chosen(points, split.ones[circuit])
            work.ops = len(positions)
            work.moved_bytes = len(positions) * _point_bytes(points.points)
            return batch_sum(points.points, positions, self._workers, _ticker(run, stage, circuit, f"ones of {query}"))

    def tail_msm(self, key: ResidentKey, split: Split, query: QueryName, run: Run, circuit: int) -> U64:
        assert isinstance(split, CpuSplit)
        stage = Stage.B_G2_MSM if query is QueryName.B_G2 else Stage.TAIL_MSM
        tail = split.queries[query]
        return self._msm(key, tail.bases, split.scalars[circuit], tail.rows, run, stage, circuit, str(query))

    def host_need(self, key: ProvingKey, tail: TailProfile, num_circuits: int) -> HostNeed:
        count = min(CHUNK, len(key.h_query))
        scratch_bytes = count * (FR_BYTES + 2 * windows_of(count))
        return HostNeed(tail.split_bytes(key.num_wires, num_circuits), tail.bases_bytes, scratch_bytes)

    def fixed_bases(self) -> FixedBase:
        return FixedBase(self.threads)

    def close(self) -> None:
        self._workers.close()

    def _msm(
        self, key: ResidentKey, points: U64, scalars: U64, rows: npt.NDArray[np.uint32] | None, run: Run,
        stage: Stage, circuit: int, what: str,
    ) -> U64:  # fmt: skip
        """Sum over points[i] * scalars[rows[i]], in chunks that bound the digits' memory."""
        assert isinstance(key, CpuKey)
        total = np.zeros(points.shape[1:], np.uint64)
        for low in range(0, len(points), CHUNK):
            part = slice(low, min(low + CHUNK, len(points)))
            count = part.stop - low
            with self._span(f"recode {what}", run, stage, circuit, "fr_mul", count, count * (3 * FR_BYTES)):
                chosen_scalars = scalars[part] if rows is None else tail_rows(scalars, rows[part])
                digits = recode(chosen_scalars, self._workers, room=key.room)
            moved = int(digits.nonzero.sum()) * _point_bytes(points) + digits.rows.nbytes
            with self._span(f"msm {what}", run, stage, circuit, "point_add", digits.additions, moved):
                tick = _ticker(run, stage, circuit, f"windows of {what}")
                total = add(total, bucket_msm(points[part], digits, self._workers, tick))
        return total

    @contextmanager
    def _transform(
        self, name: str, tw: Twiddles, run: Run, circuit: int, index: int, count: int
    ) -> Iterator[Tick]:
        def tick(_done: int, _total: int) -> None:
            run.check()

        moved = 2 * tw.passes * tw.size * FR_BYTES
        with self._span(name, run, Stage.NTT_H, circuit, "fr_mul", tw.products, moved):
            yield tick
        run.progress(Stage.NTT_H, index + 1, count, "transforms", circuit=circuit)

    @contextmanager
    def _span(
        self, name: str, run: Run, stage: Stage, circuit: int | None, op: str, ops: int | None = None,
        moved_bytes: int | None = None,
    ) -> Iterator[_Work]:  # fmt: skip
        """Like `Run.span`, with the CPU time of all threads and counts that may be known only at the end."""
        run.check()
        work = _Work(ops, moved_bytes)
        begin_ns, workers_ns, cpu_ns = now(), self._workers.cpu_ns, time.thread_time_ns()
        yield work
        own_ns = time.thread_time_ns() - cpu_ns
        threads_ns = self._workers.cpu_ns - workers_ns
        run.emit(
            wire.Span(
                t_ns=now(), job_id=run.job_id, name=name, begin_ns=begin_ns, stage=stage, circuit=circuit, lane="cpu",
                moved_bytes=work.moved_bytes, ops=work.ops, op=op,
                cpu_ns=own_ns + threads_ns,
            )
        )  # fmt: skip


def _ticker(run: Run, stage: Stage, circuit: int, what: str) -> Tick:
    def tick(done: int, total: int) -> None:
        run.check()
        run.progress(stage, done, total, "tasks", circuit=circuit, what=what)

    return tick


def _point_bytes(points: U64) -> int:
    return 8 * int(np.prod(points.shape[1:]))
