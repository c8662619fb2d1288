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

/// So much of modularity tells no run from another.
const ALIKE: f64 = 1e-3;

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
/// (core groups: Ovelgönne and Geyer-Schulz 2012). Two short runs tell whether there have to be four longer ones. The last ends when an iteration adds less than 10⁻⁵, or after sixteen.
///
/// The same graph, resolution and seed give the same communities: neither the order of edges nor the number of threads shows, those
/// of the current rayon pool. The numbers of nodes do, so that they should follow from content, too.
///
/// Takes time in proportion to nodes and edges for each of at most 24 iterations, more where nodes move often, with a bound. While it
/// runs it takes, for as many of the first runs, two or four, as there are threads, 120 bytes a node and up to twice what the graph takes.
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
    let alone: Vec<u32> = (0..).take(graph.nodes()).collect();
    let search = Search { resolution, seed, watch };
    let first = search.runs(0, graph, vec![(alone.clone(), 1); 2])?;
    watch.advance(graph.nodes() * 2)?;
    let worst = first.iter().map(|(quality, _)| *quality).fold(f64::INFINITY, f64::min);
    let (common, mut of) = search.agreed(2, graph, &first)?;
    // Where a run is as good as what two have in common, more of them add nothing.
    if common > worst + ALIKE {
        let further = first.into_iter().map(|(_, of)| (of, TRY_ITERATIONS - 1));
        let tries = further.chain(vec![(alone, TRY_ITERATIONS); TRIES - 2]).collect();
        let tries = search.runs(8, graph, tries)?;
        (_, of) = search.agreed(16, graph, &tries)?;
    }
    watch.advance(graph.nodes() * (TRIES * TRY_ITERATIONS - 2 + CORE_ITERATIONS))?;
    let (_, mut of) = search.run(24, graph, of, LAST_ITERATIONS)?;
    watch.advance(graph.nodes() * LAST_ITERATIONS)?;
    let count = canonical(&mut of, graph.nodes());
    let modularity = quality(graph, &of, resolution);
    Ok(Communities { of, count, modularity })
}

/// A partition with its modularity.
type Found = (f64, Vec<u32>);

/// What all runs share.
struct Search<'s> {
    resolution: Resolution,
    seed: u64,
    watch: &'s Watch<'s>,
}

impl Search<'_> {
    /// Iterates from a partition until an iteration adds too little, so often at most. Chance is another one for each number.
    fn run(&self, number: usize, graph: &Undirected, mut of: Vec<u32>, most: usize) -> Result<Found, Cancelled> {
        let mut iterations = Iterations::new(self.resolution, Random::apart(self.seed, number as u64), self.watch);
        let mut quality = iterations.run(graph, &mut of)?;
        for _ in 1..most {
            let before = quality;
            quality = iterations.run(graph, &mut of)?;
            if quality <= before + GAIN_MIN {
                break;
            }
        }
        Ok((quality, of))
    }

    /// Runs from several partitions, each with the iterations that it may have, numbered from `number` on.
    fn runs(&self, number: usize, graph: &Undirected, of: Vec<(Vec<u32>, usize)>) -> Result<Vec<Found>, Cancelled> {
        let run = |(place, (of, most))| self.run(number + place, graph, of, most);
        of.into_par_iter().enumerate().map(run).collect()
    }

    /// The best communities of the graph whose nodes are what all tries have in common, begun from each of the tries and from nodes alone.
    fn agreed(&self, number: usize, graph: &Undirected, tries: &[Found]) -> Result<Found, Cancelled> {
        let (cores, small) = cores(graph, tries);
        let mut starts: Vec<_> = tries.iter().map(|(_, of)| (of_cores(&cores, &small, of), CORE_ITERATIONS)).collect();
        starts.push(((0..).take(small.nodes()).collect(), CORE_ITERATIONS));
        // Among equals the first.
        let better = |a: Found, b: Found| if b.0 > a.0 { b } else { a };
        let best = self.runs(number, &small, starts)?.into_iter().reduce(better);
        let (quality, best) = best.unwrap_or_default();
        Ok((quality, cores.iter().map(|core| best[*core as usize]).collect()))
    }
}

/// The core that each node is in, with those from which no try tells it apart, and the graph of cores.
fn cores(graph: &Undirected, tries: &[Found]) -> (Vec<u32>, Undirected) {
    let (mut cores, mut count) = (vec![0; graph.nodes()], usize::from(graph.nodes() > 0));
    for (_, of) in tries {
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
