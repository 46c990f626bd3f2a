"""Several backends behind one make the proofs that each alone would, and at the same time."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest
from cards import Card, OneKey

from prover import wire
from prover.backends.cpu.backend import CpuBackend
from prover.backends.spread import Spread
from prover.builtin import BuiltinWorkload
from prover.circuits.registry import build
from prover.keys import QueryName
from prover.run import silent
from prover.setup import test_setup as make_key
from prover.wire import Outcome, Stage


@pytest.mark.parametrize("cards", [1, 2, 3])
@pytest.mark.parametrize("circuits", [1, 2, 5])
def test_proofs_are_those_of_one_card_bit_for_bit(house, cubic_key, cards, circuits):
    one = house(CpuBackend(1), single=True).prove(cubic_key, circuits)
    spread = house(*(Card(i) for i in range(cards))).prove(cubic_key, circuits)
    assert spread.outcome is Outcome.PROVED and spread.verified
    assert spread.proof_bytes == one.proof_bytes and spread.public_inputs == one.public_inputs


def test_the_cards_work_at_the_same_time_each_on_its_own_thread(house, cubic_key):
    cards = [Card(0), Card(1)]
    meeting = threading.Barrier(2)
    for card in cards:
        card.meeting = meeting
    assert house(*cards).prove(cubic_key, 4).verified
    assert [card.threads_seen for card in cards] == [{"prover/cuda:0"}, {"prover/cuda:1"}]


def test_stages_and_spans_carry_the_jobs_circuit_numbers_and_their_cards_thread(house, cubic_key):
    home = house(Card(0), Card(1))
    home.prove(cubic_key, 5)
    for kind in (wire.StageBegan, wire.StageEnded, wire.Span):
        told = [e for e in home.events if isinstance(e, kind) and e.stage in (Stage.NTT_H, Stage.MSM_H)]
        assert {e.circuit for e in told} == {0, 1, 2, 3, 4}
    began = [e for e in home.events if isinstance(e, wire.StageBegan) and e.stage is Stage.NTT_H]
    assert {(e.circuit, e.thread) for e in began} == {(i, f"prover/cuda:{i % 2}") for i in range(5)}
    tails = [e for e in home.events if isinstance(e, wire.Span) and e.stage is Stage.TAIL_MSM and e.name == "msm l"]
    assert sorted(e.circuit for e in tails) == [0, 1, 2, 3, 4]


def test_progress_that_the_cards_share_is_their_sum_and_only_rises(house, cubic_key):
    class Telling(Card):
        def load_key(self, key, run):
            for done in range(1, 11):
                run.progress(Stage.SRS, done, 10, "bytes", what=str(done))
            return super().load_key(key, run)

    home = house(Telling(0), Telling(1), Telling(2))
    home.prove(cubic_key, 3)
    told = [e for e in home.events if isinstance(e, wire.Progress) and e.stage is Stage.SRS]
    assert len(told) == 30 and (told[-1].done, told[-1].total) == (30, 30)
    assert all(x.done * y.total <= y.done * x.total for x, y in pairwise(told))


def test_memory_for_the_host_is_the_sum_of_what_the_cards_take(cubic_key):
    cards = [Card(0), Card(1), Card(2)]
    spread = Spread(cards)
    profile = BuiltinWorkload("cubic", 5, OneKey(cubic_key)).profile(cubic_key, silent())
    need = spread.host_need(cubic_key, profile, 5)
    parts = [cards[0].host_need(cubic_key, profile, share) for share in (2, 2, 1)]
    assert need.split_bytes == sum(part.split_bytes for part in parts)
    assert need.tail_bases_bytes == 3 * parts[0].tail_bases_bytes
    assert spread.host_need(cubic_key, profile, 1) == cards[0].host_need(cubic_key, profile, 1)
    spread.close()


def test_bases_of_a_setup_are_multiplied_on_a_card_that_works(cubic_key, waste):
    cards = [Card(0), Card(1)]
    spread = Spread(cards)
    key = make_key(build("cubic").r1cs, silent(), waste=waste, bases=spread.fixed_bases())
    assert (key.h_query == cubic_key.h_query).all()
    assert (key.query(QueryName.B_G2).points == cubic_key.query(QueryName.B_G2).points).all()
    spread.close()
