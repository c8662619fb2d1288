#!/usr/bin/env python3
"""How many nodes lie within so many hops, from a store on disk, beside what else one could ask, on the same graph in one run.

    pip install numpy igraph networkx duckdb ladybug kuzu        # all but numpy are optional: what is missing is left out
    cargo build --release -p hedgerow-cli
    python3 benches/peers/khop.py EDGES.npy --runs 3
    python3 benches/peers/khop.py --rmat 20 --runs 3

EDGES.npy holds pairs of node numbers; --rmat makes up a graph of 2^N nodes with 16 edges a node before what stands twice is one
(Chakrabarti, Zhan, Faloutsos 2004; a .57, b .19, c .19), always the same. Seeds are random nodes, most of which may have no edges
in a graph of that kind. Edges are followed either way; counted are all nodes within the hops, the seed included. What is timed, a
query at a time:

hedgerow    `hedgerow bench khop --store`: a fresh process that opens the store, finds each seed by its name and walks; one thread
segments    the same of a store whose edges lie in eight segments
igraph      `neighborhood_size`, the graph in memory; one thread
networkx    `single_source_shortest_path_length`, the graph in memory; one thread; only where it has few edges
sqlite      a recursive query over a table of both directions with a primary key, on disk; one thread
duckdb      a join a hop over a table of both directions, on disk; all threads
ladybug     `MATCH (a)-[* SHORTEST 1..N]-(b)`, on disk; all threads
kuzu        the same

Each is a process of its own that has loaded the graph before the clock starts. They take turns (A B C A B C), so that a machine that
slows down slows all of them; the table tells medians over the turns, of the median and of the mean over the seeds. Databases are
asked for the first --few seeds only, and hedgerow once more for these. Counts that differ end the run with 1.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

IN_MEMORY = ["igraph", "networkx"]
DATABASES = ["sqlite", "duckdb", "ladybug", "kuzu"]
NETWORKX_EDGES = 3_000_000  # a dictionary an edge: more would take all memory


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("edges", nargs="?")
    parser.add_argument("--rmat", type=int, metavar="N", help="make up a graph of 2^N nodes")
    parser.add_argument("--hops", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--few", type=int, default=20, help="seeds that databases are asked for")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--without", nargs="*", default=[], choices=[*IN_MEMORY, *DATABASES, "segments"])
    default = pathlib.Path(__file__).parents[2] / "target/release/hedgerow"
    parser.add_argument("--hedgerow", default=default)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if (parsed.edges is None) == (parsed.rmat is None):
        parser.error("give EDGES.npy or --rmat N")
    if min(parsed.runs, parsed.seeds, parsed.few) < 1:
        parser.error("runs, seeds and few are at least 1")
    return parsed


def rmat(scale):
    """Edges of a made-up graph, each once; those from a node to itself as they come."""
    chance = np.random.default_rng(1)
    ends = np.zeros((2, 16 << scale), np.uint32)
    for _ in range(scale):
        drawn = chance.random(ends.shape[1], np.float32)
        right = (drawn >= 0.57) & (drawn < 0.76) | (drawn >= 0.95)
        ends = ends << 1
        ends[0] |= drawn >= 0.76
        ends[1] |= right
    pairs = np.unique(ends[0].astype(np.uint64) << 32 | ends[1])
    return np.stack([pairs >> 32, pairs & 0xFFFFFFFF], axis=1).astype(np.uint32)


class Igraph:
    def __init__(self, edges, nodes, folder):
        import igraph

        self.graph = igraph.Graph(n=nodes, edges=edges)

    def within(self, seed, hops):
        return self.graph.neighborhood_size(seed, order=hops, mode="all")


class Networkx:
    def __init__(self, edges, nodes, folder):
        import networkx

        self.lengths = networkx.single_source_shortest_path_length
        self.graph = networkx.Graph()
        self.graph.add_nodes_from(range(nodes))
        self.graph.add_edges_from(edges.tolist())

    def within(self, seed, hops):
        return len(self.lengths(self.graph, seed, cutoff=hops))


class Sqlite:
    def __init__(self, edges, nodes, folder):
        self.base = sqlite3.connect(os.path.join(folder, "graph.sqlite"))
        self.base.execute("PRAGMA journal_mode=OFF")
        self.base.execute("CREATE TABLE edges (a INTEGER, b INTEGER, PRIMARY KEY (a, b)) WITHOUT ROWID")
        both = np.concatenate([edges, edges[:, ::-1]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        for part in np.array_split(both, len(both) // 1_000_000 + 1):
            self.base.executemany("INSERT OR IGNORE INTO edges VALUES (?, ?)", part.tolist())
        self.base.commit()

    def within(self, seed, hops):
        query = """
            WITH RECURSIVE reached(node, hop) AS (
                VALUES (?, 0) UNION SELECT b, hop + 1 FROM reached JOIN edges ON a = node WHERE hop < ?
            ) SELECT count(DISTINCT node) FROM reached"""
        return self.base.execute(query, (seed, hops)).fetchone()[0]


class Duckdb:
    def __init__(self, edges, nodes, folder):
        import duckdb

        self.base = duckdb.connect(os.path.join(folder, "graph.duckdb"))
        a, b = (np.concatenate([edges[:, i], edges[:, 1 - i]]) for i in range(2))
        both = {"a": a, "b": b}
        self.base.register("ends", both)
        self.base.execute("CREATE TABLE edges AS SELECT DISTINCT a, b FROM ends ORDER BY a, b")
        self.base.execute("CREATE INDEX edges_a ON edges (a)")
        self.base.unregister("ends")

    def within(self, seed, hops):
        steps = [f"h0 AS (SELECT {seed}::UINTEGER AS node)"]
        for hop in range(hops):
            steps.append(f"h{hop + 1} AS (SELECT DISTINCT b AS node FROM h{hop} JOIN edges ON a = node)")
        union = " UNION ".join(f"SELECT node FROM h{hop}" for hop in range(hops + 1))
        return self.base.execute(f"WITH {', '.join(steps)} SELECT count(*) FROM ({union})").fetchone()[0]


class Ladybug:
    module = "ladybug"

    def __init__(self, edges, nodes, folder):
        library = __import__(self.module)
        self.base = library.Connection(library.Database(os.path.join(folder, self.module)))
        files = [os.path.join(folder, f"{self.module}-{what}.csv") for what in ("nodes", "edges")]
        np.savetxt(files[0], np.arange(nodes), "%d")
        np.savetxt(files[1], edges, "%d", ",")
        self.base.execute("CREATE NODE TABLE N(id INT64, PRIMARY KEY(id))")
        self.base.execute("CREATE REL TABLE E(FROM N TO N)")
        self.base.execute(f"COPY N FROM '{files[0]}'")
        self.base.execute(f"COPY E FROM '{files[1]}'")

    def within(self, seed, hops):
        query = f"MATCH (a:N)-[:E* SHORTEST 1..{hops}]-(b:N) WHERE a.id = $seed AND b.id <> $seed RETURN count(b)"
        return 1 + self.base.execute(query, {"seed": int(seed)}).get_next()[0]


class Kuzu(Ladybug):
    module = "kuzu"


PEERS = {peer.__name__.lower(): peer for peer in (Igraph, Networkx, Sqlite, Duckdb, Ladybug, Kuzu)}


def peer(args):
    """Loads the graph, then answers a line with hops by what it measured."""
    edges, seeds = (np.load(os.path.join(args.folder, f"{name}.npy")) for name in ("edges", "peer-seeds"))
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        asked = PEERS[args.peer](edges, max(int(edges.max()) + 1, 1 << (args.rmat or 0)), folder)
        print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)
        for line in sys.stdin:
            few = seeds[: args.few] if args.peer in DATABASES else seeds
            times, counts = [], []
            for seed in few.tolist():
                start = time.perf_counter()
                counts.append(asked.within(seed, int(line)))
                times.append((time.perf_counter() - start) * 1000)
            told = {"ms": statistics.median(times), "mean_ms": statistics.fmean(times), "reached": statistics.fmean(counts)}
            print(json.dumps(told), flush=True)


class Process:
    """A peer that runs until its input ends."""

    def __init__(self, args, name, folder):
        command = [sys.executable, __file__, *([args.edges] if args.edges else ["--rmat", str(args.rmat)])]
        command += ["--few", str(args.few), "--peer", name, "--folder", folder]
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.loaded = json.loads(self.child.stdout.readline() or "null")

    def measure(self, hops):
        print(hops, file=self.child.stdin, flush=True)
        return json.loads(self.child.stdout.readline() or "null")

    def end(self):
        self.child.stdin.close()
        self.child.wait()


def hedgerow(args, *more):
    command = [str(part) for part in (args.hedgerow, "bench", "khop", "--json", *more)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: {run.stderr.strip()}")
    return json.loads(run.stdout)


def measured(args, store, seeds, hops):
    told = hedgerow(args, "--store", store, "--seeds", seeds, "--hops", hops)
    return {name: told[f"hop{hops}_{name}"] for name in ("ms", "mean_ms", "reached", "edges_per_s")} | {"open_ms": told["open_ms"]}


def started(args, names, edges, folder):
    """The peers that are there, with the graph loaded."""
    processes = {}
    for name in names:
        if name in args.without:
            continue
        if name != "sqlite" and importlib.util.find_spec(name) is None:
            print(f"{name} is not installed")
        elif name == "networkx" and len(edges) > NETWORKX_EDGES:
            print(f"networkx is left out: it would not hold {len(edges):,} edges")
        else:
            process = Process(args, name, folder)
            if process.loaded is None:
                print(f"{name} did not load the graph")
                continue
            print(f"{name}: loaded in {process.loaded['seconds']:.1f} s", flush=True)
            processes[name] = process
    return processes


def turns(args, contenders, hops):
    """Lets the contenders take turns and prints their medians; whether all counts agree."""
    results = {name: [] for name in contenders}
    for _ in range(args.runs):
        for name, run in contenders.items():
            results[name].append(run(hops))
    print(f"\n{'':12}{'median ms':>12}{'times':>10}{'mean ms':>12}{'times':>10}{'reached':>14}")
    own, reached = None, set()
    for name, runs in results.items():
        if None in runs:
            print(f"{name:12} failed")
            continue
        middle, mean = (statistics.median(run[figure] for run in runs) for figure in ("ms", "mean_ms"))
        own = own or (middle, mean)
        reached |= {round(run["reached"], 6) for run in runs}
        rate = f"  {statistics.median(run['edges_per_s'] for run in runs) / 1e6:.0f} M edges/s" if "edges_per_s" in runs[0] else ""
        times = f"{middle:12.4f}{middle / own[0]:10.2f}{mean:12.4f}{mean / own[1]:10.2f}"
        print(f"{name:12}{times}{runs[0]['reached']:14.2f}{rate}", flush=True)
    return len(reached) == 1


def main(args):
    if not os.access(args.hedgerow, os.X_OK):
        sys.exit(f"{args.hedgerow}: no program; build it with cargo build --release -p hedgerow-cli, or give --hedgerow")
    edges = rmat(args.rmat) if args.rmat else np.load(args.edges).reshape(-1, 2)
    nodes = max(int(edges.max()) + 1, 1 << (args.rmat or 0))
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        seeds = np.random.default_rng(7).integers(0, nodes, args.seeds)
        np.save(at("edges.npy"), edges)
        np.save(at("peer-seeds.npy"), seeds)
        np.save(at("few.npy"), seeds[: args.few])
        stores = {"hedgerow": "1", "segments": "8"}
        for name, segments in [(name, segments) for name, segments in stores.items() if name not in args.without]:
            given = ("--edges", at("edges.npy"), "--seeds", at("few.npy"), "--hops", "1")
            told = hedgerow(args, *given, "--segments", segments, "--keep", at(name))
            print(f"{name}: {json.dumps(told)}", flush=True)
        agree = True
        for names, few in ((IN_MEMORY, "peer-seeds.npy"), (DATABASES, "few.npy")):
            processes = started(args, names, edges, folder)
            if not processes:
                continue
            own = [name for name in stores if name not in args.without]
            contenders = {name: lambda hops, name=name: measured(args, at(name), at(few), hops) for name in own}
            contenders |= {name: process.measure for name, process in processes.items()}
            for hops in args.hops:
                print(f"\n{hops} hops, {len(np.load(at(few)))} seeds, {args.runs} runs", end="")
                agree &= turns(args, contenders, hops)
            for process in processes.values():
                process.end()
    print("\nall counts agree" if agree else "\ncounts differ")
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    parsed = arguments()
    if parsed.peer:
        peer(parsed)
    else:
        main(parsed)
