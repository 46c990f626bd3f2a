"""Where jobs go to several cards, the header names them all and each has its row of kernels."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scene import MS, one_proof

from cuzktui.model import store
from cuzktui.model.snapshot import Snapshot
from cuzktui.widgets import header, lanes, memory
from cuzktui.widgets.view import View
from prover.wire import Event, Span

DONE = one_proof(gpu=True).events


def fold(events: list[Event]) -> Snapshot:
    return store.apply_all(store.empty(), events)


def view_of(snapshot: Snapshot) -> View:
    return View(snapshot, end_ns=snapshot.t_ns, span_s=10, lens=snapshot.lens)


@pytest.mark.parametrize(
    ("devices", "shown"),
    [
        (["cuda:0 NVIDIA H200"], "cuda:0 H200"),
        (["cuda:0 NVIDIA H200", "cuda:1 NVIDIA H200"], "cuda 2 × H200"),
        (["cuda:0 NVIDIA H200", "cuda:2 NVIDIA L4"], "cuda:0 H200 + cuda:2 L4"),
    ],
)
def test_the_header_names_every_card_that_jobs_go_to(devices: list[str], shown: str) -> None:
    snapshot = fold(DONE)
    hello = replace(snapshot.hello, devices=devices)
    assert f" {shown} " in header.header_grid(view_of(replace(snapshot, hello=hello)), 160).text()


def test_kernels_of_several_cards_have_a_row_each() -> None:
    begin_ns = DONE[0].t_ns
    spans = [
        Span(t_ns=begin_ns + (i + 4) * 50 * MS, begin_ns=begin_ns + i * 50 * MS, job_id="a", name=f"k{i}", lane=lane)
        for i, lane in enumerate(["cuda:0 s0", "cuda:1 s0", "cuda:2 s0", "cuda:0 s0", "cpu"])
    ]
    job = fold([*DONE[:3], *spans]).find_job("a")
    blocks = lanes.kernel_blocks([job], begin_ns, begin_ns + 1000 * MS, MS)
    rows = lanes.by_card(blocks, 3)
    assert {name: [block.name for block in row] for name, row in rows.items()} == {
        "cuda:0": ["k0", "k3", "k4"], "cuda:1": ["k1"], "cuda:2": ["k2"],
    }  # fmt: skip
    assert list(lanes.by_card(blocks, 2)) == ["cuda:0", "cuda:1 +1"]
    assert lanes.by_card(blocks, 1) == lanes.by_card([b for b in blocks if b.device == "cuda:0"], 3) == {}
    two = fold([replace(e, lane=f"cuda:{i % 2} s0") if isinstance(e, Span) else e for i, e in enumerate(DONE)])
    drawn = memory.memory_grid(view_of(two), 120, 40).text()
    assert "cuda:0 " in drawn and "cuda:1 " in drawn and "kernel" not in drawn
