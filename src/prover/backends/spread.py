"""Several cards of one host behind one Backend: circuit i of a job belongs to card i mod n, from its key to its sums.

Every card holds every key and works on its own thread; phases of a proof stay, and within one the cards' circuits run
beside each other. A card that is lost, or that has no room for a key, costs the job it happens in; the next one goes to
the cards that are left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from prover.arena import Pinner, Scope
from prover.backends import U64, Backend, FixedBases, ResidentKey, Scalars, Split
from prover.backends.cuda.failures import OutOfDeviceMemory
from prover.backends.lanes import Choir, Lane, Outcome, cause, together
from prover.errors import BackendError
from prover.keys import ProvingKey, QueryName
from prover.profile import HostNeed, TailProfile
from prover.r1cs.matrices import R1cs
from prover.run import Run

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Part:
    """A key on one card."""

    lane: Lane
    resident: ResidentKey
    is_full: bool = False
    """A job ran out of device memory here."""


@dataclass(slots=True)
class SpreadKey:
    key: ProvingKey
    parts: list[Part]
    """Circuit i belongs to part i mod n; changed between jobs only."""

    def close(self) -> None:
        for part in self.parts:
            part.lane.call(part.resident.close)


@dataclass(slots=True)
class SpreadSplit:
    parts: dict[int, tuple[Lane, Split]] = field(default_factory=dict)
    """By index of the key's part."""

    def close(self) -> None:
        for lane, split in self.parts.values():
            lane.call(split.close)
        self.parts.clear()


@dataclass(slots=True)
class SpreadScalars:
    lane: Lane
    scalars: Scalars

    def close(self) -> None:
        self.lane.call(self.scalars.close)


class Spread:
    """Implements `prover.backends.Backend` over backends of one kind, one a card.

    Args:
        backends: one or more.
        left_out: sentences about cards that could not be had, said at the warm-up.
    """

    def __init__(self, backends: Sequence[Backend], left_out: Sequence[str] = ()) -> None:
        self._lanes = [Lane(backend) for backend in backends]
        self._left_out = list(left_out)
        self.name = backends[0].name
        self.pinner = SpreadPinner(self._lanes) if hasattr(backends[0], "pinner") else None
        self._brake = threading.Event()
        """Stops what the cards do at once for the job at hand."""
        self._made: dict[int, SpreadKey] = {}
        """Keys made on the cards and not yet handed out, by identity of their `ProvingKey`."""

    @property
    def devices(self) -> tuple[str, ...]:
        """Of the cards that work."""
        return tuple(lane.name for lane in self._lanes if lane.lost is None)

    @property
    def cards(self) -> tuple[tuple[int, str], ...]:
        """CUDA number and PCI address of each card that works."""
        return tuple(card for lane in self._lanes if lane.lost is None for card in getattr(lane.backend, "cards", ()))

    def warm_up(self, run: Run) -> None:
        """One card after another: those of one architecture find what the first has compiled."""
        while self._left_out:
            run.notice(f"a GPU is left out: {self._left_out.pop(0)}", "warning")
        lanes = self._working()
        choir = Choir(run, len(lanes))
        for at, lane in enumerate(lanes):
            error = _warm_up(lane, choir, at)
            if isinstance(error, BackendError):
                lane.lost = error
                rest = ", ".join(working.name for working in self._working())
                run.notice(f"{lane.name} is left out: {error}; circuits go to {rest}", "warning")
            elif error is not None:
                raise error

    def load_key(self, key: ProvingKey, run: Run) -> SpreadKey:
        """The key on every card that has room for it; that one has not is said.

        Raises:
            BackendError: no card can take it.
        """
        made = self._made.pop(id(key), None)
        if made is not None:
            return made
        lanes = self._working()
        choir = Choir(run, len(lanes))
        brake = threading.Event()
        outcomes = together(
            lanes, lambda at: lanes[at].backend.load_key(key, choir.voice(at, brake)), brake, each_for_itself=True
        )
        loaded = _loaded(key, lanes, outcomes)
        fatal = cause([o for o in outcomes if not loaded.parts or not isinstance(o.error, BackendError)])
        if fatal is not None:
            loaded.close()
            raise fatal
        for lane, outcome in zip(lanes, outcomes, strict=True):
            if outcome.error is not None:
                _say(f"{lane.name} does not take part: {outcome.error}", loaded, run)
        return loaded

    def resident_setup(self, r1cs: R1cs, run: Run) -> ProvingKey:
        """A test key made on every card from the same scalars (cuda only); `load_key` hands it out once."""
        lanes = self._working()
        choir = Choir(run, len(lanes))
        backends: list[Any] = [lane.backend for lane in lanes]
        recipe = lanes[0].call(backends[0].key_recipe, r1cs, run)
        brake = threading.Event()
        outcomes = together(lanes, lambda at: backends[at].make_key(recipe, choir.voice(at, brake)), brake)
        made, error = _loaded(recipe.key, lanes, outcomes), cause(outcomes)
        if error is not None:
            made.close()
            raise error
        self._made[id(recipe.key)] = made
        return recipe.key

    def each(self, key: ResidentKey, count: int, work: Callable[[int], T]) -> list[T]:
        """Cards beside each other, the circuits of one card in their order."""
        parts = _parts(key)
        results: dict[int, T] = {}

        def share(at: int) -> None:
            for circuit in range(at, count, len(parts)):
                if self._brake.is_set():
                    return
                results[circuit] = work(circuit)

        self._joined(parts[:count], share)
        return [results[circuit] for circuit in range(count)]

    def prep_msm(self, key: ResidentKey, assignments: Sequence[U64], scope: Scope, run: Run) -> SpreadSplit:
        assert isinstance(key, SpreadKey)
        self._regroup(key, run)
        size, taking = len(key.parts), key.parts[: len(assignments)]
        choir = Choir(run, len(taking))
        split, shares = SpreadSplit(), [assignments[at::size] for at in range(len(taking))]

        def take(at: int) -> None:
            part = taking[at]
            made = part.lane.backend.prep_msm(part.resident, shares[at], scope, choir.voice(at, self._brake))
            split.parts[at] = part.lane, made

        try:
            self._joined(taking, take)
        except BaseException:
            split.close()
            raise
        finally:
            # What `take` encloses outlives a failure; see `Lane.call`.
            shares.clear()
        return split

    def ntt_h(self, key: ResidentKey, a: U64, b: U64, c: U64, run: Run, circuit: int) -> SpreadScalars:
        part, local, voice = self._place(key, run, circuit)
        scalars = part.lane.call(part.lane.backend.ntt_h, part.resident, a, b, c, voice, local)
        return SpreadScalars(part.lane, scalars)

    def msm_h(self, key: ResidentKey, h: Scalars, run: Run, circuit: int) -> U64:
        assert isinstance(h, SpreadScalars)
        part, local, voice = self._place(key, run, circuit)
        return part.lane.call(part.lane.backend.msm_h, part.resident, h.scalars, voice, local)

    def batch_add(self, key: ResidentKey, split: Split, query: QueryName, run: Run, circuit: int) -> U64:
        part, local, voice = self._place(key, run, circuit)
        own = _own(split, key, circuit)
        return part.lane.call(part.lane.backend.batch_add, part.resident, own, query, voice, local)

    def tail_msm(self, key: ResidentKey, split: Split, query: QueryName, run: Run, circuit: int) -> U64:
        part, local, voice = self._place(key, run, circuit)
        own = _own(split, key, circuit)
        return part.lane.call(part.lane.backend.tail_msm, part.resident, own, query, voice, local)

    def host_need(self, key: ProvingKey, tail: TailProfile, num_circuits: int) -> HostNeed:
        lanes = self._working()[:num_circuits]
        shares = [len(range(at, num_circuits, len(lanes))) for at in range(len(lanes))]
        needs = [lane.backend.host_need(key, tail, share) for lane, share in zip(lanes, shares, strict=True)]
        return HostNeed(
            sum(need.split_bytes for need in needs), sum(need.tail_bases_bytes for need in needs),
            sum(need.scratch_bytes for need in needs),
        )  # fmt: skip

    def fixed_bases(self) -> FixedBases:
        """Points of a setup, multiplied on the first card that works."""
        return SpreadBases(self._working()[0])

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()

    def _working(self) -> list[Lane]:
        lanes = [lane for lane in self._lanes if lane.lost is None]
        if not lanes:
            raise next(lane.lost for lane in self._lanes if lane.lost is not None)
        return lanes

    def _joined(self, parts: Sequence[Part], work: Callable[[int], object]) -> None:
        """`work` on the card of every part; raises what stopped them once all stand still."""
        try:
            outcomes = together([part.lane for part in parts], work, self._brake)
        finally:
            self._brake = threading.Event()
        for part, outcome in zip(parts, outcomes, strict=True):
            part.is_full = part.is_full or isinstance(outcome.error, OutOfDeviceMemory)
        error = cause(outcomes)
        if error is not None:
            raise error

    def _regroup(self, key: SpreadKey, run: Run) -> None:
        """Before a job: parts on lost cards go, and full ones as long as another is left."""
        self._working()
        lost = [part for part in key.parts if part.lane.lost is not None]
        full = [part for part in key.parts if part.is_full and part.lane.lost is None]
        gone = lost if len(lost) + len(full) == len(key.parts) else lost + full
        key.parts = [part for part in key.parts if part not in gone]
        for part in gone:
            part.lane.call(part.resident.close)
        if not key.parts:
            key.parts = self.load_key(key.key, run).parts
        for part in gone:
            _say(f"{part.lane.name} is left out: {part.lane.lost or 'it ran out of device memory'}", key, run)
        for part in key.parts:
            part.is_full = False

    def _place(self, key: ResidentKey, run: Run, circuit: int) -> tuple[Part, int, Run]:
        """The part that a circuit belongs to, its number there, and the job as its card hears it."""
        parts = _parts(key)
        local, at = divmod(circuit, len(parts))
        return parts[at], local, Choir(run, len(parts)).voice(at, self._brake)


class SpreadBases:
    """Implements `prover.backends.FixedBases` on one lane."""

    def __init__(self, lane: Lane) -> None:
        self._lane, self._bases = lane, lane.call(lane.backend.fixed_bases)

    def g1(self, scalars: U64, *, progress: Callable[[int], None] | None = None) -> U64:
        return self._lane.call(self._bases.g1, scalars, progress=progress)

    def g2(self, scalars: U64, *, progress: Callable[[int], None] | None = None) -> U64:
        return self._lane.call(self._bases.g2, scalars, progress=progress)

    def close(self) -> None:
        self._lane.call(self._bases.close)


class SpreadPinner:
    """Implements `prover.arena.Pinner`: what any card has page-locked is locked for all of them."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        self._by: dict[int, Lane] = {}

    def pin(self, address: int, size_bytes: int) -> None:
        lane = next((lane for lane in self._lanes if lane.lost is None), None)
        if lane is not None:
            self._by[address] = lane
            _pinner(lane).pin(address, size_bytes)

    def unpin(self, address: int) -> None:
        """Undoes `pin`.

        Raises:
            BufferError: the card that locked the memory is lost. Its driver may go on reading the old pages at this
                address, whatever is mapped there next, so that the mapping has to stay.
        """
        lane = self._by.get(address)
        if lane is None:
            return
        if lane.lost is not None and len(self._lanes) > 1:
            raise BufferError(f"{lane.name} is lost and had locked this memory")
        del self._by[address]
        _pinner(lane).unpin(address)


def _warm_up(lane: Lane, choir: Choir, at: int) -> BaseException | None:
    """What kept one card from being warmed up."""
    brake = threading.Event()
    voice = choir.voice(at, brake)
    return cause(together([lane], lambda _at: lane.backend.warm_up(voice), brake))


def _parts(key: ResidentKey) -> list[Part]:
    assert isinstance(key, SpreadKey)
    return key.parts


def _own(split: Split, key: ResidentKey, circuit: int) -> Split:
    """The split of a circuit's card."""
    assert isinstance(split, SpreadSplit)
    return split.parts[circuit % len(_parts(key))][1]


def _loaded(key: ProvingKey, lanes: Sequence[Lane], outcomes: Sequence[Outcome[ResidentKey]]) -> SpreadKey:
    """The key on the lanes that took it."""
    pairs = zip(lanes, outcomes, strict=True)
    return SpreadKey(key, [Part(lane, outcome.value) for lane, outcome in pairs if outcome.value is not None])


def _pinner(lane: Lane) -> Pinner:
    return lane.backend.pinner  # type: ignore[attr-defined]


def _say(text: str, key: SpreadKey, run: Run) -> None:
    rest = ", ".join(part.lane.name for part in key.parts)
    run.notice(f"{text}; circuits go to {rest}", "warning")
