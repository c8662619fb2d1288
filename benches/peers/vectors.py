#!/usr/bin/env python3
"""Nearest vectors, from an index on disk, beside what else one could ask, on the same vectors in one run.

    pip install numpy hnswlib usearch faiss-cpu zvec qdrant-edge-py lancedb     # all but numpy are optional: what is missing is left out
    cargo build --release -p hedgerow-cli
    python3 benches/peers/vectors.py --base BASE.npy --queries QUERIES.npy --truth TRUTH.npy --runs 5

BASE.npy and QUERIES.npy hold vectors, one a row, f32 or f16; both are brought to length one. TRUTH.npy holds for every query the
numbers of its nearest rows, the nearest first; what is measured is the share of the first ten that is found among ten. Contenders:

hedgerow         `hedgerow bench vectors`: a store with a document a vector, durable, opened as any reader does
hnswlib          HNSW in f32
usearch-TYPE     HNSW in f32, bf16 or i8
faiss            HNSW in f32; its OpenBLAS knows no new processor and is told SkylakeX
zvec-KIND        HNSW in f32; HNSW and Vamana in INT8, best candidates compared again in f32; by internal numbers, its fastest call
qdrant, -i8      HNSW of a shard of qdrant-edge in f32; the same in int8, rescored in f32
lancedb          IVF_HNSW_SQ of one partition, twice as many candidates compared again as are asked for

All graphs are built with M = 16 (32 links in the lowest layer) and 200 candidates, on --threads threads, by a process of its own whose
clock runs from vectors in memory to files that are synced. Another process opens the files and searches, pinned to one processor;
`rss_mb` is the most memory that it had (Python's own is about 35 MB of it). First each contender goes through its settings once,
until it has found 99.5 %; those next to 95 and 99 % are then measured --runs times, contenders taking turns (A B C A B C), so that
a machine that slows down slows all of them. Told is the median.

Where a library answers many queries by one call on one thread, one after the other, `qps` is that of the call, and nothing of Python
is in it; `p50_us` and `p99_us` are of calls for one query each. `cpu_qps` counts the time that the process computed, not that which
others took from it. The table at the end draws a line between the settings next to 95 % and to 99 %: of the logarithms of queries a
second and of the share that is missed. The first lines and those of settings are JSON.
"""

import argparse
import importlib.util
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

COUNT = 10  # neighbours
LINKS = 16
CANDIDATES = 200
EFS = [10, 13, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128, 160, 200, 256, 320, 400, 512, 640, 800, 1024]
AIMS = [0.95, 0.99]
ENOUGH = 0.995


class Hnswlib:
    module = "hnswlib"

    def build(self, base, path, threads):
        import hnswlib

        index = hnswlib.Index(space="ip", dim=base.shape[1])
        index.init_index(max_elements=len(base), M=LINKS, ef_construction=CANDIDATES)
        index.set_num_threads(threads)
        index.add_items(base, np.arange(len(base)))
        index.save_index(os.path.join(path, "index"))

    def open(self, path, dimensions):
        import hnswlib

        self.index = hnswlib.Index(space="ip", dim=dimensions)
        self.index.load_index(os.path.join(path, "index"))
        self.index.set_num_threads(1)

    def set(self, ef):
        self.index.set_ef(ef)

    def many(self, queries):
        return self.index.knn_query(queries, k=COUNT, num_threads=1)[0]

    def one(self, query):
        return self.index.knn_query(query, k=COUNT, num_threads=1)[0][0]


class Usearch:
    module = "usearch"

    def __init__(self, kind):
        self.kind = kind

    def build(self, base, path, threads):
        from usearch.index import Index

        index = Index(ndim=base.shape[1], metric="ip", dtype=self.kind, connectivity=LINKS, expansion_add=CANDIDATES)
        index.add(np.arange(len(base)), base, threads=threads)
        index.save(os.path.join(path, "index"))

    def open(self, path, dimensions):
        from usearch.index import Index

        self.index = Index.restore(os.path.join(path, "index"))

    def set(self, ef):
        self.index.expansion_search = ef

    def many(self, queries):
        return self.index.search(queries, COUNT, threads=1).keys

    def one(self, query):
        return self.index.search(query, COUNT, threads=1).keys


class Faiss:
    module = "faiss"

    def build(self, base, path, threads):
        import faiss

        faiss.omp_set_num_threads(threads)
        index = faiss.IndexHNSWFlat(base.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = CANDIDATES
        index.add(base)
        faiss.write_index(index, os.path.join(path, "index"))

    def open(self, path, dimensions):
        import faiss

        faiss.omp_set_num_threads(1)
        self.index = faiss.read_index(os.path.join(path, "index"))

    def set(self, ef):
        self.index.hnsw.efSearch = ef

    def many(self, queries):
        return self.index.search(queries, COUNT)[1]

    def one(self, query):
        return self.index.search(query[None], COUNT)[1][0]


class Zvec:
    module = "zvec"

    def __init__(self, kind):
        self.kind = kind

    def index(self, zvec):
        quantize = zvec.QuantizeType.UNDEFINED if self.kind == "f32" else zvec.QuantizeType.INT8
        common = {"metric_type": zvec.MetricType.COSINE, "quantize_type": quantize, "use_contiguous_memory": True}
        if self.kind == "vamana":
            return zvec.VamanaIndexParam(max_degree=2 * LINKS, search_list_size=CANDIDATES, **common)
        return zvec.HnswIndexParam(m=LINKS, ef_construction=CANDIDATES, **common)

    def build(self, base, path, threads):
        import zvec

        zvec.init(log_level=zvec.LogLevel.ERROR, optimize_threads=threads, query_threads=threads)
        vector = zvec.VectorSchema("v", zvec.DataType.VECTOR_FP32, base.shape[1], self.index(zvec))
        base_of = zvec.create_and_open(os.path.join(path, "base"), zvec.CollectionSchema("bench", vectors=vector))
        for start in range(0, len(base), 1000):
            rows = range(start, min(start + 1000, len(base)))
            base_of.insert([zvec.Doc(id=str(row), vectors={"v": base[row]}) for row in rows])
        base_of.optimize(zvec.OptimizeOption(concurrency=threads))
        base_of.flush()
        base_of.close()

    def open(self, path, dimensions):
        import zvec

        zvec.init(log_level=zvec.LogLevel.ERROR, query_threads=1, optimize_threads=1)
        self.zvec = zvec
        self.base = zvec.open(os.path.join(path, "base"), zvec.CollectionOption(read_only=True))

    def set(self, ef):
        refine = {"is_using_refiner": self.kind != "f32"}
        if self.kind == "vamana":
            self.param = self.zvec.VamanaQueryParam(ef_search=ef, **refine)
        else:
            self.param = self.zvec.HnswQueryParam(ef=ef, **refine)

    def one(self, query):
        return self.base.query_internal_ids(self.zvec.Query("v", vector=query, param=self.param), topk=COUNT)

    def rows(self, found):
        return np.array([[int(row) for row in self.base.resolve_internal_ids(ids)] for ids in found])


class Qdrant:
    module = "qdrant_edge"

    def __init__(self, kind):
        self.kind = kind

    def build(self, base, path, threads):
        import qdrant_edge as edge

        quantized = edge.ScalarQuantizationConfig(edge.ScalarType.Int8) if self.kind == "i8" else None
        graph = edge.HnswIndexConfig(LINKS, CANDIDATES, full_scan_threshold=10, max_indexing_threads=threads)
        config = edge.EdgeConfig(
            edge.EdgeVectorParams(base.shape[1], edge.Distance.Dot),
            hnsw_config=graph,
            quantization_config=quantized,
            optimizers=edge.EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=1, max_segment_size=1 << 40),
        )
        os.mkdir(os.path.join(path, "shard"))
        shard = edge.EdgeShard.create(os.path.join(path, "shard"), config)
        for start in range(0, len(base), 1000):
            rows = range(start, min(start + 1000, len(base)))
            points = [edge.Point(id=row, vector=base[row].tolist(), payload={}) for row in rows]
            shard.update(edge.UpdateOperation.upsert_points(points))
        shard.optimize()
        shard.flush()
        shard.close()

    def open(self, path, dimensions):
        import qdrant_edge as edge

        self.edge = edge
        self.shard = edge.EdgeShard.load(os.path.join(path, "shard"))

    def set(self, ef):
        rescored = self.edge.QuantizationSearchParams(rescore=True, oversampling=2.0) if self.kind == "i8" else None
        self.param = self.edge.SearchParams(hnsw_ef=ef, quantization=rescored)

    def one(self, query):
        nearest = self.edge.Query.Nearest(query.tolist())
        return [point.id for point in self.shard.search(self.edge.SearchRequest(nearest, COUNT, params=self.param))]


class Lancedb:
    module = "lancedb"

    def build(self, base, path, threads):
        import lancedb
        import pyarrow
        from lancedb.index import HnswSq

        vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(base.ravel()), base.shape[1])
        rows = pyarrow.table({"row": pyarrow.array(np.arange(len(base))), "vector": vectors})
        table = lancedb.connect(path).create_table("t", rows)
        shape = {"num_partitions": 1, "m": 2 * LINKS, "ef_construction": CANDIDATES}
        table.create_index("vector", config=HnswSq(distance_type="dot", **shape))

    def open(self, path, dimensions):
        import lancedb

        self.table = lancedb.connect(path).open_table("t")

    def set(self, ef):
        self.ef = max(ef, 2 * COUNT)  # it takes no less than the candidates that it compares again

    def one(self, query):
        asked = self.table.search(query).distance_type("dot").nprobes(1).ef(self.ef).refine_factor(2)
        return asked.select(["row", "_distance"]).limit(COUNT).to_arrow()["row"].to_pylist()


PEERS = {
    "hnswlib": Hnswlib,
    "usearch-f32": lambda: Usearch("f32"),
    "usearch-bf16": lambda: Usearch("bf16"),
    "usearch-i8": lambda: Usearch("i8"),
    "faiss": Faiss,
    "zvec-f32": lambda: Zvec("f32"),
    "zvec-i8": lambda: Zvec("i8"),
    "zvec-vamana": lambda: Zvec("vamana"),
    "qdrant": lambda: Qdrant("f32"),
    "qdrant-i8": lambda: Qdrant("i8"),
    "lancedb": Lancedb,
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--truth", required=True)
    parser.add_argument("--peers", type=lambda names: names.split(","), default=list(PEERS), help="names joined by commas")
    parser.add_argument("--without", type=lambda names: names.split(","), default=[], help="the same, to leave out; hedgerow too")
    parser.add_argument("--threads", type=int, default=2, help="for building")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--keep", help="keep indexes in this folder, and take those of peers that are there")
    default = pathlib.Path(__file__).parents[2] / "target/release/hedgerow"
    parser.add_argument("--hedgerow", default=default)
    for inner in ("--build", "--search", "--folder"):
        parser.add_argument(inner, help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    unknown = set(parsed.peers + parsed.without) - {*PEERS, "hedgerow"}
    if unknown:
        parser.error(f"no such peers: {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    if min(parsed.runs, parsed.threads) < 1:
        parser.error("runs and threads are at least 1")
    return parsed


def vectors(path):
    rows = np.load(path).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def peak_mb():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def sync(folder):
    """Makes sure that the files of a folder are on the medium, and tells their size."""
    size = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                os.fsync(file)
                size += os.fstat(file.fileno()).st_size
    return size / (1 << 20)


def build(args):
    """What runs in a process of its own: from vectors in memory to files on the medium."""
    base = vectors(args.base)
    peer = PEERS[args.build]()
    importlib.import_module(peer.module)
    start = time.perf_counter()
    peer.build(base, args.folder, args.threads)
    disk_mb = sync(args.folder)
    told = {"build_s": time.perf_counter() - start, "disk_mb": disk_mb, "build_rss_mb": peak_mb()}
    pathlib.Path(args.folder, "told.json").write_text(json.dumps(told))


def search(args):
    """What runs in a process of its own: answers a line with a setting by what it measured."""
    queries, truth = vectors(args.queries), np.load(args.truth)[:, :COUNT]
    start = time.perf_counter()
    peer = PEERS[args.search]()
    peer.open(args.folder, queries.shape[1])
    peer.set(EFS[0])
    peer.one(queries[0])
    opened = {"open_ms": (time.perf_counter() - start) * 1000}
    print(json.dumps(opened), flush=True)
    for line in sys.stdin:
        peer.set(int(line))
        found, times, wall, cpu = [], [], time.perf_counter(), time.process_time()
        for query in queries:
            start = time.perf_counter()
            found.append(peer.one(query))
            times.append((time.perf_counter() - start) * 1e6)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        if hasattr(peer, "many"):
            wall, cpu = time.perf_counter(), time.process_time()
            found = peer.many(queries)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        found = peer.rows(found) if hasattr(peer, "rows") else found
        right = sum(len(set(map(int, a)) & set(b.tolist())) for a, b in zip(found, truth))
        p50, p99 = np.percentile(times, [50, 99])
        told = {"setting": line.strip(), "recall": right / truth.size, "qps": len(queries) / wall, "cpu_qps": len(queries) / cpu}
        print(json.dumps(told | {"p50_us": p50, "p99_us": p99, "rss_mb": peak_mb()} | opened), flush=True)


def environment(threads):
    """For a process that may use so many threads, whichever library it has them from."""
    names = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "RAYON_NUM", "TOKIO_WORKER", "LANCE_CPU", "LANCE_IO")
    return {**os.environ, **{f"{name}_THREADS": str(threads) for name in names}, "OPENBLAS_CORETYPE": "SkylakeX"}


class Peer:
    """A peer whose index is built, and a process that searches it until its input ends."""

    def __init__(self, args, name, folder):
        self.name, self.settings = name, [str(ef) for ef in EFS]
        self.folder = os.path.join(folder, name)
        given = ["--base", args.base, "--queries", args.queries, "--truth", args.truth, "--folder", self.folder]
        command = [sys.executable, __file__, *given, "--threads", str(args.threads)]
        told = pathlib.Path(self.folder, "told.json")
        if not told.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            os.makedirs(self.folder)
            subprocess.run([*command, "--build", name], check=True, env=environment(args.threads))
        self.built = json.loads(told.read_text())
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        pinned = lambda: os.sched_setaffinity(0, PINNED)
        self.child = subprocess.Popen([*command, "--search", name], **pipes, env=environment(1), preexec_fn=pinned)
        self.answer()

    def answer(self):
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(f"its process ended with {self.child.wait()}")
        return json.loads(line)

    def measure(self, setting):
        print(setting, file=self.child.stdin, flush=True)
        return self.answer()

    def end(self):
        self.child.stdin.close()
        self.child.wait()


class Hedgerow:
    """A store that is built, and the command that searches it."""

    name = "hedgerow"

    def __init__(self, args, folder):
        if not os.access(args.hedgerow, os.X_OK):
            raise RuntimeError(f"{args.hedgerow}: no program; build it with cargo build --release -p hedgerow-cli, or give --hedgerow")
        store = os.path.join(folder, self.name)
        shutil.rmtree(store, ignore_errors=True)
        given = ("--base", args.base, "--queries", args.queries, "--truth", args.truth, "--threads", args.threads)
        self.command = [str(part) for part in (args.hedgerow, "bench", "vectors", *given, "--store", store, "--json")]
        self.first = {line["setting"]: line for line in self.run()}
        self.settings = [setting for setting in self.first if setting not in ("scan", "scan-all", "batch")]
        named = lambda line: {name: line.get(name) for name in ("build_s", "disk_mb", "build_rss_mb")}
        self.built = named(next(iter(self.first.values())))

    def run(self, *more):
        pinned = (lambda: os.sched_setaffinity(0, PINNED)) if more else None
        told = subprocess.run([*self.command, *more], stdout=subprocess.PIPE, text=True, preexec_fn=pinned)
        if told.returncode != 0:
            raise RuntimeError(f"{' '.join(self.command)} ended with {told.returncode}")
        return [json.loads(line) for line in told.stdout.splitlines()]

    def measure(self, setting):
        return self.run("--settings", setting)[0]

    def end(self):
        pass


def contenders(args, folder):
    """Those that are there, each with its index built, one after the other."""
    there = []
    for name in [name for name in ["hedgerow", *args.peers] if name not in args.without]:
        if name != "hedgerow" and importlib.util.find_spec(PEERS[name]().module) is None:
            print(f"{name} is not installed", file=sys.stderr)
            continue
        try:
            there.append(Hedgerow(args, folder) if name == "hedgerow" else Peer(args, name, folder))
            print(json.dumps({"peer": name, **there[-1].built}), flush=True)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return there


def swept(contender):
    """What each setting gave at first, from the fastest on until almost everything is found."""
    curve = {}
    for setting in contender.settings:
        curve[setting] = [contender.measure(setting)]
        if curve[setting][0]["recall"] >= ENOUGH:
            break
    return curve


def bracket(curve, aim):
    """The two settings between which an aim lies, or none."""
    ordered = sorted(curve, key=lambda setting: curve[setting][0]["recall"])
    above = [setting for setting in ordered if curve[setting][0]["recall"] >= aim]
    below = [setting for setting in ordered if curve[setting][0]["recall"] < aim]
    return (below[-1:] + above[:1]) if above else []


def at(curve, aim, figure):
    """Queries a second at a recall: on the line between its neighbours, in logarithms; of the next better one where none is worse."""
    near = [curve[setting] for setting in bracket(curve, aim)]
    points = [(run[0]["recall"], statistics.median(one[figure] for one in run)) for run in near]
    if not points:
        return None
    if len(points) == 1 or points[1][0] >= 1.0:
        return points[-1][1]
    (low, slow), (high, fast) = ((math.log(1.0 - recall), math.log(qps)) for recall, qps in points)
    return math.exp(slow + (fast - slow) * (math.log(1.0 - aim) - low) / (high - low))


def table(there, curves):
    shown = lambda value, form: f"{value:{form}}" if value is not None else "-"
    print(f"\n{'':14}{'build s':>9}{'disk MB':>9}{'rss MB':>9}", end="")
    print("".join(f"{f'q/s at {aim}':>14}{'cpu q/s':>10}" for aim in AIMS))
    for one in there:
        curve, built = curves[one.name], one.built
        rss = max((run["rss_mb"] for runs in curve.values() for run in runs if run["rss_mb"]), default=None)
        cells = [shown(built["build_s"], "9.1f"), shown(built["disk_mb"], "9.0f"), shown(rss, "9.0f")]
        for aim in AIMS:
            cells += [f"{shown(at(curve, aim, 'qps'), '.0f'):>14}", f"{shown(at(curve, aim, 'cpu_qps'), '.0f'):>10}"]
        print(f"{one.name:14}{''.join(f'{cell:>9}' for cell in cells)}", flush=True)
    peers = [one for one in there if one.name != "hedgerow"]
    own = next((one for one in there if one.name == "hedgerow"), None)
    if own is None:
        return
    for aim in AIMS:
        for figure, by in (("qps", "the clock"), ("cpu_qps", "the time computed")):
            rate = lambda one: at(curves[one.name], aim, figure)
            best = max(filter(rate, peers), key=rate, default=None)
            if best and rate(own):
                print(f"at {aim}, by {by}: hedgerow is {rate(own) / rate(best):.2f} times as fast as {best.name}, the fastest peer")
    fastest = min((one for one in peers if at(curves[one.name], AIMS[-1], "qps")), key=lambda one: one.built["build_s"], default=None)
    if fastest and own.built["build_s"]:
        ratio = own.built["build_s"] / fastest.built["build_s"]
        print(f"build: hedgerow takes {ratio:.2f} times as long as {fastest.name}, the fastest to build of the peers that reach {AIMS[-1]}")


PINNED = {max(os.sched_getaffinity(0))}


def main(args):
    with tempfile.TemporaryDirectory() as folder:
        there = contenders(args, args.keep or folder)
        curves = {one.name: swept(one) for one in there}
        near = {one.name: sorted({setting for aim in AIMS for setting in bracket(curves[one.name], aim)}) for one in there}
        for _ in range(args.runs - 1):
            for one in there:
                for setting in near[one.name]:
                    curves[one.name][setting].append(one.measure(setting))
        for one in there:
            for setting, runs in curves[one.name].items():
                numbers = {name: value for name, value in runs[0].items() if isinstance(value, (int, float))}
                middle = {name: statistics.median(run[name] for run in runs if run[name] is not None) for name in numbers}
                print(json.dumps({"peer": one.name, **one.built, **middle, "setting": setting, "runs": len(runs)}), flush=True)
            one.end()
        print(f"\nload {os.getloadavg()[0]:.1f}; {len(np.load(args.base, mmap_mode='r')):,} vectors", end="")
        table(there, curves)


if __name__ == "__main__":
    parsed = arguments()
    if parsed.build:
        build(parsed)
    elif parsed.search:
        search(parsed)
    else:
        main(parsed)
