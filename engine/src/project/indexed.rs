//! Edges of one kind of pairs among the nearest that an index finds.

use crate::distance::pair_dots;
use crate::distance::rows::Rows;
use crate::index::edges::{self, Population};
use crate::project::Unmade;
use crate::project::edges::{Chunks, Task};
use crate::project::vectors::insertion_order;
use crate::projection::EdgesData;
use hedgerow_format::edges::PairKind;

impl Task<'_> {
    /// Prunes the pairs of a kind among which a walk finds the nearest. Nothing is remembered by which these edges could follow
    /// changes, as a graph that is grown anew gives the same for every history.
    pub(super) fn indexed(&self, kind: PairKind, chunks: &Chunks) -> Result<EdgesData, Unmade> {
        let Self { snapshot, space, rules, memory, control, .. } = *self;
        let (placed, tables) = self.placed(kind, chunks)?;
        let pairs = if kind == PairKind::TableDocument { Population::Across(tables) } else { Population::All };
        let (vectors, mut rows, mut dimensions) = (snapshot.vectors_of(space)?, Vec::new(), 0);
        for chunk in &placed {
            let row = vectors.of(*chunk)?.unwrap_or_default();
            dimensions = row.len() / size_of::<f32>();
            rows.push(row);
        }
        let rows = Rows::of_bytes(rows, dimensions);
        let (pruning, order) = (rules.pruning(kind, pairs), insertion_order(snapshot, &placed)?);
        let set = edges::indexed(&rows, &order, pruning, memory, control)?;
        let weight = |row, other| {
            let mut similarities = Vec::new();
            pair_dots(&rows, &[[row, other]], &mut similarities);
            similarities.first().copied().unwrap_or_default()
        };
        self.placed_edges((kind, tables, pruning), &placed, set, &weight)
    }
}
