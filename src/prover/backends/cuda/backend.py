"""The CUDA backend: the six verbs of a proof on one card, every kernel timed into the event stream.

Assignments are taken apart on the card; the host sees its own buffers, a few points an MSM, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from prover import wire
from prover.arena import Scope
from prover.backends import ResidentKey, Scalars, Split
from prover.backends.cuda import compile as compiler
from prover.backends.cuda.device import Device
from prover.backends.cuda.failures import OutOfDeviceMemory
from prover.backends.cuda.fixed_base import FixedBase
from prover.backends.cuda.fold import fold
from prover.backends.cuda.launch import FR_BYTES, Memory, Window, ceil_div
from prover.backends.cuda.msm import G1, G2, Curve, Msm
from prover.backends.cuda.ntt import Ntt, field_array
from prover.backends.cuda.resident import CudaKey, Placement
from prover.backends.cuda.setup import KeyRecipe, key_recipe, resident_setup
from prover.backends.cuda.sort import Classes, ScalarSource, classify
from prover.errors import BackendError
from prover.keys import HBasis, ProvingKey, QueryName
from prover.params import COSET_BELLMAN, ROOT_BELLMAN, ROOT_SNARKJS, R, root_of_unity
from prover.profile import HostNeed, TailProfile
from prover.r1cs.matrices import R1cs
from prover.run import Run, now
from prover.wire import Stage

T = TypeVar("T")
U64 = npt.NDArray[np.uint64]
SHORTEST_SPAN_NS = 20_000
"""Launches shorter than this are told as one span a verb, as long as all of them together and ending with the last: a
stream of thousands of them would tell nothing."""
WORKING_SHARE = 0.45
"""Part of the free device memory that one MSM's temporary lists may take."""
RETRIES = 2
"""Each retry after running out of device memory takes a quarter of the budget before it."""


@dataclass(slots=True)
class CudaScalars:
    values: Memory | None
    """(n, 4) on the card."""

    def close(self) -> None:
        self.values = None


@dataclass(slots=True)
class CudaSplit:
    """A circuit: its assignment on the card, and the classes of its scalars for each distinct wire list."""

    assignments: list[Memory] = field(default_factory=list)
    classes: list[dict[QueryName, Classes]] = field(default_factory=list)

    def close(self) -> None:
        self.assignments.clear()
        self.classes.clear()


class CudaBackend:
    """Implements `prover.backends.Backend`.

    Args:
        index: CUDA device number.
        device: the card itself, where it is open already.
        placement: where proving keys live between proofs.

    Raises:
        NoDevice: there is no usable GPU here.
    """

    name = "cuda"

    def __init__(
        self, index: int = 0, device: Device | None = None, placement: Placement = Placement.AUTO
    ) -> None:  # fmt: skip
        self._device, self._placement = device or Device(index), placement
        self.pinner = self._device
        """Page-locks an arena's buffers, so that copies run at the speed of the bus."""
        self._plans: tuple[object, list[Ntt]] | None = None
        self._made: dict[int, CudaKey] = {}
        """Keys made on the card and not yet handed out, by identity of their `ProvingKey`."""
        self._is_loaded = False

    @property
    def devices(self) -> tuple[str, ...]:
        """The card, unless it is lost."""
        return () if self.lost else (self._device.name,)

    @property
    def cards(self) -> tuple[tuple[int, str], ...]:
        """Its CUDA number and PCI address."""
        return () if self.lost else ((self._device.index, self._device.pci_address),)

    @property
    def lost(self) -> str:
        """What CUDA gave up the cards of this process for; empty while they work."""
        return self._device.lost

    def warm_up(self, run: Run) -> None:
        """Compiles the kernels for this card (once a machine), loads them, and warms the host's part."""
        if self._is_loaded:
            return
        units = compiler.UNITS
        began = now()

        def report(done: int, total: int, unit: str) -> None:
            run.progress(Stage.COMPILE, done, total, "units", what=f"{unit}.cu for sm_{self._device.architecture}")

        images = compiler.compile_units(
            units, self._device.architecture, workers=len(os.sched_getaffinity(0)), on_progress=report, check=run.check
        )
        self._device.load(images)
        for curve in (G1, G2):
            fold(np.zeros((1, 1, 4, *curve.shape[1:]), np.uint64), 1, 0)
        run.progress(Stage.COMPILE, len(units), len(units), "units", what="loaded")
        run.emit(
            wire.Span(t_ns=now(), job_id=run.job_id, name="compile kernels", begin_ns=began, stage=Stage.COMPILE)
        )
        self._is_loaded = True

    def load_key(self, key: ProvingKey, run: Run) -> CudaKey:
        self._require_card()
        # Launches that nobody has told of yet are those of a setup on this card.
        self._tell(run, Stage.SETUP, None)
        made = self._made.pop(id(key), None)
        return CudaKey(key, self._device, run, self._placement) if made is None else made

    def resident_setup(self, r1cs: R1cs, run: Run) -> ProvingKey:
        """A test key that exists on the card alone; `load_key` hands it out once."""
        recipe = self.key_recipe(r1cs, run)
        self._made[id(recipe.key)] = self.make_key(recipe, run)
        return recipe.key

    def key_recipe(self, r1cs: R1cs, run: Run) -> KeyRecipe:
        """What a test key is made from, on this card or on several."""
        self._require_card()
        return key_recipe(r1cs, self._device, run, threads=len(os.sched_getaffinity(0)))

    def make_key(self, recipe: KeyRecipe, run: Run) -> CudaKey:
        """The key of a recipe on this card."""
        self._require_card()
        made = resident_setup(recipe, self._device, run)
        self._tell(run, Stage.SETUP, None)
        return made

    def each(self, key: ResidentKey, count: int, work: Callable[[int], T]) -> list[T]:
        return [work(circuit) for circuit in range(count)]

    def host_need(self, key: ProvingKey, tail: TailProfile, num_circuits: int) -> HostNeed:
        """Nothing: scalars are taken apart on the card."""
        return HostNeed()

    def fixed_bases(self) -> FixedBase:
        """Points of a setup, multiplied on this card."""
        self._require_card()
        return FixedBase(self._device)

    def ntt_h(self, key: ResidentKey, a: U64, b: U64, c: U64, run: Run, circuit: int) -> CudaScalars:
        with self._verb(run, Stage.NTT_H, circuit):
            device, n = self._device, key.key.domain_size
            inverse, forward, back, factor = self._transforms(key.key)
            values, scratch = device.empty(3 * n * FR_BYTES), device.empty(3 * n * FR_BYTES)
            parts = [Window(values, i * n * FR_BYTES, n * FR_BYTES) for i in range(3)]
            rooms = [Window(scratch, i * n * FR_BYTES, n * FR_BYTES) for i in range(3)]
            device.copies_after_kernels()
            columns = [np.ascontiguousarray(x) for x in (a, b, c)]
            arrivals = [device.copy_ahead(part, column) for part, column in zip(parts, columns, strict=True)]
            results = []
            for part, room, arrived in zip(parts, rooms, arrivals, strict=True):
                run.check()
                device.await_copy(arrived)
                middle = inverse.run(part, room)
                results.append(forward.run(middle, room if middle is part else part))
            h = device.empty(n * FR_BYTES)
            device.launch(
                "quotient", min(ceil_div(n, 256), device.num_sms * 16), 256, *results, factor, n, h,
                ops=2 * n, op="fr_mul", moved_bytes=4 * n * FR_BYTES,
            )  # fmt: skip
            if back is not None:
                h = back.run(h, device.empty(n * FR_BYTES))
            # The caller's buffers may be released as soon as this returns.
            device.synchronize()
        return CudaScalars(h)

    def msm_h(self, key: ResidentKey, h: Scalars, run: Run, circuit: int) -> U64:
        assert isinstance(key, CudaKey) and isinstance(h, CudaScalars) and h.values is not None
        source = ScalarSource(h.values, len(key.key.h_query))
        with self._verb(run, Stage.MSM_H, circuit):
            return self._retried(G1, run, lambda msm: msm.run(key.points(None, run), source))

    def prep_msm(self, key: ResidentKey, assignments: Sequence[U64], scope: Scope, run: Run) -> CudaSplit:
        assert isinstance(key, CudaKey)
        split = CudaSplit()
        with self._verb(run, Stage.PREP_MSM, None):
            self._device.copies_after_kernels()
            arrivals, held = [], [np.ascontiguousarray(assignment) for assignment in assignments]
            for assignment in held:
                memory = self._device.empty(assignment.nbytes)
                arrivals.append(self._device.copy_ahead(memory, assignment))
                split.assignments.append(memory)
            for i, (memory, arrived) in enumerate(zip(split.assignments, arrivals, strict=True)):
                run.check()
                self._device.await_copy(arrived)
                classes: dict[QueryName, Classes] = {}
                for name, query in key.queries.items():
                    if query.class_of is name:
                        source = ScalarSource(memory, query.count, None, query.wires, query.first_wire)
                        classes[name] = classify(self._device, source)
                split.classes.append(classes)
                run.progress(Stage.PREP_MSM, i + 1, len(assignments), "circuits", what="classifying scalars")
            self._device.synchronize()
        return split

    def batch_add(self, key: ResidentKey, split: Split, query: QueryName, run: Run, circuit: int) -> U64:
        assert isinstance(key, CudaKey) and isinstance(split, CudaSplit)
        own = key.queries[query]
        ones = split.classes[circuit][own.class_of]
        with self._verb(run, Stage.B_G2_MSM if query is QueryName.B_G2 else Stage.BATCH_ADD, circuit):
            return self._retried(
                _curve(query), run, lambda msm: msm.sum(key.points(query, run), ones.ones, ones.num_ones)
            )

    def tail_msm(self, key: ResidentKey, split: Split, query: QueryName, run: Run, circuit: int) -> U64:
        assert isinstance(key, CudaKey) and isinstance(split, CudaSplit)
        own = key.queries[query]
        tail = split.classes[circuit][own.class_of]
        source = ScalarSource(split.assignments[circuit], tail.num_tail, tail.tail, own.wires, own.first_wire)
        with self._verb(run, Stage.B_G2_MSM if query is QueryName.B_G2 else Stage.TAIL_MSM, circuit):
            return self._retried(_curve(query), run, lambda msm: msm.run(key.points(query, run), source))

    def close(self) -> None:
        self._plans = None
        self._device.trim()

    def _transforms(self, key: ProvingKey) -> tuple[Ntt, Ntt, Ntt | None, Memory]:
        """Plans of the key's domain, kept until another domain comes."""
        lagrange = key.h_basis is HBasis.LAGRANGE_ODD
        log_n = key.domain_size.bit_length() - 1
        shape = (log_n, lagrange)
        if self._plans is None or self._plans[0] != shape:
            self._plans = None
            top = ROOT_SNARKJS if lagrange else ROOT_BELLMAN
            w = root_of_unity(log_n, top)
            g = root_of_unity(log_n + 1, top) if lagrange else COSET_BELLMAN
            plans = [Ntt(self._device, log_n, w, inverse=True), Ntt(self._device, log_n, w, shift=g)]
            if not lagrange:
                plans.append(Ntt(self._device, log_n, w, shift=g, inverse=True))
            self._plans = (shape, plans)
        plans = self._plans[1]
        factor = 1 if lagrange else pow(pow(COSET_BELLMAN, key.domain_size, R) - 1, -1, R)
        return plans[0], plans[1], None if lagrange else plans[2], self._device.upload(field_array([factor]))

    def _retried(self, curve: Curve, run: Run, work: Callable[[Msm], U64]) -> U64:
        free, _ = self._device.memory_bytes
        used, held = self._device.pool_bytes
        budget = int(WORKING_SHARE * (free + held - used))
        for attempt in range(RETRIES + 1):
            run.check()
            try:
                return work(Msm(self._device, curve, budget))
            except OutOfDeviceMemory:
                if attempt == RETRIES:
                    raise
            # The frames of what failed, and all that they hold, lived as long as the exception.
            self._device.trim()
            budget //= 4
            what = f"out of device memory, trying again with {budget / 1e9:.1f} GB"
            run.notice(f"{self._device.name}: {what}", "warning")
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _require_card(self) -> None:
        """A lost card stays lost: nothing is launched on it again."""
        if self.lost:
            raise BackendError(self.lost)

    @contextmanager
    def _verb(self, run: Run, stage: Stage, circuit: int | None) -> Iterator[None]:
        """What a verb launches, timed by CUDA events and told as spans, in an NVTX range of the stage's name."""
        run.check()
        self._require_card()
        with self._device.range(str(stage)):
            try:
                yield
            except BaseException:
                # Copies may still read the caller's buffers, which are released next.
                self._device.drain()
                raise
            self._tell(run, stage, circuit)

    def _tell(self, run: Run, stage: Stage, circuit: int | None) -> None:
        short = []
        for launched in self._device.take_times():
            if launched.end_ns - launched.begin_ns < SHORTEST_SPAN_NS:
                short.append(launched)
                continue
            run.emit(
                wire.Span(
                    t_ns=launched.end_ns, job_id=run.job_id, name=launched.kernel, begin_ns=launched.begin_ns,
                    stage=stage, circuit=circuit, lane=f"cuda:{self._device.index} s0",
                    moved_bytes=launched.moved_bytes, ops=launched.ops, op=launched.op,
                    roof_percent=self._device.roof_percent(launched), error_ns=launched.error_ns,
                )
            )  # fmt: skip
        if short:
            busy_ns = sum(launched.end_ns - launched.begin_ns for launched in short)
            run.emit(
                wire.Span(
                    t_ns=short[-1].end_ns, job_id=run.job_id, name="short kernels", begin_ns=short[-1].end_ns - busy_ns,
                    stage=stage, circuit=circuit, lane=f"cuda:{self._device.index} short", ops=len(short), op="launch",
                    error_ns=short[-1].error_ns,
                )
            )  # fmt: skip


def _curve(query: QueryName) -> Curve:
    return G2 if query is QueryName.B_G2 else G1
