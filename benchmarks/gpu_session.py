"""One visit to a GPU: compile, check on fresh random data, time; machine block first, raw figures as JSON.

Usage: python benchmarks/gpu_session.py --out FOLDER PART...   (parts: fields ntt msm g2 witness)
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
from prover.backends.cuda.ntt import BLOCK, LOG_TILE, Ntt, field_array
from prover.backends.cuda.sort import ScalarSource
from prover.params import FP_MONT, FR_MONT, G1_GENERATOR, G2_GENERATOR, P, R, root_of_unity

STARTED_S = time.monotonic()


def say(*words: object) -> None:
    print(f"[{time.monotonic() - STARTED_S:6.1f}]", *words, flush=True)


def machine() -> dict[str, object]:
    def ask(fields: str) -> str:
        try:
            return subprocess.run(
                ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"], capture_output=True, text=True, timeout=20
            ).stdout.strip()
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
    def __init__(self, out: Path, seed: int) -> None:
        self.out, self.random = out, random.Random(seed)
        self.device = Device()
        self.results: dict[str, object] = {"machine": machine(), "seed": seed}
        say(self.results["machine"])
        began = time.monotonic()
        units = [*compiler.UNITS, *compiler.PROBE_UNITS]
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
        wall = []
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
            "median_ms": round(statistics.median(wall), 3), "min_ms": round(min(wall), 3), "max_ms": round(max(wall), 3),
            "n": repeats, "device_ms": round((times[-1].end_ns - times[0].begin_ns) / 1e6, 3) if times else 0.0,
            "kernels_ms": {k: round(v, 3) for k, v in sorted(kernels.items(), key=lambda kv: -kv[1])},
        }  # fmt: skip

    def record(self, name: str, value: object) -> None:
        self.results[name] = value
        say(name, json.dumps(value))
        (self.out / "gpu_session.json").write_text(json.dumps(self.results, indent=1))

    # --- fields ---
    def fields(self) -> None:
        n, rnd = 4096, self.random
        for kernel, modulus, mont, size in (("fr_ops", R, FR_MONT, 32), ("fp_ops", P, FP_MONT, 48)):
            edge = [0, 1, modulus - 1, 2, modulus - 2, (1 << (8 * size - 4)) % modulus, mont]
            a = edge * 7 + [rnd.randrange(modulus) for _ in range(n - 49)]
            b = [edge[i % 7] for i in range(7) for _ in range(7)] + [rnd.randrange(modulus) for _ in range(n - 49)]
            pack = lambda v: np.frombuffer(b"".join(x.to_bytes(size, "little") for x in v), np.uint64)  # noqa: E731
            da, db, out = self.device.upload(pack(a)), self.device.upload(pack(b)), self.device.empty(n * size)
            inv = pow(mont, -1, modulus)
            laws = {0: lambda x, y: x * y * inv, 1: lambda x, y: x + y, 2: lambda x, y: x - y, 4: lambda x, _: x * inv,
                    5: lambda x, _: x * x * inv, 6: lambda x, _: -x}  # fmt: skip
            if size == 48:
                laws[3] = lambda x, _: pow(x, -1, modulus) * mont * mont if x else 0
            for op, law in laws.items():
                if size == 32 and op == 3:
                    continue
                self.device.launch(kernel, 64, 128, da, db, op, n, out)
                raw = self.device.download(out, (n * size,), np.uint8).tobytes()
                got = [int.from_bytes(raw[i * size : (i + 1) * size], "little") for i in range(n)]
                bad = [i for i in range(n) if got[i] != law(a[i], b[i]) % modulus]
                if bad:
                    say("WRONG", kernel, op, len(bad), hex(a[bad[0]]), hex(b[bad[0]]), hex(got[bad[0]]))
                    raise SystemExit(1)
        self.fp2()
        self.record("fields_checked", n)
        for kernel, size, blocks in (("fp_product_chain", 48, 4), ("fr_product_chain", 32, 4), ("fp2_product_chain", 96, 2)):
            threads = 256 if kernel.startswith("fr") else 128
            grid = self.device.num_sms * blocks
            values = self.scalars(2 * grid * threads * size // 32)
            if size != 32:  # any limbs below the modulus do for timing; cut the top
                array = self.device.download(values, (2 * grid * threads * size // 48, 6), np.uint64)
                array[:, 5] &= np.uint64((1 << 58) - 1)
                values = self.device.upload(array)
            count = 2000
            t = self.timed(lambda: self.device.launch(kernel, grid, threads, values, count), 5)  # noqa: B023
            rate = 2 * count * grid * threads / (t["device_ms"] / 1e3) / 1e9
            self.record(kernel, {"G_per_s": round(rate, 2), "registers": self.device.resources(kernel), **t})

    def fp2(self) -> None:
        n, inv = 1024, pow(FP_MONT, -1, P)
        values = [[self.random.choice((0, 1, P - 1, self.random.randrange(P), self.random.randrange(P))) for _ in range(4)]
                  for _ in range(n)]  # fmt: skip
        pack = lambda i: np.frombuffer(b"".join(v[i + k].to_bytes(48, "little") for v in values for k in (0, 1)), np.uint64)  # noqa: E731
        da, db, out = self.device.upload(pack(0)), self.device.upload(pack(2)), self.device.empty(n * 96)
        laws = {
            0: lambda a, b, c, d: ((a * c - b * d) * inv, (a * d + b * c) * inv), 1: lambda a, b, c, d: (a + c, b + d),
            2: lambda a, b, c, d: (a - c, b - d), 5: lambda a, b, c, d: ((a * a - b * b) * inv, 2 * a * b * inv),
        }  # fmt: skip
        for op, law in laws.items():
            self.device.launch("fp2_ops", 32, 128, da, db, op, n, out)
            raw = self.device.download(out, (n * 96,), np.uint8).tobytes()
            got = [int.from_bytes(raw[i : i + 48], "little") for i in range(0, n * 96, 48)]
            for i, v in enumerate(values):
                want = tuple(x % P for x in law(*v))
                if want != tuple(got[2 * i : 2 * i + 2]):
                    say("WRONG fp2", op, [hex(x) for x in v])
                    raise SystemExit(1)

    # --- NTT ---
    def ntt(self, sizes: list[int]) -> None:
        for log_n in sizes:
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
                    xs = integers(original)
                    got = self.device.download(result, (n, 4), np.uint64)
                    for k in (0, 1, n - 1, self.random.randrange(n)):
                        point, total = shift * pow(w, k, R) % R, 0
                        for x in reversed(xs):
                            total = (total * point + x) % R
                        row[f"{forward}_ok"] = bool(total == integers(got[k : k + 1])[0]) and row.get(f"{forward}_ok", True)
                back = plans[inverse].run(result, work if result is scratch else scratch)
                row[f"{inverse}_round_trip"] = bool((self.device.download(back, (n, 4), np.uint64) == original).all())
            for log_tile, block in ((9, 128), (11, 128)):
                for plan in plans.values():
                    plan.log_tile, plan.block = log_tile, block
                if log_n != 26 or log_tile > 9:
                    t = self.timed(lambda: plans["forward"].run(values, scratch), 5)  # noqa: B023
                    row[f"forward_tile{log_tile}_block{block}"] = t["device_ms"]
            for plan in plans.values():
                plan.log_tile, plan.block = LOG_TILE, BLOCK
            for name, plan in plans.items():
                row[name] = self.timed(lambda: plan.run(values, scratch), 11)  # noqa: B023
            if log_n <= 24:
                batch = self.scalars(3 * n)
                batch_scratch = self.device.empty(3 * n * FR_BYTES)
                row["forward_x3"] = self.timed(lambda: plans["forward"].run(batch, batch_scratch, 3), 5)  # noqa: B023
            self.record(f"ntt_{log_n}", row)
            del plans, values, scratch
            self.device.trim()

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
        self.device.launch(f"{curve.name}_multiply_table", 1, 128, self._table, self.device.upload(field_array([total])), 1, point)
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

    def msm(self, curve: Curve, sizes: list[int], windows: dict[int, list[int]], repeats: int = 5) -> None:
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
                row = self.timed(lambda: msm.run(points, source, bits or None), repeats if log_n < 25 else 3)  # noqa: B023
                self.record(f"{curve.name}_msm_{log_n}_c{bits}", {"ok": ok, **row})
                self.device.trim()
        self.laws(curve, msm, points, logs, min(1 << 14, 1 << top))

    def laws(self, curve: Curve, msm: Msm, points: Memory, logs: Memory, n: int) -> None:
        """Skew and odd sizes, each checked; times of the skewed ones."""
        outcome: dict[str, object] = {}
        for count in (0, 1, 2, 3, 1000, n - 1, n):
            scalars = self.scalars(max(count, 1))
            got = msm.run(points, ScalarSource(scalars, count))
            outcome[f"size_{count}"] = bool((got == self.expected(curve, scalars, logs, count)).all()) if count else not got.any()
        one = self.device.download(self.scalars(1), (1, 4), np.uint64)
        equal = self.device.upload(np.repeat(one, n, 0))
        outcome["equal_scalars"] = bool((msm.run(points, ScalarSource(equal, n)) == self.expected(curve, equal, logs, n)).all())
        same_points = self.device.upload(np.repeat(self.device.download(points, (1, *curve.shape), np.uint64), n, 0))
        same_logs = self.device.upload(np.repeat(self.device.download(logs, (1, 4), np.uint64), n, 0))
        scalars = self.scalars(n)
        outcome["equal_points"] = bool((msm.run(same_points, ScalarSource(scalars, n)) == self.expected(curve, scalars, same_logs, n)).all())
        self.record(f"{curve.name}_laws", outcome)
        if curve is G1:
            big = min(1 << 20, points.size_bytes // curve.affine_bytes)
            equal = self.device.upload(np.repeat(one, big, 0))
            self.record("g1_equal_scalars_20", self.timed(lambda: msm.run(points, ScalarSource(equal, big)), 3))

    def witness(self, curve: Curve, log_n: int, windows: list[int]) -> None:
        n = 1 << log_n
        points, logs = self.bases(curve, n)
        values = self.scalars(n)
        self.device.launch("fr_witness", 2048, 256, self.scalars(n), n, values)
        expected = self.expected(curve, values, logs, n)
        msm, source = Msm(self.device, curve, 40 << 30), ScalarSource(values, n)
        for bits in windows:

            def both() -> tuple[np.ndarray, np.ndarray]:
                classes = sort.classify(self.device, source)
                ones = msm.sum(points, classes.ones, classes.num_ones)
                tail = msm.run(points, ScalarSource(values, classes.num_tail, points=classes.tail), bits or None)  # noqa: B023
                return ones, tail

            ones, tail = both()
            joined, out = self.device.upload(np.stack([ones, tail])), self.device.empty(curve.affine_bytes)
            second = Window(joined, curve.affine_bytes)
            self.device.launch(f"{curve.name}_sums_probe", 1, 128, joined, second, 1, 1, out)
            ok = bool((self.device.download(out, curve.shape, np.uint64) == expected).all())
            self.record(f"{curve.name}_witness_{log_n}_c{bits}", {"ok": ok, **self.timed(both, 5)})
        row = self.timed(lambda: msm.run(points, source), 3)
        self.record(f"{curve.name}_witness_{log_n}_unclassified", row)


def integers(array: np.ndarray) -> list[int]:
    """Canonical integers of (n, 4) Montgomery Fr."""
    raw, inverse = array.tobytes(), pow(FR_MONT, -1, R)
    return [int.from_bytes(raw[i : i + 32], "little") * inverse % R for i in range(0, len(raw), 32)]


def generator_array(curve: Curve) -> np.ndarray:
    flat = G1_GENERATOR if curve is G1 else tuple(v for pair in G2_GENERATOR for v in pair)
    return np.frombuffer(b"".join((v * FP_MONT % P).to_bytes(48, "little") for v in flat), np.uint64).reshape(curve.shape)


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
    arguments = parser.parse_args()
    session = Session(arguments.out, arguments.seed)
    for part in arguments.parts:
        name, _, rest = part.partition(":")
        sizes = [int(v) for v in rest.split(",")] if rest and "/" not in rest else []
        if name == "fields":
            session.fields()
        elif name == "ntt":
            session.ntt(sizes or [20, 22, 24, 26])
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
