"""A program that holds and gives back memory when told to, and says when it did; it shares no code with the product.

Orders on standard input: `map BYTES` (4K pages, touched), `unmap`, `spin CPU_SECONDS`, `threads N`; each answered by
the CLOCK_MONOTONIC ns before and after.
"""

import mmap
import sys
import threading
import time

held = []
for order in sys.stdin:
    word, _, rest = order.strip().partition(" ")
    begin = time.monotonic_ns()
    if word == "map":
        mapping = mmap.mmap(-1, int(rest), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        mapping.madvise(mmap.MADV_NOHUGEPAGE)
        for offset in range(0, len(mapping), 1 << 22):
            mapping[offset : offset + (1 << 22)] = b"\1" * min(1 << 22, len(mapping) - offset)
        held.append(mapping)
    elif word == "unmap":
        begin = time.monotonic_ns()
        held.pop().close()
    elif word == "spin":
        end = time.process_time() + float(rest)
        while time.process_time() < end:
            pass
    elif word == "threads":
        for _ in range(int(rest)):
            threading.Thread(target=threading.Event().wait, daemon=True).start()
    print(begin, time.monotonic_ns(), flush=True)
