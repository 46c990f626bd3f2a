"""Several cards of one host behind one Backend: circuit i of a job belongs to card i mod n, from its key to its sums.

Every card holds every key and works on its own thread; phases of a proof stay, and within one the cards' circuits run
beside each other. A card that has no room for a key takes no part in its jobs, and one that runs out of memory in a job
none in the next. A card that is lost is the end of them all: CUDA gives up the other cards of the process with it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from prover.arena import Pinner, Scope
from prover.backends import U64, Backend, FixedBases, ResidentKey, Scalars, Split
from prover.backends.cuda.failures import DeviceLost, OutOfDeviceMemory
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
        self._opened = [Lane(backend) for backend in backends]
        self._lanes = list(self._opened)
        """Those that warmed up."""
        self._left_out = list(left_out)
        self.name = backends[0].name
        self._brake = threading.Event()
        """Stops what the cards do at once for the job at hand."""
        self._made: dict[int, SpreadKey] = {}
        """Keys made on the cards and not yet handed out, by identity of their `ProvingKey`."""

    @property
    def devices(self) -> tuple[str, ...]:
        """Of the cards that work."""
        return () if self.lost else tuple(lane.name for lane in self._lanes)

    @property
    def cards(self) -> tuple[tuple[int, str], ...]:
        """CUDA number and PCI address of each card that works."""
        return tuple(card for lane in self._lanes for card in getattr(lane.backend, "cards", ()))

    @property
    def pinner(self) -> Pinner | None:
        """Of one card: what it has page-locked is locked for all of them."""
        return getattr(self._lanes[0].backend, "pinner", None)

    @property
    def lost(self) -> str:
        """The loss of one card, which is that of all; empty while they work."""
        return next((lane.backend.lost for lane in self._opened if lane.backend.lost), "")

    def warm_up(self, run: Run) -> None:
        """One card after another: those of one architecture find what the first has compiled."""
        while self._left_out:
            run.notice(f"a GPU is left out: {self._left_out.pop(0)}", "warning")
        lanes = self._working()
        choir = Choir(run, len(lanes))
        for at, lane in enumerate(lanes):
            error = _warm_up(lane, choir, at)
            if isinstance(error, BackendError) and not self.lost and len(self._lanes) > 1:
                self._lanes.remove(lane)
                rest = ", ".join(working.name for working in self._lanes)
                run.notice(f"{lane.name} is left out: {error}; circuits go to {rest}", "warning")
            elif error is not None:
                raise error

    def load_key(self, key: ProvingKey, run: Run) -> SpreadKey:
        """The key on every card that has room for it; that one has not is said.

        Raises:
            BackendError: no card can take it, or one was lost.
        """
        lanes = self._working()
        made = self._made.pop(id(key), None)
        if made is not None:
            return made
        choir = Choir(run, len(lanes))
        brake = threading.Event()
        outcomes = together(
            lanes, lambda at: lanes[at].backend.load_key(key, choir.voice(at, brake)), brake, each_for_itself=True
        )
        loaded = _loaded(key, lanes, outcomes)
        is_borne = bool(loaded.parts) and not self.lost
        fatal = self._cause([o for o in outcomes if not (is_borne and isinstance(o.error, BackendError))])
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
        made, error = _loaded(recipe.key, lanes, outcomes), self._cause(outcomes)
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
        self._working()
        self._leave_out_full(key, run)
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
        """Points of a setup, multiplied on the first card."""
        return SpreadBases(self._working()[0])

    def close(self) -> None:
        for lane in self._opened:
            lane.close()

    def _working(self) -> list[Lane]:
        if self.lost:
            raise BackendError(self.lost)
        return list(self._lanes)

    def _joined(self, parts: Sequence[Part], work: Callable[[int], object]) -> None:
        """`work` on the card of every part; raises what stopped them once all stand still."""
        try:
            outcomes = together([part.lane for part in parts], work, self._brake)
        finally:
            self._brake = threading.Event()
        for part, outcome in zip(parts, outcomes, strict=True):
            part.is_full = part.is_full or isinstance(outcome.error, OutOfDeviceMemory)
        error = self._cause(outcomes)
        if error is not None:
            raise error

    def _cause(self, outcomes: Sequence[Outcome[T]]) -> BaseException | None:
        """What stopped the cards: where one was lost that, though others may have met it before it was told here."""
        for outcome in outcomes:
            if isinstance(outcome.error, DeviceLost) and outcome.error.ever_after == self.lost:
                outcome.turn = -1
        return cause(outcomes)

    def _leave_out_full(self, key: SpreadKey, run: Run) -> None:
        """Before a job: parts on cards that ran out of memory in the last one go, as long as another is left."""
        full = [part for part in key.parts if part.is_full]
        if len(full) < len(key.parts):
            key.parts = [part for part in key.parts if not part.is_full]
            for part in full:
                part.lane.call(part.resident.close)
                _say(f"{part.lane.name} is left out: it ran out of device memory", key, run)
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


def _say(text: str, key: SpreadKey, run: Run) -> None:
    rest = ", ".join(part.lane.name for part in key.parts)
    run.notice(f"{text}; circuits go to {rest}", "warning")
