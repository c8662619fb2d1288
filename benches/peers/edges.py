#!/usr/bin/env python3
"""Similarity edges beside what else one could compute them with, on the same vectors, in one run.

    pip install numpy mkl faiss-cpu        # mkl and faiss-cpu are optional: what is missing is left out
    cargo build --release -p hedgerow-cli
    python3 benches/peers/edges.py VECTORS.npy --rows 100000 --runs 5

VECTORS.npy holds one vector a row, f16 or f32; without it, vectors of 384 dimensions are made up. What is timed:

hedgerow    `hedgerow bench edges`: from vectors on disk to edges that are exact, capped, durable and verified
sgemm       the inner products of all pairs in blocks, f32, by MKL and by numpy's OpenBLAS; nothing is done with them
two passes  numpy: all products counted in fine bins, then all once more to find the exact percentile and each row's best
range       faiss `IndexFlatIP.range_search` with the threshold given: no percentile, no cap; every pair is found twice

Contenders take turns (A B C A B C), so that a machine that slows down slows all of them; the table tells medians. Two traps:
the OpenBLAS in the wheels of numpy and faiss may not know a new processor and then takes a kernel several times as slow, so
that OPENBLAS_CORETYPE is set here to SkylakeX where there is AVX-512 and to Haswell where there is AVX2 (--core overrides);
and a library may use more threads than the others, so that all are told how many. The table's head says what each really took.
Of sgemm, blocks on the diagonal are computed whole; rates count each pair once for all.
"""

import argparse
import ctypes
import glob
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

LEFT, RIGHT = 2048, 4096
BINS = 1 << 16
SLICE = 256  # rows of a block that are looked at together, so that what is computed of them stays in the cache
PENDING = 4_000_000
PAUSE = 0.5  # threads of OpenMP wait for more work by spinning, which would slow whoever comes next


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vectors", nargs="?")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--cap", type=int, default=32, help="partners that each row may choose")
    parser.add_argument("--percentiles", type=float, nargs="+", default=[95, 99])
    parser.add_argument("--faiss-rows", type=int, default=20_000, help="faiss keeps every pair it finds in memory")
    parser.add_argument("--without", nargs="*", default=[], choices=["mkl", "openblas", "two-passes", "faiss"])
    parser.add_argument("--core", help="OPENBLAS_CORETYPE")
    default = pathlib.Path(__file__).parents[2] / "target/release/hedgerow"
    parser.add_argument("--hedgerow", default=default)
    parser.add_argument("--range", type=float, help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if min(parsed.rows, parsed.faiss_rows, parsed.runs, parsed.threads, parsed.cap) < 1:
        parser.error("rows, runs, threads and cap are at least 1")
    return parsed


def environment(args):
    """Libraries read these when they are loaded."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(args.threads)
    core = args.core
    if core is None and os.path.exists("/proc/cpuinfo"):
        flags = pathlib.Path("/proc/cpuinfo").read_text()
        core = "SkylakeX" if "avx512bw" in flags else "Haswell" if "avx2" in flags else None
    if core:
        os.environ["OPENBLAS_CORETYPE"] = core


def read(args, rows):
    """The first rows, of length one."""
    if args.vectors:
        x = np.array(np.load(args.vectors, mmap_mode="r")[:rows], dtype=np.float32)
    else:
        random = np.random.default_rng(7)
        centres = random.standard_normal((200, 384), dtype=np.float32)
        x = centres[random.integers(0, 200, rows)] + random.standard_normal((rows, 384), dtype=np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def blocks(rows):
    """Blocks that cover all pairs of different rows."""
    for a in range(0, rows, LEFT):
        for c in range(a - a % RIGHT, rows, RIGHT):
            yield a, min(rows, a + LEFT), c, min(rows, c + RIGHT)


def sgemm_openblas(x):
    buffers = {}
    for a, b, c, d in blocks(len(x)):
        out = buffers.setdefault((b - a, d - c), np.empty((b - a, d - c), np.float32))
        np.dot(x[a:b], x[c:d].T, out=out)


def load_mkl():
    found = sorted(glob.glob(os.path.join(sys.prefix, "lib", "libmkl_rt.so*")))
    return ctypes.CDLL(found[-1]) if found else None


def sgemm_mkl(mkl, x):
    out = np.empty((LEFT, RIGHT), np.float32)
    pointer, one, zero, columns = ctypes.c_void_p, ctypes.c_float(1), ctypes.c_float(0), x.shape[1]
    at = lambda row: pointer(x.ctypes.data + row * columns * 4)
    row_major, plain, transposed = 101, 111, 112
    for a, b, c, d in blocks(len(x)):
        mkl.cblas_sgemm(
            row_major, plain, transposed, b - a, d - c, columns,
            one, at(a), columns, at(c), columns, zero, pointer(out.ctypes.data), RIGHT,
        )  # fmt: skip


def slices(x):
    """The similarities of all pairs, a few rows at a time, and where they stand; -2 for what is no pair of its own."""
    buffers = {}
    for a, b, c, d in blocks(len(x)):
        out = buffers.setdefault((b - a, d - c), np.empty((b - a, d - c), np.float32))
        np.dot(x[a:b], x[c:d].T, out=out)
        for start in range(a, b, SLICE):
            part = out[start - a : min(b, start + SLICE) - a]
            if c < start + len(part):
                part[np.arange(c, d)[None, :] <= np.arange(start, start + len(part))[:, None]] = -2
            yield start, c, part


def bins(similarities):
    """Bins in ascending order; the lowest one is for what is no pair."""
    return np.clip((similarities + 1) * (BINS / 2) + 1, 0, BINS).astype(np.int32)


def bin_of_percentile(x, percentile):
    """The bin that holds the percentile, and the index of it among the pairs of that bin."""
    counts = np.zeros(BINS + 1, np.int64)
    for _, _, part in slices(x):
        counts += np.bincount(bins(part).ravel(), minlength=BINS + 1)
    counts[0] = 0
    pairs = len(x) * (len(x) - 1) // 2
    target = min(int(pairs * percentile / 100), pairs - 1)
    ends = np.cumsum(counts)
    place = int(np.searchsorted(ends, target, side="right"))
    return place, target - int(ends[place] - counts[place])


def two_passes(x, percentile, cap):
    """The number of edges, by similarities as sgemm rounds them."""
    place, index = bin_of_percentile(x, percentile)
    low = (place - 1) / (BINS / 2) - 1
    within, best, pending, held = [], Best(len(x), cap), [], 0
    for start, first, part in slices(x):
        candidates = part[part >= low - 1e-6]
        within.append(candidates[bins(candidates) == place])
        rows, columns = slice(start, start + len(part)), slice(first, first + part.shape[1])
        for needed, turned in ((best.worst[rows, None], False), (best.worst[None, columns], True)):
            i, j = np.nonzero(part >= np.maximum(needed, low - 1e-6))
            ends = (i + start, j + first)
            pending.append((ends[turned], ends[not turned], part[i, j]))
            held += len(i)
        if held > PENDING:
            best.take(pending)
            pending, held = [], 0
    best.take(pending)
    within = np.concatenate(within)
    return best.edges(np.partition(within, index)[index])


class Best:
    """The most similar partners of each row."""

    def __init__(self, rows, cap):
        self.cap = cap
        self.rows = np.empty(0, np.int64)
        self.partners = np.empty(0, np.int64)
        self.values = np.empty(0, np.float32)
        self.worst = np.full(rows, -1, np.float32)

    def take(self, offers):
        rows, partners, values = (
            np.concatenate([held, *(offer[at] for offer in offers)])
            for at, held in enumerate((self.rows, self.partners, self.values))
        )
        order = np.lexsort((partners, -values, rows))
        rows, partners, values = rows[order], partners[order], values[order]
        starts = np.searchsorted(rows, np.arange(len(self.worst) + 1))
        kept = np.arange(len(rows)) - starts[rows] < self.cap
        self.rows, self.partners, self.values = rows[kept], partners[kept], values[kept]
        full = np.diff(starts) >= self.cap
        self.worst[full] = values[starts[:-1][full] + self.cap - 1]

    def edges(self, threshold):
        kept = self.values >= threshold
        rows, partners = self.rows[kept], self.partners[kept]
        return len(np.unique(np.minimum(rows, partners) * len(self.worst) + np.maximum(rows, partners)))


def hedgerow(args, path, rows, percentile):
    command = [args.hedgerow, "bench", "edges", "--vectors", path, "--rows", rows, "--percentile", percentile]
    command += ["--top-m", args.cap, "--threads", args.threads, "--json"]
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {run.stderr.strip()}")
    found = json.loads(run.stdout)
    return found["seconds"], found


def faiss_child(args):
    """In a process of its own: its OpenBLAS and OpenMP are not those of the others."""
    import faiss

    x = np.load(args.vectors)
    faiss.omp_set_num_threads(args.threads)
    start = time.perf_counter()
    index = faiss.IndexFlatIP(x.shape[1])
    index.add(x)
    limits, _, _ = index.range_search(x, args.range)
    print(json.dumps({"seconds": time.perf_counter() - start, "found": int(limits[-1]), "core": core_of("faiss_cpu")}))


def faiss_range(args, path, threshold):
    command = [sys.executable, __file__, path, "--range", str(threshold), "--threads", str(args.threads)]
    if args.core:
        command += ["--core", args.core]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found["seconds"], found


def core_of(package):
    """Which kernels the OpenBLAS inside a wheel took."""
    spec = importlib.util.find_spec(package.removesuffix("_cpu"))
    libraries = pathlib.Path(spec.origin).parents[1] / f"{package}.libs"
    for library in libraries.glob("lib*openblas*"):
        loaded = ctypes.CDLL(str(library))
        for name in ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename"):
            if hasattr(loaded, name):
                function = getattr(loaded, name)
                function.restype = ctypes.c_char_p
                return function().decode()
    return "unknown"


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def contenders(args, x, path):
    """Names, and what measures them: seconds, and what was found."""
    rows = len(x)
    named = {}
    for percentile in args.percentiles:
        named[f"hedgerow {percentile:g}"] = lambda p=percentile: hedgerow(args, path, rows, p)
    mkl = None if "mkl" in args.without else load_mkl()
    if mkl:
        text = ctypes.create_string_buffer(200)
        mkl.mkl_get_version_string(text, 200)
        print(f"MKL: {text.value.decode().strip()}")
        named["sgemm, MKL"] = lambda: timed(lambda: sgemm_mkl(mkl, x))
    if "openblas" not in args.without:
        named["sgemm, OpenBLAS"] = lambda: timed(lambda: sgemm_openblas(x))
    if "two-passes" not in args.without:
        for percentile in args.percentiles:
            named[f"two passes, numpy {percentile:g}"] = lambda p=percentile: timed(lambda: two_passes(x, p, args.cap))
    return named


def measure(args, rows, named):
    """Lets the contenders take turns and prints their medians."""
    seconds, found = {name: [] for name in named}, {}
    for _ in range(args.runs):
        for name, work in named.items():
            time.sleep(PAUSE)
            took, found[name] = work()
            seconds[name].append(took)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    pairs = rows * (rows - 1) / 2
    ours = [name for name in named if name.startswith("hedgerow")]
    head = ["contender", "median s", "least–most s", "Mpairs/s", *(f"× {name}" for name in ours), "found"]
    print(f"\n{rows:,} rows, {args.threads} threads, {args.runs} runs\n\n| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for name, median in medians.items():
        times = seconds[name]
        ratios = [f"{median / medians[other]:.2f}" for other in ours]
        line = [name, f"{median:.2f}", f"{min(times):.2f}–{max(times):.2f}", f"{pairs / median / 1e6:.0f}"]
        print("| " + " | ".join([*line, *ratios, told(found[name])]) + " |", flush=True)


def told(found):
    if isinstance(found, int):
        return f"{found:,} edges"
    if isinstance(found, dict) and "edges" in found:
        share = found.get("share_of_peak")
        return f"{found['edges']:,} edges" + (f"; {share:.0%} of the int8 peak" if share else "")
    if isinstance(found, dict):
        return f"{found['found']:,} pairs, both ways; OpenBLAS {found['core']}"
    return "products only"


def main(args):
    if not os.access(args.hedgerow, os.X_OK):
        sys.exit(f"{args.hedgerow}: no program; build it with cargo build --release -p hedgerow-cli, or give --hedgerow")
    print(f"numpy {np.__version__}, OpenBLAS {core_of('numpy')}")
    with tempfile.TemporaryDirectory() as folder:
        x = read(args, args.rows)
        path = os.path.join(folder, "vectors.npy")
        np.save(path, x)
        measure(args, len(x), contenders(args, x, path))
        if "faiss" in args.without or not importlib.util.find_spec("faiss"):
            return
        few = x[: args.faiss_rows]
        np.save(path, few)
        named = {}
        for percentile in args.percentiles:
            threshold = (bin_of_percentile(few, percentile)[0] - 1) / (BINS / 2) - 1
            named[f"hedgerow {percentile:g}"] = lambda p=percentile: hedgerow(args, path, len(few), p)
            named[f"range, faiss ≥ {threshold:.4f}"] = lambda t=threshold: faiss_range(args, path, t)
        measure(args, len(few), named)


if __name__ == "__main__":
    parsed = arguments()
    environment(parsed)
    import numpy as np

    if parsed.range is None:
        main(parsed)
    else:
        faiss_child(parsed)
