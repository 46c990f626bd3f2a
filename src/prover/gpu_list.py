"""A list of GPUs as an operator writes it: CUDA numbers, comma separated, each once; `all` is every one."""

from __future__ import annotations

from prover.errors import BadRequest

MAX_GPUS = 64


def parse_gpus(text: str, backend: str = "auto") -> tuple[int, ...]:
    """The numbers in the order written; empty for every card.

    Raises:
        BadRequest: it is no such list, or goes with a backend that uses no GPU.
    """
    if not text:
        return ()
    if backend not in ("auto", "cuda"):
        raise BadRequest(f"--gpus {text[:60]} and --backend {backend} do not go together")
    if text == "all":
        return ()
    words = text.split(",") if len(text) <= 4 * MAX_GPUS else [text]
    if not all(word.isascii() and word.isdigit() and int(word) < MAX_GPUS for word in words):
        raise BadRequest(f"--gpus {text[:60]!r}: write CUDA numbers below {MAX_GPUS}, e.g. 0,2, or all")
    numbers = tuple(int(word) for word in words)
    if len(set(numbers)) < len(numbers):
        raise BadRequest(f"--gpus {text}: a GPU is named twice")
    return numbers
