//! One iteration of Leiden: moving, refining and merging until what is left are the communities.

use crate::index::control::Cancelled;
use crate::index::graph::leiden::graph::Undirected;
use crate::index::graph::leiden::merging::merge;
use crate::index::graph::leiden::moving::Mover;
use crate::index::graph::leiden::partition::{Resolution, numbered, quality, split};
use crate::index::graph::leiden::random::Random;
use crate::index::graph::leiden::refining::Refiner;
use crate::index::graph::leiden::sums::Sums;
use crate::index::graph::leiden::watch::Watch;

/// How often an iteration merges at most. Each time fewer nodes are left, usually by half or more.
const MERGES_MAX: usize = 64;

/// What iterations need beside the graph, and what they share.
pub(super) struct Iterations<'w> {
    resolution: Resolution,
    random: Random,
    watch: &'w Watch<'w>,
    mover: Mover,
    refiner: Refiner,
    sums: Sums,
    order: Vec<u32>,
}

impl<'w> Iterations<'w> {
    pub(super) fn new(resolution: Resolution, random: Random, watch: &'w Watch<'w>) -> Self {
        let (mover, refiner) = (Mover::default(), Refiner::default());
        Self { resolution, random, watch, mover, refiner, sums: Sums::default(), order: Vec::new() }
    }

    /// Runs one iteration, after which every community is connected; tells the modularity.
    ///
    /// # Errors
    /// When whoever watches says so.
    pub(super) fn run(&mut self, graph: &Undirected, communities: &mut [u32]) -> Result<f64, Cancelled> {
        self.settle(graph, communities)?;
        let mut current = communities.to_vec();
        let mut merged: Option<Undirected> = None;
        let mut places: Option<Vec<u32>> = None;
        for _ in 0..MERGES_MAX {
            let level = merged.as_ref().unwrap_or(graph);
            let (parts, count) = self.refiner.refine(level, self.resolution, &current, &mut self.random);
            if count == level.nodes() {
                break;
            }
            let next = merge(level, &parts, count, &mut self.sums);
            let mut of_parts = vec![0; count];
            parts.iter().zip(&current).for_each(|(part, community)| of_parts[*part as usize] = *community);
            numbered(&mut of_parts, level.nodes());
            self.settle(&next, &mut of_parts)?;
            current = of_parts;
            match &mut places {
                None => places = Some(parts),
                Some(places) => places.iter_mut().for_each(|place| *place = parts[*place as usize]),
            }
            merged = Some(next);
        }
        let level = merged.as_ref().unwrap_or(graph);
        // Parts are connected, so that only what was left unmerged needs a look.
        split(level, &mut current);
        match places {
            None => communities.copy_from_slice(&current),
            Some(places) => communities.iter_mut().zip(places).for_each(|(own, place)| *own = current[place as usize]),
        }
        Ok(quality(level, &current, self.resolution))
    }

    fn settle(&mut self, graph: &Undirected, communities: &mut [u32]) -> Result<(), Cancelled> {
        self.watch.ask()?;
        self.random.arrange(&mut self.order, graph.nodes());
        self.mover.settle(graph, self.resolution, communities, &self.order, self.watch)
    }
}
