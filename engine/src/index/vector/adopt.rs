//! Takes over a former graph: nodes that are left keep their lists, and those whose neighbours are gone get their neighbours'
//! neighbours in their place (Singh et al., `FreshDiskANN`, 2021).

use crate::distance::near::CodeRows;
use crate::index::vector::grow::{SLACK, squares};
use crate::index::vector::prune::Pruning;
use crate::index::vector::{DEGREE, Graph, NOBODY};
use rayon::prelude::*;

/// A former graph.
#[derive(Clone, Copy)]
pub struct Former<'f> {
    /// The graph.
    pub graph: Graph<'f>,
    /// Which row of the new one each of its nodes is; [`NOBODY`] for one that is gone.
    pub rows: &'f [u32],
}

/// The lists of the rows that a former graph has, of [`SLACK`] places each; those of other rows are empty.
pub fn adopt(former: Former<'_>, rows: CodeRows<'_>) -> Vec<[u8; 4]> {
    let mut lists = vec![NOBODY.to_le_bytes(); rows.count() * SLACK];
    let squares = squares(rows);
    let kept = (0..).zip(former.rows).filter(|(_, row)| **row != NOBODY);
    let kept: Vec<(u32, u32)> = kept.map(|(node, row)| (node, *row)).collect();
    let new: Vec<(u32, Vec<u32>)> = kept
        .into_par_iter()
        .map_init(Pruning::default, |pruning, (node, row)| {
            let (mut links, mut gone) = (Vec::new(), false);
            for other in former.graph.of(node) {
                match former.row(other) {
                    NOBODY => {
                        gone = true;
                        links.extend(former.graph.of(other).map(|other| former.row(other)));
                    }
                    row => links.push(row),
                }
            }
            if gone {
                links.retain(|other| *other != NOBODY);
                pruning.prune((rows, &squares), row, links.drain(..), DEGREE);
                links.clone_from(&pruning.chosen);
            }
            (row, links)
        })
        .collect();
    for (row, links) in new {
        let list = lists.chunks_exact_mut(SLACK).nth(row as usize).unwrap_or_default();
        for (place, link) in list.iter_mut().zip(links) {
            *place = link.to_le_bytes();
        }
    }
    lists
}

impl Former<'_> {
    fn row(&self, node: u32) -> u32 {
        self.rows.get(node as usize).copied().unwrap_or(NOBODY)
    }
}
