//! Algorithms over graphs whose edges lie in a mapped file, row by row.

use hedgerow_format::U32s;

/// The edges of a graph by the node that they leave (CSR), read where they lie. Bytes may be a stranger's: a target that is no
/// node is passed over by every algorithm.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adjacency<'a> {
    offsets: U32s<'a>,
    targets: U32s<'a>,
    weights: U32s<'a>,
}

impl<'a> Adjacency<'a> {
    /// Edges from their CSR: offsets, one more than there are nodes; targets; and the bits of their weights, `f32`, or nothing
    /// where all weigh 1.
    #[must_use]
    pub fn new(offsets: U32s<'a>, targets: U32s<'a>, weights: U32s<'a>) -> Self {
        Self { offsets, targets, weights }
    }

    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Number of edges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Number of edges that leave a node.
    #[must_use]
    pub fn degree(&self, node: u32) -> usize {
        self.offsets.row(index(node)).len()
    }

    /// Where the edges that leave a node lead, ascending.
    pub fn targets(&self, node: u32) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        self.targets.slice(self.offsets.row(index(node))).iter()
    }

    /// The edges that leave a node, ascending by target, with their weights.
    pub fn edges(&self, node: u32) -> impl Iterator<Item = (u32, f32)> + use<'a> {
        let range = self.offsets.row(index(node));
        let weights = self.weights.slice(range.clone());
        let targets = self.targets.slice(range).iter();
        targets.enumerate().map(move |(at, target)| (target, weights.get(at).map_or(1.0, f32::from_bits)))
    }
}

fn index(node: u32) -> usize {
    usize::try_from(node).unwrap_or(usize::MAX)
}
