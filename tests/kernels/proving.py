"""Jobs with fixed blinding: what one backend proves, every other must prove bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from prover import wire
from prover.arena import Arena
from prover.backends import Backend
from prover.backends.cpu.field import ints_to_fr
from prover.builtin import BuiltinWorkload
from prover.circuits.registry import build
from prover.file_workload import FileWorkload, open_zkey
from prover.files.wtns import write_wtns
from prover.jobs import JobResult, Prover
from prover.keys import HBasis, ProvingKey
from prover.prove import Blinding
from prover.r1cs.matrices import R1cs
from prover.run import Run, silent
from prover.setup import ToxicWaste
from prover.setup import test_setup as make_key
from prover.wire import Policy
from prover.workload import Workload

DATA = Path(__file__).resolve().parents[1] / "data"
WASTE = ToxicWaste(tau=0x1234567, alpha=3, beta=5, gamma=11, delta=7)
BLINDING = [Blinding(r=11, s=13), Blinding(r=17, s=19)]


class OneKey:
    """A source of keys that has one."""

    def __init__(self, key: ProvingKey) -> None:
        self.key = key

    def key_for(self, r1cs: R1cs, run: Run) -> ProvingKey:
        return self.key


def builtin(name: str, key: ProvingKey) -> BuiltinWorkload:
    """Two circuits with the same inputs every time."""
    return BuiltinWorkload(name, len(BLINDING), OneKey(key), seed=b"fixed")


def with_new_key(name: str, basis: HBasis = HBasis.LAGRANGE_ODD) -> BuiltinWorkload:
    """The same with a key of its own."""
    return builtin(name, make_key(build(name).r1cs, silent(), waste=WASTE, h_basis=basis))


def snarkjs_chain(_folder: Path) -> FileWorkload:
    """1 001 constraints by circom, key and witness by snarkjs."""
    chain = DATA / "snarkjs_2p10"
    return FileWorkload("chain", open_zkey(chain / "small.zkey", silent()), chain / "small.wtns", None, len(BLINDING))


def snarkjs_product(folder: Path) -> FileWorkload:
    """3 * 11 * 17 under a key by snarkjs, whose fixture comes without a witness."""
    witness = folder / "product.wtns"
    write_wtns(witness, ints_to_fr([1, 561, 3, 11, 17, 33]))
    zkey = open_zkey(DATA / "snarkjs_3fac" / "3_fac_final.zkey", silent())
    return FileWorkload("product", zkey, witness, None, len(BLINDING))


SNARKJS: dict[str, Callable[[Path], FileWorkload]] = {"chain": snarkjs_chain, "product": snarkjs_product}


def prove(
    backend: Backend, workload: Workload, *, events: list[wire.Event] | None = None, policy: Policy = Policy.SYNC_4K
) -> JobResult:
    """One job on a prover of its own; the backend is closed with it and can be used again."""
    emit = events.append if events is not None else lambda _event: None
    prover = Prover(backend, Arena(emit, pinner=getattr(backend, "pinner", None)))
    try:
        return prover.run_job(workload, policy, Run(emit, "job"), blinding=BLINDING[: workload.num_circuits])
    finally:
        prover.close()
