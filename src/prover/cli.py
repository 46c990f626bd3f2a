"""`cuzk-prover`: one verb a task; a fault is one line on stderr and exit code 2; no verb loads what it does not need.

Exit codes: 0 done (verify: valid), 1 invalid proof, 2 bad input or usage, 70 a fault of this program, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from typing import NoReturn

from prover import __version__
from prover.errors import ProverError

VERBS = ("setup", "prove", "verify", "info", "porep", "serve")
"""Each is a module `prover.cli_VERB` with `add(parsers)` and `run(arguments)`."""


class _Parser(argparse.ArgumentParser):
    """Usage errors are one line too."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"cuzk-prover: {message}; see {self.prog} --help\n")
        sys.exit(2)


def main(arguments: list[str] | None = None) -> int:
    """Runs one verb; the exit code."""
    parser = _Parser(prog="cuzk-prover", description="Groth16 over BLS12-381: set up, prove, verify, serve.")
    parser.add_argument("--version", action="version", version=f"cuzk-prover {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    modules = {verb: importlib.import_module(f"prover.cli_{verb}") for verb in VERBS}
    for verb in VERBS:
        modules[verb].add(verbs)
    chosen = parser.parse_args(arguments)
    try:
        return int(modules[chosen.verb].run(chosen))
    except ProverError as error:
        return fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return fail("interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except MemoryError:
        return fail("out of memory", 2)
    except OSError as error:
        return fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), 2)
    except Exception:
        traceback.print_exc()
        return fail("internal fault, see above; please report it", 70)


def fail(text: str, code: int) -> int:
    """One line on stderr, whatever the text holds."""
    line = "".join(c if c.isprintable() else "?" for c in text.replace("\n", " "))
    sys.stderr.write(f"cuzk-prover: {line}\n")
    return code
