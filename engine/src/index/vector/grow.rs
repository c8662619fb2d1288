//! Grows a graph, batch by batch: the rows of a batch are found their neighbours in the graph before it, side by side, and linked in
//! order, so that the graph is the same whatever the number of threads.

use crate::distance::near::{CodeRows, Probe};
use crate::index::control::{Cancelled, Control};
use crate::index::vector::adopt::{Former, adopt};
use crate::index::vector::prune::Pruning;
use crate::index::vector::reach::{List, mend};
use crate::index::vector::walk::{Ranked, Until, Walk};
use crate::index::vector::{DEGREE, Graph, NOBODY};
use rayon::prelude::*;

/// The beam that a row's neighbours are looked for with.
const BEAM: usize = 100;
/// A list may grow to so many places before it is pruned.
pub const SLACK: usize = DEGREE + DEGREE / 3;
/// A batch is as large as the graph divided by this, and never larger than [`BATCH_MAX`].
const BATCH_SHARE: usize = 16;
const BATCH_MAX: usize = 2048;

/// A graph that is finished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grown {
    /// The lists of its nodes, of [`DEGREE`] places each.
    pub neighbours: Vec<[u8; 4]>,
    /// Where walks begin.
    pub entries: Vec<[u8; 4]>,
}

/// What a graph is grown from.
#[derive(Clone, Copy)]
pub struct Growth<'g> {
    /// The codes of all rows.
    pub rows: CodeRows<'g>,
    /// All rows, in the order in which they are linked.
    pub order: &'g [u32],
    /// A graph that some of them are in already.
    pub former: Option<Former<'g>>,
}

/// Neighbours that a node gets.
type Links = (u32, Vec<u32>);

struct Growing<'g> {
    rows: CodeRows<'g>,
    squares: Vec<i32>,
    neighbours: Vec<[u8; 4]>,
    entry: [[u8; 4]; 1],
}

/// Links all rows, on the current rayon pool. Costs about as many products as 30 for each of a list's places and each row, and
/// memory of 4 · 42 bytes a row. Rows of a former graph keep their places in it.
///
/// # Errors
/// [`Cancelled`].
pub fn grow(growth: Growth<'_>, control: &dyn Control) -> Result<Grown, Cancelled> {
    let Growth { rows, order, former } = growth;
    let count = u32::try_from(rows.count()).unwrap_or(u32::MAX);
    let mut linked = vec![false; rows.count()];
    let of_former = former.iter().flat_map(|former| former.rows.iter().copied());
    of_former.for_each(|row| linked.iter_mut().skip(row as usize).take(1).for_each(|linked| *linked = true));
    let any = linked.contains(&true);
    let entry = middle(rows, |row| !any || linked.get(row as usize) == Some(&true));
    let mut growing = Growing {
        rows,
        squares: squares(rows),
        neighbours: former.map_or_else(Vec::new, |former| adopt(former, rows)),
        entry: [entry.to_le_bytes()],
    };
    growing.neighbours.resize(rows.count() * SLACK, NOBODY.to_le_bytes());
    let is_new = |row: &u32| *row != entry && *row < count && !linked.get(*row as usize).copied().unwrap_or(true);
    let order: Vec<u32> = order.iter().copied().filter(is_new).collect();
    let before = rows.count() - order.len();
    let mut rest = order.as_slice();
    while !rest.is_empty() {
        let done = rows.count() - rest.len();
        control.advance((done - before) as u64, order.len() as u64);
        if control.cancelled() {
            return Err(Cancelled);
        }
        let (batch, after) = rest.split_at((done / BATCH_SHARE).clamp(1, BATCH_MAX).min(rest.len()));
        growing.link(batch);
        rest = after;
    }
    Ok(growing.finish(entry))
}

/// The square of each row's length.
pub fn squares(rows: CodeRows<'_>) -> Vec<i32> {
    let count = u32::try_from(rows.count()).unwrap_or(u32::MAX);
    (0..count).into_par_iter().map(|row| rows.square(row)).collect()
}

/// The row nearest to the mean of all, among some.
fn middle(rows: CodeRows<'_>, among: impl Fn(u32) -> bool) -> u32 {
    let count = u32::try_from(rows.count()).unwrap_or(u32::MAX);
    let mut sums = vec![0_i64; rows.width()];
    for row in 0..count {
        for (sum, code) in sums.iter_mut().zip(rows.row(row)) {
            *sum += i64::from(*code) - 128;
        }
    }
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a direction")]
    let mean: Vec<f32> = sums.iter().map(|sum| (*sum as f64 / f64::from(count.max(1))) as f32).collect();
    let (probe, ..) = Probe::of_vector(&mean);
    let (listed, mut products) = ((0..count).filter(|row| among(*row)).collect::<Vec<u32>>(), Vec::new());
    crate::distance::near::products(&probe, rows, &listed, &mut products);
    let best = products.iter().zip(listed).max_by_key(|(product, row)| (**product, std::cmp::Reverse(*row)));
    best.map_or(0, |(_, row)| row)
}

impl Growing<'_> {
    fn graph(&self) -> Graph<'_> {
        Graph { rows: self.rows, neighbours: &self.neighbours, stride: SLACK, entries: &self.entry }
    }

    fn link(&mut self, batch: &[u32]) {
        let room = || (Walk::default(), Pruning::default());
        let found: Vec<Links> =
            batch.par_iter().map_init(room, |(walk, pruning), row| self.neighbours_of(*row, walk, pruning)).collect();
        let mut back: Vec<(u32, u32)> = Vec::with_capacity(found.len() * DEGREE);
        for (row, links) in &found {
            self.set(*row, links);
            back.extend(links.iter().map(|other| (*other, *row)));
        }
        back.sort_unstable();
        let by_node: Vec<&[(u32, u32)]> = back.chunk_by(|a, b| a.0 == b.0).collect();
        let linked: Vec<Links> =
            by_node.par_iter().map_init(Pruning::default, |pruning, new| self.linked_back(new, pruning)).collect();
        for (node, links) in &linked {
            self.set(*node, links);
        }
    }

    fn neighbours_of(&self, row: u32, walk: &mut Walk, pruning: &mut Pruning) -> Links {
        let probe = Probe::of_row(self.rows.row(row));
        let go_on = || Ok::<(), std::convert::Infallible>(());
        let Ok(()) = walk.walk(&self.graph(), &probe, Until::width(BEAM), None, go_on);
        let candidates = walk.passed().chain(walk.found()).map(Ranked::node);
        pruning.prune((self.rows, &self.squares), row, candidates, DEGREE);
        (row, pruning.chosen.clone())
    }

    /// A node's neighbours and those that chose it.
    fn linked_back(&self, new: &[(u32, u32)], pruning: &mut Pruning) -> Links {
        let node = new.first().map_or(NOBODY, |(node, _)| *node);
        let mut links: Vec<u32> = self.graph().of(node).collect();
        for (_, other) in new {
            if !links.contains(other) {
                links.push(*other);
            }
        }
        if links.len() > SLACK {
            pruning.prune((self.rows, &self.squares), node, links.drain(..), DEGREE);
            links.clone_from(&pruning.chosen);
        }
        (node, links)
    }

    fn set(&mut self, node: u32, links: &[u32]) {
        let Some(list) = self.neighbours.chunks_exact_mut(SLACK).nth(node as usize) else { return };
        list.fill(NOBODY.to_le_bytes());
        for (place, link) in list.iter_mut().zip(links) {
            *place = link.to_le_bytes();
        }
    }

    /// Cuts all lists to the degree, and sees to it that walks come to all nodes.
    fn finish(self, entry: u32) -> Grown {
        let count = u32::try_from(self.rows.count()).unwrap_or(u32::MAX);
        let cut = |pruning: &mut Pruning, node: u32| {
            let mut links: Vec<u32> = self.graph().of(node).collect();
            if links.len() > DEGREE {
                pruning.prune((self.rows, &self.squares), node, links.drain(..), DEGREE);
                links.clone_from(&pruning.chosen);
            }
            let mut list: List = [NOBODY.to_le_bytes(); DEGREE];
            for (place, link) in list.iter_mut().zip(links) {
                *place = link.to_le_bytes();
            }
            list
        };
        let mut lists: Vec<List> = (0..count).into_par_iter().map_init(Pruning::default, cut).collect();
        let entries = if count == 0 { Vec::new() } else { mend(&mut lists, entry) };
        Grown { neighbours: lists.into_flattened(), entries }
    }
}
