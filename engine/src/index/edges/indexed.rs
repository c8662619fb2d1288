//! Edges among the pairs that walks through an index find, without comparing all.

use crate::distance::codes::fitting;
use crate::distance::dots;
use crate::distance::near::{CodeRows, Probe, encode_rows};
use crate::distance::rows::Rows;
use crate::index::control::{Cancelled, Control};
use crate::index::edges::bracket::Bracket;
use crate::index::edges::composite::{Partners, pairs as chosen_pairs, width};
use crate::index::edges::image::image;
use crate::index::edges::{
    Cap, EdgeReport, EdgeSet, Forgotten, Memory, Part, Population, Pruning, Stopped, build, number,
};
use crate::index::vector::{DEGREE, Graph, Growth, Ranked, Until, Walk, grow};
use rayon::prelude::*;
use std::cmp::Reverse;

/// A walk keeps one and a half times as many nodes as are wanted, and so many more.
const SPARE: usize = 64;
/// Bytes of memory for each row beside its codes and its partners.
const ROW_BYTES: usize = 300;
/// Rows between two questions whether to go on.
const TOGETHER: usize = 1024;

/// Builds the edges of rows that are unit vectors, in the order of their keys, where candidates are the `nearest` that a walk through a
/// graph finds, which is grown for it in the given order of rows. Where the percentile is 0 all candidates reach the threshold, which is
/// then told as -1; else it is exact, by comparing all pairs as [`build`] does.
///
/// Runs on the current rayon pool; the result does not depend on the number of threads. Costs about as much as 60 · n walks; takes
/// n · (dimensions + 300 + 12 · nearest + 16 · `top_m`) bytes.
///
/// # Errors
/// [`Stopped`].
pub fn indexed(
    rows: &Rows<'_>,
    order: &[u32],
    rules: Pruning,
    memory: Memory<'_>,
    control: &dyn Control,
) -> Result<EdgeSet, Stopped> {
    let (count, pairs) = (number(rows.count()), rules.pairs.count(rows.count()));
    let report = EdgeReport { rows: count, pairs, ..EdgeReport::default() };
    if pairs == 0 {
        return Ok(EdgeSet::of(std::iter::empty, report));
    }
    let (nearest_most, top_m) = (rules.nearest.unwrap_or(rules.top_m) as usize, rules.top_m as usize);
    let of_row = rows.dimensions() + ROW_BYTES + 12 * nearest_most.min(rows.count()) + 16 * top_m.min(rows.count());
    memory.bears(rows.count() as u64 * of_row as u64)?;
    let threshold = threshold(rows, rules, memory, control)?;
    let (codes, _) = encode_rows(rows, fitting(rows).coarse);
    let code_rows = CodeRows::new(&codes, rows.dimensions());
    let grown = grow(Growth { rows: code_rows, order, former: None }, control)?;
    let graph = Graph::new((&codes, rows.dimensions()), (&grown.neighbours, DEGREE), &grown.entries);
    let found = nearest(rows, &graph, rules, control)?;
    // No image is 0, as that of a row which chose fewer is.
    let floor = threshold.map_or(0, image).max(rules.least).max(1);
    let mut chosen = Part::new([0; 32], Bracket::between(0, 0), 0, rows.count(), width(count, rules.top_m));
    let (partners, mut passed) = (Partners::of(&mut chosen), 0);
    for (row, other, image) in found.into_iter().filter(|pair| pair.2 >= floor) {
        passed += 1;
        partners.offer_both(row, other, image);
    }
    drop(partners);
    let chosen = chosen_pairs(&chosen, count, rules.cap, floor);
    let report = EdgeReport { threshold: Some(threshold.unwrap_or(-1.0)), passed, ..report };
    Ok(EdgeSet::of(|| chosen.iter().copied(), report))
}

/// The order statistic of all pairs at the percentile; none where that is the first.
fn threshold(
    rows: &Rows<'_>,
    rules: Pruning,
    memory: Memory<'_>,
    control: &dyn Control,
) -> Result<Option<f32>, Stopped> {
    if rules.percentile == 0 {
        return Ok(None);
    }
    let ranks: Vec<u32> = (0..number(rows.count())).collect();
    let alone = Pruning { top_m: 0, nearest: None, least: 0, cap: Cap::Either, apart: false, ..rules };
    Ok(build(rows, &ranks, alone, &[0; 32], &Forgotten, memory, control)?.edges.report.threshold)
}

/// The pairs of which one is among the nearest of the other, as far as walks find them, ascending: the lower row, the higher one, the
/// image.
fn nearest(
    rows: &Rows<'_>,
    graph: &Graph<'_>,
    rules: Pruning,
    control: &dyn Control,
) -> Result<Vec<(u32, u32, u32)>, Cancelled> {
    let (count, wanted) = (number(rows.count()), rules.nearest.unwrap_or(rules.top_m) as usize);
    let until = Until::width(wanted + wanted / 2 + SPARE);
    let side = |row: u32| match rules.pairs {
        Population::All => None,
        Population::Across(firsts) => Some((row as usize) < firsts),
    };
    let near = |(walk, room): &mut (Walk, Vec<f32>), row: u32| {
        let is_partner = |other: u32| other != row && (side(row).is_none() || side(other) != side(row));
        let go_on = || Ok::<(), std::convert::Infallible>(());
        let Ok(()) = walk.walk(graph, &Probe::of_row(graph.rows.row(row)), until, Some(&is_partner), go_on);
        let (listed, mut similarities): (Vec<u32>, _) = (walk.found().map(Ranked::node).collect(), Vec::new());
        dots(rows.read(row, room), rows, &listed, &mut similarities);
        let mut near: Vec<(Reverse<u32>, u32)> =
            similarities.into_iter().map(|similarity| Reverse(image(similarity))).zip(listed).collect();
        near.sort_unstable();
        near.truncate(wanted);
        near.into_iter().map(move |(image, other)| (row.min(other), row.max(other), image.0))
    };
    let mut pairs = Vec::with_capacity(rows.count().saturating_mul(wanted));
    for first in (0..count).step_by(TOGETHER) {
        control.advance(first.into(), count.into());
        if control.cancelled() {
            return Err(Cancelled);
        }
        let some = first..count.min(first.saturating_add(number(TOGETHER)));
        let found: Vec<_> = some.into_par_iter().map_init(Default::default, near).collect();
        pairs.extend(found.into_iter().flatten());
    }
    pairs.par_sort_unstable();
    pairs.dedup();
    Ok(pairs)
}
