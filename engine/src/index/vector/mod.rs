//! The vector index: one flat graph of rows of codes, walked from a few entries to what is nearest to a question.
//!
//! The graph is Vamana's (Subramanya et al., `DiskANN`, 2019), built in one pass with occlusion by 1.1 times the squared distance and
//! filled up to the degree with what was occluded.

mod adopt;
mod calibrate;
mod grow;
mod prune;
mod reach;
mod walk;

pub use adopt::Former;
pub use calibrate::{WIDTH_MAX, calibrate};
pub use grow::{Growth, grow};
pub use hedgerow_format::projection::NOBODY;
pub use walk::{Ranked, Until, Walk};

use crate::distance::near::{CodeRows, fetch};

/// Neighbours of a node.
pub const DEGREE: usize = 32;

/// The graph, wherever it lies.
#[derive(Clone, Copy, Debug)]
pub struct Graph<'g> {
    /// The codes of its nodes.
    pub rows: CodeRows<'g>,
    /// Little-endian numbers of neighbours: a list of `stride` a node, ended by [`NOBODY`] or full.
    pub neighbours: &'g [[u8; 4]],
    /// Places of a list.
    pub stride: usize,
    /// Where walks begin.
    pub entries: &'g [[u8; 4]],
}

impl<'g> Graph<'g> {
    /// A graph of rows of codes of so many dimensions, and lists of so many places.
    pub fn new(
        (codes, dimensions): (&'g [u8], usize),
        (neighbours, stride): (&'g [[u8; 4]], usize),
        entries: &'g [[u8; 4]],
    ) -> Self {
        Self { rows: CodeRows::new(codes, dimensions), neighbours, stride, entries }
    }

    /// Asks for the list of a node, before it is read.
    #[inline]
    pub fn fetch(&self, node: u32) {
        fetch(self.list(node).as_flattened());
    }

    fn list(&self, node: u32) -> &'g [[u8; 4]] {
        let start = (node as usize).saturating_mul(self.stride);
        self.neighbours.get(start..start.saturating_add(self.stride)).unwrap_or_default()
    }

    /// The neighbours of a node; none of one that is not there.
    #[inline]
    pub fn of(&self, node: u32) -> impl Iterator<Item = u32> + use<'g> {
        self.list(node).iter().map(|node| u32::from_le_bytes(*node)).take_while(|node| *node != NOBODY)
    }
}
