"""One visit to a GPU: compile, check on fresh random data, time; machine block first, raw figures as JSON.

Usage: python benchmarks/gpu_session.py --out FOLDER PART...
Parts: fields, ntt:LOG,..., g1:LOG/WINDOW/...,..., g2 likewise, witness:LOG,WINDOW,...; only the units they need are
compiled (`gpu_compile.py` times that), and the JSON is written after every figure.
Every timed result is checked: field operations against Python integers, NTTs by Horner and by the round trip, MSMs
against (sum k_i s_i) G, since every point is k_i G with a known random k_i.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from prover.backends.cuda import compile as compiler
from prover.backends.cuda import sort
from prover.backends.cuda.device import Device
from prover.backends.cuda.launch import FR_BYTES, Memory, Window, ceil_div
from prover.backends.cuda.msm import G1, G2, Curve, Msm
from prover.backends.cuda.ntt import Ntt, field_array
from prover.backends.cuda.sort import ScalarSource
from prover.params import FP_MONT, FR_MONT, G1_GENERATOR, G2_GENERATOR, P, R, root_of_unity

STARTED_S = time.monotonic()
UNITS_OF = {"fields": compiler.PROBE_UNITS, "ntt": ("ntt", *compiler.PROBE_UNITS)}
"""Units of a part; of every other part, all."""


def say(*words: object) -> None:
    print(f"[{time.monotonic() - STARTED_S:6.1f}]", *words, flush=True)


def machine() -> dict[str, object]:
    def ask(fields: str) -> str:
        try:
            command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
            return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout.strip()
        except OSError:
            return ""

    import cupy

    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    return {
        "gpu": ask("name,driver_version,clocks.sm,clocks.mem,clocks_throttle_reasons.active,power.draw"),
        "kernel": platform.release(), "cpus": os.cpu_count(), "python": platform.python_version(),
        "cupy": cupy.__version__, "nvrtc": compiler.compiler_version(), "commit": commit,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }  # fmt: skip


class Session:
    def __init__(self, out: Path, seed: int, parts: set[str]) -> None:
        self.out, self.random, self.most_repeats = out, random.Random(seed), 1000
        self.device = Device()
        self.results: dict[str, object] = {"machine": machine(), "seed": seed}
        say(self.results["machine"])
        began = time.monotonic()
        everything = (*compiler.UNITS, *compiler.PROBE_UNITS)
        wanted = {unit for part in parts for unit in UNITS_OF.get(part, everything)}
        units = [unit for unit in everything if unit in wanted]
        images = compiler.compile_units(units, self.device.architecture)
        compile_s = time.monotonic() - began
        began = time.monotonic()
        self.device.load(images)
        self.device.resources("fr_ops")
        self.results["compile"] = {
            "wall_s": compile_s, "load_s": time.monotonic() - began, "unit_s": {i.unit: i.seconds for i in images},
        }  # fmt: skip
        say("compile", self.results["compile"])

    def seed64(self) -> np.uint64:
        return np.uint64(self.random.getrandbits(63))

    def scalars(self, n: int) -> Memory:
        memory = self.device.empty(n * FR_BYTES)
        self.device.launch("fr_random", 2048, 256, self.seed64(), n, memory)
        return memory

    def timed(self, what: Callable[[], object], repeats: int) -> dict[str, object]:
        """Wall clock around the synchronous call, and milliseconds of each kernel in the last repeat."""
        self.device.is_timed = False
        what()
        wall, repeats = [], min(repeats, self.most_repeats)
        for _ in range(repeats):
            self.device.synchronize()
            began = time.perf_counter()
            what()
            self.device.synchronize()
            wall.append((time.perf_counter() - began) * 1e3)
        self.device.is_timed = True
        self.device.take_times()
        what()
        kernels: dict[str, float] = {}
        times = self.device.take_times()
        for t in times:
            kernels[t.kernel] = kernels.get(t.kernel, 0.0) + (t.end_ns - t.begin_ns) / 1e6
        self.device.is_timed = False
        return {
            "median_ms": round(statistics.median(wall), 3), "min_ms": round(min(wall), 3),
            "max_ms": round(max(wall), 3), "n": repeats,
            "device_ms": round((times[-1].end_ns - times[0].begin_ns) / 1e6, 3) if times else 0.0,
            "kernels_ms": {k: round(v, 3) for k, v in sorted(kernels.items(), key=lambda kv: -kv[1])},
        }  # fmt: skip

    def record(self, name: str, value: object) -> None:
        self.results[name] = value
        say(name, json.dumps(value))
        (self.out / "gpu_session.json").write_text(json.dumps(self.results, indent=1))

    # --- fields ---
    def fields(self) -> None:
        self.prime_field("fr_ops", R, FR_MONT, 32)
        self.prime_field("fp_ops", P, FP_MONT, 48)
        self.fp2()
        self.record("fields_checked", 4096)
        for kernel, size, threads, blocks in (
            ("fp_product_chain", 48, 128, 4), ("fr_product_chain", 32, 256, 4), ("fp2_product_chain", 96, 128, 2),
        ):  # fmt: skip
            self.chain(kernel, size, threads, self.device.num_sms * blocks)

    def chain(self, kernel: str, size: int, threads: int, grid: int) -> None:
        """Products a second, every thread a chain of its own."""
        count = 2 * grid * threads
        values = self.device.download(self.scalars(count * size // 32), (count * size // 8,), np.uint64)
        if size != 32:  # cut the top limb, so that every element is below the modulus
            values.reshape(-1, 6)[:, 5] &= np.uint64((1 << 58) - 1)
        memory, steps = self.device.upload(values), 2000
        t = self.timed(lambda: self.device.launch(kernel, grid, threads, memory, steps), 11)
        rate = count * steps / (t["device_ms"] / 1e3) / 1e9
        self.record(kernel, {"G_per_s": round(rate, 2), "registers": self.device.resources(kernel), **t})

    def compare(self, kernel: str, op: int, operands: list[list[int]], size: int, want: list[int]) -> None:
        """One field operation on raw Montgomery words against the integers that are wanted."""
        n = len(want)
        packed = [np.frombuffer(b"".join(v.to_bytes(size, "little") for v in o), np.uint64) for o in operands]
        out = self.device.empty(n * size)
        left, right = (self.device.upload(p) for p in packed)
        count = n // 2 if kernel == "fp2_ops" else n
        self.device.launch(kernel, 64, 128, left, right, op, count, out)
        raw = self.device.download(out, (n * size,), np.uint8).tobytes()
        got = [int.from_bytes(raw[i : i + size], "little") for i in range(0, n * size, size)]
        if got != want:
            at = next(i for i in range(n) if got[i] != want[i])
            raise SystemExit(f"WRONG {kernel} {op} at {at}: {hex(got[at])} for {hex(want[at])}")

    def prime_field(self, kernel: str, modulus: int, mont: int, size: int) -> None:
        n, rnd, inv = 4096, self.random, pow(mont, -1, modulus)
        edge = [0, 1, modulus - 1, 2, modulus - 2, (1 << (8 * size - 4)) % modulus, mont]
        a = edge * 7 + [rnd.randrange(modulus) for _ in range(n - 49)]
        b = [v for v in edge for _ in range(7)] + [rnd.randrange(modulus) for _ in range(n - 49)]
        laws = {
            0: lambda x, y: x * y * inv, 1: lambda x, y: x + y, 2: lambda x, y: x - y, 4: lambda x, _: x * inv,
            5: lambda x, _: x * x * inv, 6: lambda x, _: -x,
        }  # fmt: skip
        if size == 48:
            laws[3] = lambda x, _: pow(x, -1, modulus) * mont * mont if x else 0
        for op, law in laws.items():
            self.compare(kernel, op, [a, b], size, [law(x, y) % modulus for x, y in zip(a, b, strict=True)])

    def fp2(self) -> None:
        n, rnd, inv = 1024, self.random, pow(FP_MONT, -1, P)

        def draw() -> list[int]:
            return [rnd.choice((0, 1, P - 1, rnd.randrange(P), rnd.randrange(P))) for _ in range(2 * n)]

        left, right = draw(), draw()
        laws = {
            0: lambda a, b, c, d: ((a * c - b * d) * inv, (a * d + b * c) * inv), 1: lambda a, b, c, d: (a + c, b + d),
            2: lambda a, b, c, d: (a - c, b - d), 5: lambda a, b, c, d: ((a * a - b * b) * inv, 2 * a * b * inv),
        }  # fmt: skip
        for op, law in laws.items():
            want = []
            for i in range(0, 2 * n, 2):
                want += [v % P for v in law(*left[i : i + 2], *right[i : i + 2])]
            self.compare("fp2_ops", op, [left, right], 48, want)

    # --- NTT ---
    def ntt(self, log_n: int) -> None:
        n, w = 1 << log_n, root_of_unity(log_n)
        began = time.monotonic()
        plans = {
            "forward": Ntt(self.device, log_n, w), "inverse": Ntt(self.device, log_n, w, inverse=True),
            "coset_forward": Ntt(self.device, log_n, w, shift=7),
            "coset_inverse": Ntt(self.device, log_n, w, shift=7, inverse=True),
        }  # fmt: skip
        self.device.synchronize()
        row: dict[str, object] = {"tables_s": round(time.monotonic() - began, 3)}
        values, scratch = self.scalars(n), self.device.empty(n * FR_BYTES)
        original = self.device.download(values, (n, 4), np.uint64)
        for shift, forward, inverse in ((1, "forward", "inverse"), (7, "coset_forward", "coset_inverse")):
            work = self.device.upload(original)
            result = plans[forward].run(work, scratch)
            if log_n <= 20:
                row[f"{forward}_ok"] = self.horner(original, self.device.download(result, (n, 4), np.uint64), w, shift)
            back = plans[inverse].run(result, work if result is scratch else scratch)
            row[f"{inverse}_round_trip"] = bool((self.device.download(back, (n, 4), np.uint64) == original).all())
        for name, plan in plans.items():
            row[name] = self.timed(lambda plan=plan: plan.run(values, scratch), 11)
        if log_n <= 24:
            batch, batch_scratch = self.scalars(3 * n), self.device.empty(3 * n * FR_BYTES)
            row["forward_x3"] = self.timed(lambda: plans["forward"].run(batch, batch_scratch, 3), 11)
        self.record(f"ntt_{log_n}", row)

    def horner(self, xs: np.ndarray, transformed: np.ndarray, w: int, shift: int) -> bool:
        """Whether a few values of the transform are the polynomial's."""
        n, coefficients = len(xs), integers(xs)
        for k in (0, 1, n - 1, self.random.randrange(n)):
            point, total = shift * pow(w, k, R) % R, 0
            for x in reversed(coefficients):
                total = (total * point + x) % R
            if total != integers(transformed[k : k + 1])[0]:
                return False
        return True

    # --- MSM ---
    def bases(self, curve: Curve, n: int) -> tuple[Memory, Memory]:
        """n random points and their logarithms."""
        generator = self.device.upload(generator_array(curve))
        table = self.device.empty(32 * 255 * curve.affine_bytes)
        self.device.launch(f"{curve.name}_fill_table", ceil_div(32 * 255, 128), 128, generator, table)
        logs, points = self.scalars(n), self.device.empty(n * curve.affine_bytes)
        self.device.launch(f"{curve.name}_multiply_table", self.device.num_sms * 16, 128, table, logs, n, points)
        self._table = table
        self.device.synchronize()
        return points, logs

    def expected(self, curve: Curve, scalars: Memory, logs: Memory, n: int) -> np.ndarray:
        partial = self.device.empty(65536 * FR_BYTES)
        self.device.launch("fr_dot", 256, 256, scalars, logs, n, partial)
        total = sum(integers(self.device.download(partial, (65536, 4), np.uint64))) % R
        point = self.device.empty(curve.affine_bytes)
        scalar = self.device.upload(field_array([total]))
        self.device.launch(f"{curve.name}_multiply_table", 1, 128, self._table, scalar, 1, point)
        return self.device.download(point, curve.shape, np.uint64)

    def small_points(self, curve: Curve) -> None:
        """The generator's multiples by this file's kernels against Python integers."""
        _, logs = self.bases(curve, 64)
        points = self.device.empty(64 * curve.affine_bytes)
        self.device.launch(f"{curve.name}_multiply_table", 1, 128, self._table, logs, 64, points)
        got = self.device.download(points, (64, *curve.shape), np.uint64)
        from py_arkworks_bls12381 import G1Point, G2Point, Scalar

        kind = G1Point if curve is G1 else G2Point
        ok = all(
            point_bytes(got[i]) == bytes((kind() * Scalar(k)).to_compressed_bytes())
            for i, k in enumerate(integers(self.device.download(logs, (64, 4), np.uint64)))
        )  # fmt: skip
        self.record(f"{curve.name}_multiples_match_arkworks", ok)

    def msm(self, curve: Curve, sizes: list[int], windows: dict[int, list[int]]) -> None:
        self.small_points(curve)
        top = max(sizes)
        began = time.monotonic()
        points, logs = self.bases(curve, 1 << top)
        say("bases", time.monotonic() - began)
        msm = Msm(self.device, curve, 40 << 30)
        for log_n in sizes:
            n = 1 << log_n
            for bits in windows.get(log_n, [0]):
                scalars = self.scalars(n)
                source = ScalarSource(scalars, n)
                result = msm.run(points, source, bits or None)
                ok = bool((result == self.expected(curve, scalars, logs, n)).all())
                row = self.timed(lambda s=source, b=bits: msm.run(points, s, b or None), 11 if log_n < 25 else 5)
                self.record(f"{curve.name}_msm_{log_n}_c{bits}", {"ok": ok, **row})
                self.device.trim()
        self.laws(curve, msm, points, logs, min(1 << 14, 1 << top))

    def laws(self, curve: Curve, msm: Msm, points: Memory, logs: Memory, n: int) -> None:
        """Skew and odd sizes, each checked; times of the skewed ones."""
        outcome: dict[str, object] = {}

        def right(bases: Memory, scalars: Memory, logs: Memory, count: int) -> bool:
            got = msm.run(bases, ScalarSource(scalars, count))
            return bool((got == self.expected(curve, scalars, logs, count)).all()) if count else not got.any()

        for count in (0, 1, 2, 3, min(1000, n), n - 1, n):
            outcome[f"size_{count}"] = right(points, self.scalars(max(count, 1)), logs, count)
        one = self.device.download(self.scalars(1), (1, 4), np.uint64)
        outcome["equal_scalars"] = right(points, self.device.upload(np.repeat(one, n, 0)), logs, n)
        same = self.device.upload(np.repeat(self.device.download(points, (1, *curve.shape), np.uint64), n, 0))
        same_logs = self.device.upload(np.repeat(self.device.download(logs, (1, 4), np.uint64), n, 0))
        outcome["equal_points"] = right(same, self.scalars(n), same_logs, n)
        self.record(f"{curve.name}_laws", outcome)
        if curve is G1:
            big = min(1 << 20, points.size_bytes // curve.affine_bytes)
            source = ScalarSource(self.device.upload(np.repeat(one, big, 0)), big)
            self.record("g1_equal_scalars_20", self.timed(lambda: msm.run(points, source), 5))

    def witness(self, curve: Curve, log_n: int, windows: list[int]) -> None:
        n = 1 << log_n
        points, logs = self.bases(curve, n)
        values = self.scalars(n)
        self.device.launch("fr_witness", 2048, 256, self.scalars(n), n, values)
        expected = self.expected(curve, values, logs, n)
        msm, source = Msm(self.device, curve, 40 << 30), ScalarSource(values, n)
        for bits in windows:

            def both(bits: int = bits) -> tuple[np.ndarray, np.ndarray]:
                classes = sort.classify(self.device, source)
                ones = msm.sum(points, classes.ones, classes.num_ones)
                tail = msm.run(points, ScalarSource(values, classes.num_tail, points=classes.tail), bits or None)
                return ones, tail

            ones, tail = both()
            joined, out = self.device.upload(np.stack([ones, tail])), self.device.empty(curve.affine_bytes)
            second = Window(joined, curve.affine_bytes)
            self.device.launch(f"{curve.name}_sums_probe", 1, 128, joined, second, 1, 1, out)
            ok = bool((self.device.download(out, curve.shape, np.uint64) == expected).all())
            self.record(f"{curve.name}_witness_{log_n}_c{bits}", {"ok": ok, **self.timed(both, 11)})
        row = self.timed(lambda: msm.run(points, source), 3)
        self.record(f"{curve.name}_witness_{log_n}_unclassified", row)


def integers(array: np.ndarray) -> list[int]:
    """Canonical integers of (n, 4) Montgomery Fr."""
    raw, inverse = array.tobytes(), pow(FR_MONT, -1, R)
    return [int.from_bytes(raw[i : i + 32], "little") * inverse % R for i in range(0, len(raw), 32)]


def generator_array(curve: Curve) -> np.ndarray:
    flat = G1_GENERATOR if curve is G1 else tuple(v for pair in G2_GENERATOR for v in pair)
    data = b"".join((v * FP_MONT % P).to_bytes(48, "little") for v in flat)
    return np.frombuffer(data, np.uint64).reshape(curve.shape)


def point_bytes(point: np.ndarray) -> bytes:
    """Compressed ZCash encoding of a finite affine Montgomery point."""
    inverse = pow(FP_MONT, -1, P)
    values = [int.from_bytes(c.tobytes(), "little") * inverse % P for c in point.reshape(-1, 6)]
    x, y = values[: len(values) // 2], values[len(values) // 2 :]
    largest = next(((v > (P - 1) // 2) for v in reversed(y) if v), False)
    data = bytearray(b"".join(v.to_bytes(48, "big") for v in reversed(x)))
    data[0] |= 0x80 | (0x20 if largest else 0)
    return bytes(data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "benchmarks/results")))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--most-repeats", type=int, default=1000, help="fewer, where only correctness is wanted")
    arguments = parser.parse_args()
    session = Session(arguments.out, arguments.seed, {part.partition(":")[0] for part in arguments.parts})
    session.most_repeats = arguments.most_repeats
    for part in arguments.parts:
        name, _, rest = part.partition(":")
        sizes = [int(v) for v in rest.split(",")] if rest and "/" not in rest else []
        if name == "fields":
            session.fields()
        elif name == "ntt":
            for log_n in sizes or [20, 22, 24, 26]:
                session.ntt(log_n)
                session.device.trim()
        elif name in ("g1", "g2"):
            groups = [s.split("/") for s in rest.split(",")]
            windows = {int(g[0]): [int(c) for c in g[1:]] or [0] for g in groups}
            session.msm(G1 if name == "g1" else G2, sorted(windows), windows)
        elif name == "witness":
            session.witness(G1, sizes[0], sizes[1:] or [0])
        else:
            raise SystemExit(f"unknown part {part}")


if __name__ == "__main__":
    main()
