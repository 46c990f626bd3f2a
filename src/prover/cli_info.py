"""`cuzk-prover info`: what a file is, in lines; a file that is nothing known, or is damaged, is exit code 2."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(verbs: argparse._SubParsersAction) -> None:
    """Declares the verb."""
    parser = verbs.add_parser("info", help="say what a file is", description="Its curve, sizes, basis, checks.")
    parser.add_argument("file", type=Path, metavar="FILE")


def run(arguments: argparse.Namespace) -> int:
    """Prints one line a fact."""
    from prover.files.identify import identify

    for line in identify(arguments.file).lines():
        print(line)
    return 0
