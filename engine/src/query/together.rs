//! The nearest to many vectors at once: codes compared tile by tile, each row read once for all.

use crate::distance::tile::{TILE_COLUMNS, TILE_ROWS};
use crate::distance::together::{Panel, Tiles};
use crate::error::QueryError;
use crate::query::nearest::{Bounds, Contest, ROUNDING, Search};
use hedgerow_format::ChunkId;
use rayon::prelude::*;

/// Tiles whose codes stay in the cache while all panels are compared with them.
const TILES: usize = 16;
/// Nodes that are kept of a question before some are left out, at least.
const ROOM: usize = 64;

/// What indexed nodes are nearest to the question of each search, with cosines; the searches differ in their questions alone.
pub(super) fn compare(searches: &[Search<'_>]) -> Result<Vec<Vec<(ChunkId, f32)>>, QueryError> {
    let Some(first) = searches.first() else { return Ok(Vec::new()) };
    let guard = &first.bounded.guard;
    let (nodes, threads) = (first.comparable(), rayon::current_num_threads());
    let dimensions = first.question.len();
    let panel = |searches: &[Search<'_>]| Panel::new(searches.iter().map(|search| search.question), dimensions);
    let panels: Vec<Panel> = searches.par_chunks(TILE_COLUMNS).map(panel).collect();
    let kept = first.count.saturating_mul(2).max(ROOM).saturating_mul(searches.len());
    guard.hold::<Bounds>(kept.saturating_mul(1 + threads))?;
    let part = |nodes: &[u32]| part(searches, &panels, nodes);
    let parts: Result<Vec<_>, QueryError> = nodes.par_chunks(nodes.len().div_ceil(threads).max(1)).map(part).collect();
    let parts = parts?;
    let scored = |(at, search): (usize, &Search<'_>)| {
        let near = parts.iter().filter_map(|part| part.get(at)).map(|contest| contest.bounds.clone());
        search.scored(Contest::all(&near.collect::<Vec<_>>(), search.count))
    };
    searches.par_iter().enumerate().map(scored).collect()
}

/// Those of some nodes that may be among the nearest of them, for each search.
fn part(searches: &[Search<'_>], panels: &[Panel], nodes: &[u32]) -> Result<Vec<Contest>, QueryError> {
    let mut contests: Vec<Contest> = searches.iter().map(|search| Contest::new(search.count, ROOM)).collect();
    let mut lines = vec![[-UNITS_MAX; TILE_COLUMNS]; panels.len()];
    let mut tiles = Tiles::default();
    let mut held = contests.iter().map(Contest::room).sum();
    for nodes in nodes.chunks(TILES * TILE_ROWS) {
        let Some(first) = searches.first() else { break };
        let guard = &first.bounded.guard;
        guard.poll()?;
        // Where many are as near as the last that is wanted, none of them can be left out.
        let kept: usize = contests.iter().map(Contest::room).sum();
        guard.hold::<[Bounds; 2]>(kept.saturating_sub(held))?;
        held = held.max(kept);
        tiles.take(first.graph.rows, nodes);
        let groups = searches.chunks(TILE_COLUMNS).zip(contests.chunks_mut(TILE_COLUMNS));
        for ((panel, lines), (searches, contests)) in panels.iter().zip(&mut lines).zip(groups) {
            Group { panel, lines, searches, contests }.compare(&mut tiles, nodes);
        }
    }
    Ok(contests)
}

/// The searches of a panel.
struct Group<'g, 's> {
    panel: &'g Panel,
    /// What products must exceed, by search.
    lines: &'g mut [i32; TILE_COLUMNS],
    searches: &'g [Search<'s>],
    contests: &'g mut [Contest],
}

impl Group<'_, '_> {
    fn compare(&mut self, tiles: &mut Tiles, nodes: &[u32]) {
        let Some(first) = self.searches.first() else { return };
        let unit = self.panel.scale() * first.scale;
        let left = self.panel.lefts().iter().copied().fold(0.0, f64::max);
        for (tile, nodes) in nodes.chunks(TILE_ROWS).enumerate() {
            let mut errors = [0; TILE_ROWS];
            for (error, node) in errors.iter_mut().zip(nodes) {
                *error = units(first.error(*node) * (1.0 + left) / unit) + 1;
            }
            for (node, above) in nodes.iter().zip(tiles.above(tile, self.panel, self.lines, &errors)) {
                let own = first.error(*node);
                for (column, product) in above.columns().iter().zip(above.products()) {
                    let column = *column as usize;
                    let (Some(search), Some(contest)) = (self.searches.get(column), self.contests.get_mut(column))
                    else {
                        continue;
                    };
                    let left = self.panel.lefts()[column];
                    let error = own + left * (1.0 + own) + ROUNDING;
                    let estimate = f64::from(*product) * unit;
                    let bounds = Bounds { least: estimate - error, most: estimate + error, node: *node };
                    if bounds.most >= contest.line && search.is_wanted(*node) && contest.enter(bounds) {
                        self.lines[column] = units((contest.line - left - ROUNDING) / unit) - 2;
                    }
                }
            }
        }
    }
}

/// More than any product, and so little that two of it can be added.
const UNITS_MAX: i32 = 1 << 29;

/// The units of a product in a number, or one less.
#[expect(clippy::cast_possible_truncation, reason = "it is within bounds")]
fn units(number: f64) -> i32 {
    number.floor().clamp(-f64::from(UNITS_MAX), f64::from(UNITS_MAX)) as i32
}
