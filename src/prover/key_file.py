"""One key file, whatever circuit asks for it: our own container, or a bellperson `.params`, told by its content."""

from __future__ import annotations

import os

from prover.errors import Mismatch
from prover.files.binfile import open_regular
from prover.files.container import MAGIC, open_key
from prover.files.densities import densities_of
from prover.files.params_file import read_params
from prover.keys import ProvingKey
from prover.r1cs.hash import circuit_hash
from prover.r1cs.matrices import R1cs
from prover.run import Run


class KeyFile:
    """A source of keys that holds one, read when it is first asked for.

    Args:
        path: of the file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.key: ProvingKey | None = None

    def key_for(self, r1cs: R1cs, run: Run) -> ProvingKey:
        """The file's key.

        Raises:
            BadFile: damaged, or not a key.
            Mismatch: of another circuit.
        """
        if self.key is None:
            with open_regular(self.path) as file:
                is_ours = file.read(len(MAGIC)) == MAGIC
            with run.span("read key"):
                key = open_key(self.path) if is_ours else read_params(self.path, densities_of(r1cs, circuit_hash(r1cs)))
            if is_ours and key.circuit_hash != circuit_hash(r1cs):
                raise Mismatch(f"{self.path}: is the key of another circuit than {r1cs.name or 'the one named'}")
            self.key = key
        return self.key
