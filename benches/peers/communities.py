#!/usr/bin/env python3
"""Communities beside those of igraph and leidenalg, of the same graph, in one run.

    pip install numpy igraph leidenalg
    cargo build --release -p hedgerow-benches --bin communities
    python3 benches/peers/communities.py EDGES.npy TRIPLES.tsv --runs 3

Each file holds pairs of u32 (.npy) or lines with a node, anything, another node and perhaps a weight (.tsv), as `hedgerow graph STORE
--joined` writes what communities of a store are found in; weights of what stands several times, 1 where none is told, add up. Without
a file, groups that are joined more often inside are made up. Contenders take turns (A B C A B C), so that a machine
that slows down slows all of them; the table tells medians of seconds and of modularity, as igraph computes it, and the ranges of
modularity. The graph is there before the clock starts. What is timed:

hedgerow    several runs, what they have in common, and one run from there; on --threads threads
igraph      `community_leiden`, modularity, until nothing changes; on one thread, another seed each time
leidenalg   `find_partition` with `ModularityVertexPartition`, until nothing changes; on one thread, another seed each time
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import igraph
import leidenalg
import numpy as np


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--without", nargs="*", default=[], choices=["igraph", "leidenalg"])
    default = pathlib.Path(__file__).parents[2] / "target/release/communities"
    parser.add_argument("--communities", default=default, help="the binary")
    parsed = parser.parse_args()
    if min(parsed.runs, parsed.threads) < 1:
        parser.error("runs and threads are at least 1")
    return parsed


def edges_of(path):
    """Pairs of nodes, and the weight of each."""
    if path.endswith(".npy"):
        edges = np.load(path).reshape(-1, 2).astype(np.int64)
        return edges, np.ones(len(edges))
    numbers = {}
    number = lambda name: numbers.setdefault(name.strip(), len(numbers))
    lines = [line.split("\t") for line in pathlib.Path(path).read_text().splitlines()]
    edges = np.array([(number(line[0]), number(line[2])) for line in lines], dtype=np.int64)
    return edges, np.array([float(line[3]) if len(line) > 3 else 1.0 for line in lines])


def graph_of(path):
    """The graph, with the weight of each edge."""
    pairs, told = edges_of(path)
    edges, places = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True)
    graph = igraph.Graph(n=int(edges.max()) + 1, edges=edges.tolist())
    graph.es["weight"] = np.bincount(places.reshape(-1), weights=told).tolist()
    return graph


def planted(path, nodes, group, inside):
    """Ten edges a node, such a share of them inside a group."""
    chance = np.random.default_rng(nodes)
    ends = chance.integers(0, nodes, (nodes * 10, 2))
    near = chance.random(len(ends)) < inside
    ends[near, 1] = ends[near, 0] - ends[near, 0] % group + chance.integers(0, group, near.sum())
    np.save(path, np.minimum(ends, nodes - 1).astype(np.uint32))


def hedgerow(args, path):
    command = [str(args.communities), path, "--runs", "1"]
    environment = {**os.environ, "RAYON_NUM_THREADS": str(args.threads)}
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: {run.stderr.strip()}")
    told = json.loads(run.stdout)
    return told["seconds"], told["modularity"], told["communities"]


def by_igraph(graph, seed):
    random.seed(seed)
    start = time.perf_counter()
    found = graph.community_leiden(objective_function="modularity", weights="weight", n_iterations=-1)
    return time.perf_counter() - start, graph.modularity(found.membership, weights="weight"), len(found)


def by_leidenalg(graph, seed):
    kind = leidenalg.ModularityVertexPartition
    start = time.perf_counter()
    found = leidenalg.find_partition(graph, kind, weights="weight", n_iterations=-1, seed=seed)
    return time.perf_counter() - start, graph.modularity(found.membership, weights="weight"), len(found)


def measure(args, name, path):
    graph = graph_of(path)
    contenders = {
        "hedgerow": lambda seed: hedgerow(args, path),
        "igraph": lambda seed: by_igraph(graph, seed),
        "leidenalg": lambda seed: by_leidenalg(graph, seed),
    }
    contenders = {name: contender for name, contender in contenders.items() if name not in args.without}
    results = {name: [] for name in contenders}
    for seed in range(args.runs):
        for contender, run in contenders.items():
            results[contender].append(run(seed))
    print(f"\n{name}: {graph.vcount()} nodes, {graph.ecount()} edges; {args.runs} runs, hedgerow on {args.threads} threads")
    print(f"{'':12}{'seconds':>9}{'times':>8}{'modularity':>12}{'lowest':>9}{'highest':>9}{'communities':>13}")
    own = statistics.median(seconds for seconds, _, _ in results["hedgerow"])
    for contender, runs in results.items():
        seconds, qualities, counts = zip(*runs)
        middle = statistics.median(seconds)
        print(
            f"{contender:12}{middle:9.3f}{middle / own:8.2f}{statistics.median(qualities):12.5f}"
            f"{min(qualities):9.5f}{max(qualities):9.5f}{statistics.median(counts):13.0f}",
            flush=True,
        )


def main(args):
    igraph.set_random_number_generator(random)
    print(f"igraph {igraph.__version__}, leidenalg {leidenalg.version}, {os.cpu_count()} processors")
    for path in args.files:
        measure(args, os.path.basename(path), path)
    if args.files:
        return
    with tempfile.TemporaryDirectory() as folder:
        for nodes, group, inside in ((20_000, 100, 0.53), (100_000, 1_000, 0.4), (100_000, 20, 0.7)):
            path = os.path.join(folder, "planted.npy")
            planted(path, nodes, group, inside)
            measure(args, f"groups of {group}, {inside:.0%} of edges inside", path)


if __name__ == "__main__":
    main(arguments())
