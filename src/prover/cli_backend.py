"""Where a verb computes is asked for in one set of words: --backend, --placement and --gpus."""

from __future__ import annotations

import argparse

from prover.serve.request import BACKENDS, PLACEMENTS


def add(parser: argparse.ArgumentParser) -> None:
    """Declares the options on a verb's parser."""
    parser.add_argument("--backend", choices=("auto", *BACKENDS), default="auto")
    parser.add_argument(
        "--placement", choices=PLACEMENTS, default="auto", help="where keys of a GPU live; host streams them"
    )
    parser.add_argument("--gpus", default="", metavar="LIST", help="CUDA numbers, e.g. 0,2; default: every GPU")
