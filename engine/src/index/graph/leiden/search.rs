//! The search for communities: several runs, what they agree on, and one run from there.

use crate::index::control::{Cancelled, Control};
use crate::index::graph::leiden::graph::Undirected;
use crate::index::graph::leiden::iteration::Iterations;
use crate::index::graph::leiden::merging::merge;
use crate::index::graph::leiden::partition::{Resolution, canonical, common, numbered, quality};
use crate::index::graph::leiden::random::Random;
use crate::index::graph::leiden::sums::Sums;
use crate::index::graph::leiden::watch::Watch;
use rayon::prelude::*;

/// Runs from single nodes, each in an order of its own.
const TRIES: usize = 4;
/// Iterations of each of them.
const TRY_ITERATIONS: usize = 2;
/// Iterations at most on what the tries agree on, which is a small graph.
const CORE_ITERATIONS: usize = 16;
/// Iterations at most in the end.
const LAST_ITERATIONS: usize = 16;
/// An iteration has to add so much, or it was the last.
const GAIN_MIN: f64 = 1e-5;

/// Communities of all nodes of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Communities {
    /// The community of each node. They are numbered by descending size, and those of the same size by their first node.
    pub of: Vec<u32>,
    /// How many there are.
    pub count: usize,
    /// Their modularity.
    pub modularity: f64,
}

/// Finds communities of high modularity in a graph, each of them connected.
///
/// Several runs of the algorithm of Leiden, each in an order of its own that follows from the seed, disagree about a few nodes. What they
/// all have in common is made the nodes of a small graph, and the best communities of that are where the last run begins
/// (core groups: Ovelgönne and Geyer-Schulz 2012). It ends when an iteration adds less than 10⁻⁵, or after sixteen.
///
/// The same graph, resolution and seed give the same communities: neither the order of edges nor the number of threads shows, those
/// of the current rayon pool. The numbers of nodes do, so that they should follow from content, too.
///
/// Takes time in proportion to nodes and edges for each of at most 24 iterations, more where nodes move often, with a bound. While it
/// runs it takes, for as many of the first four runs as there are threads, 120 bytes a node and up to twice what the graph takes.
///
/// # Errors
/// When `control` says so.
pub fn communities(
    graph: &Undirected,
    resolution: Resolution,
    seed: u64,
    control: &dyn Control,
) -> Result<Communities, Cancelled> {
    let watch = Watch::new(control);
    expect(graph, &watch);
    find(graph, resolution, seed, &watch)
}

/// Tells how much [`find`] is going to do.
pub(super) fn expect(graph: &Undirected, watch: &Watch<'_>) {
    watch.expect(graph.nodes() * (TRIES * TRY_ITERATIONS + CORE_ITERATIONS + LAST_ITERATIONS));
}

/// Finds communities, see [`communities`].
pub(super) fn find(
    graph: &Undirected,
    resolution: Resolution,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Communities, Cancelled> {
    let run = |number: usize, graph: &Undirected, mut of: Vec<u32>, most: usize| {
        let mut iterations = Iterations::new(resolution, Random::apart(seed, number as u64), watch);
        let quality = iterate(&mut iterations, graph, &mut of, most)?;
        Ok((quality, of))
    };
    let attempt = |number| run(number, graph, (0..).take(graph.nodes()).collect(), TRY_ITERATIONS);
    let tries = (0..TRIES).into_par_iter().map(attempt).collect::<Result<Vec<_>, Cancelled>>()?;
    let tries: Vec<Vec<u32>> = tries.into_iter().map(|(_, of)| of).collect();
    watch.advance(graph.nodes() * TRIES * TRY_ITERATIONS)?;
    let (cores, small) = cores(graph, &tries);
    let starts = tries.into_par_iter().map(Some).chain([None]);
    let from = |(number, start): (usize, Option<Vec<u32>>)| {
        let alone = || (0..).take(small.nodes()).collect();
        let start = start.map_or_else(alone, |start| of_cores(&cores, &small, &start));
        run(TRIES + number, &small, start, CORE_ITERATIONS)
    };
    let found = starts.enumerate().map(from).collect::<Result<Vec<_>, Cancelled>>()?;
    watch.advance(graph.nodes() * CORE_ITERATIONS)?;
    // Among equals the first.
    let better = |a: (f64, Vec<u32>), b: (f64, Vec<u32>)| if b.0 > a.0 { b } else { a };
    let best = found.into_iter().reduce(better).map(|(_, of)| of).unwrap_or_default();
    let of = cores.iter().map(|core| best[*core as usize]).collect();
    let (_, mut of) = run(TRIES * 2 + 1, graph, of, LAST_ITERATIONS)?;
    watch.advance(graph.nodes() * LAST_ITERATIONS)?;
    let count = canonical(&mut of, graph.nodes());
    let modularity = quality(graph, &of, resolution);
    Ok(Communities { of, count, modularity })
}

/// The core that each node is in, with those from which no try tells it apart, and the graph of cores.
fn cores(graph: &Undirected, tries: &[Vec<u32>]) -> (Vec<u32>, Undirected) {
    let (mut cores, mut count) = (vec![0; graph.nodes()], usize::from(graph.nodes() > 0));
    for of in tries {
        (cores, count) = common(&cores, of);
    }
    let small = merge(graph, &cores, count, &mut Sums::default());
    (cores, small)
}

/// The community of each core.
fn of_cores(cores: &[u32], small: &Undirected, of: &[u32]) -> Vec<u32> {
    let mut communities = vec![0; small.nodes()];
    cores.iter().zip(of).for_each(|(core, community)| communities[*core as usize] = *community);
    numbered(&mut communities, of.len());
    communities
}

/// Iterates until an iteration adds too little, so often at most; tells the modularity.
fn iterate(
    iterations: &mut Iterations<'_>,
    graph: &Undirected,
    communities: &mut [u32],
    most: usize,
) -> Result<f64, Cancelled> {
    let mut quality = iterations.run(graph, communities)?;
    for _ in 1..most {
        let before = quality;
        quality = iterations.run(graph, communities)?;
        if quality <= before + GAIN_MIN {
            break;
        }
    }
    Ok(quality)
}
