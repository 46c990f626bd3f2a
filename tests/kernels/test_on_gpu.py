"""On a card the inline PTX agrees with the portable form, and proofs with the CPU's; skipped where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from prover.arena import Arena
from prover.backends.cpu.backend import CpuBackend
from prover.backends.cuda import compile as compiler
from prover.backends.cuda.backend import CudaBackend
from prover.backends.cuda.device import Device
from prover.builtin import BuiltinWorkload
from prover.circuits.registry import build
from prover.errors import BackendError
from prover.jobs import Prover
from prover.prove import Blinding
from prover.run import silent
from prover.setup import test_setup as make_key
from prover.wire import Policy

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def device() -> Device:
    try:
        device = Device()
        device.load(compiler.compile_units([*compiler.UNITS, *compiler.PROBE_UNITS], device.architecture))
    except BackendError as error:
        pytest.skip(str(error))
    return device


@pytest.mark.parametrize("op", [0, 1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize(("kernel", "limbs"), [("fr_ops", 4), ("fp_ops", 6), ("fp2_ops", 12)])
def test_ptx_agrees_with_the_portable_form(device, launcher, kernel, limbs, op):
    if (kernel, op) in (("fr_ops", 3), ("fp2_ops", 4)):
        pytest.skip("this field has no such operation")
    rng = np.random.default_rng(op)
    operands = [rng.integers(0, 1 << 64, (512, limbs), dtype=np.uint64) for _ in range(2)]
    for a in operands:
        a.reshape(512, -1, min(limbs, 6))[..., -1] &= np.uint64((1 << (62 if limbs == 4 else 60)) - 1)
        a[:8] = 0
        a[8:16, 1:] = 0
    results = []
    for where in (device, launcher):
        out = where.empty(512 * limbs * 8)
        where.launch(kernel, 4, 128, *(where.upload(a) for a in operands), op, 512, out)
        results.append(where.download(out, (512, limbs), np.uint64))
    assert (results[0] == results[1]).all()


@pytest.mark.parametrize("name", ["cubic", "poseidon-merkle:1", "sha256-chain:1"])
def test_proofs_are_the_cpu_backends_bit_for_bit(device, name):
    key = make_key(build(name).r1cs, silent())

    class OneKey:
        def key_for(self, _r1cs, _run):
            return key

    proofs = []
    for backend in (CudaBackend(device=device), CpuBackend()):
        prover = Prover(backend, Arena(lambda _event: None, pinner=getattr(backend, "pinner", None)))
        workload = BuiltinWorkload(name, 2, OneKey(), seed=b"fixed")
        result = prover.run_job(workload, Policy.RECYCLE, silent(), blinding=[Blinding(3, 5), Blinding(7, 9)])
        proofs.append(result.proof_bytes)
        prover.close()
    assert proofs[0] == proofs[1]
