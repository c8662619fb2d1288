//! Signals: how similar rows are, by the words or entities that they share, by their columns, or by vectors.
//!
//! A similarity is a number with the same bits on every machine and whichever row comes first; -0 counts as 0, and so does
//! what is no number. A row that is not there is similar to none.

mod columns;
mod dense;
mod overlap;
mod sets;
mod table;
mod words;

use std::ops::Range;

pub use columns::{COLUMNS_MAX, ColumnsBuilder};
pub use dense::Dense;
pub use overlap::{Overlap, Weighing};
pub use sets::{Sets, SetsBuilder};
pub use table::columns_of;

/// A similarity of rows.
pub trait Signal: Sync {
    /// How many rows it knows.
    fn rows(&self) -> usize;

    /// How similar two rows are.
    fn similarity(&self, a: u32, b: u32) -> f32;

    /// How similar a row is to each row of a range: the bits that [`Signal::similarity`] gives. `out` is as long as the range
    /// then. The cost is that of what the row shares with the range where the signal is sparse, else one product a row.
    fn line(&self, row: u32, range: Range<u32>, scratch: &mut Scratch, out: &mut Vec<f32>);

    /// How similar a row is to each of some rows, in their order.
    fn some(&self, row: u32, listed: &[u32], out: &mut Vec<f32>) {
        out.clear();
        out.extend(listed.iter().map(|other| self.similarity(row, *other)));
    }

    /// The unit vectors that are compared, row by row, and how many components each has; none where there is anything else.
    fn unit_vectors(&self) -> Option<(&[f32], usize)> {
        None
    }

    /// Whether most similarities are 0, so that a line costs little.
    fn is_sparse(&self) -> bool;

    /// Bytes of memory that it takes.
    fn bytes(&self) -> u64;

    /// Hashes all that similarities follow from: where the hashes are equal, so are all similarities.
    fn identify(&self, hash: &mut blake3::Hasher);
}

/// What a thread needs while it computes lines; grows to the longest range.
#[derive(Default)]
pub struct Scratch {
    /// What a row shares with others; all zero between calls.
    shared: Vec<f64>,
    /// Where it is not zero.
    touched: Vec<u32>,
    /// Pairs of columns: the row of the second one, and the pair.
    links: Vec<(u32, columns::Link)>,
    /// Rows one by one.
    listed: Vec<u32>,
}

impl Scratch {
    /// Adds the weight of something shared with the `at`th of others.
    fn share(&mut self, at: u32, weight: f64) {
        let Some(shared) = self.shared.get_mut(at as usize) else { return };
        if *shared == 0.0 {
            self.touched.push(at);
        }
        *shared += weight;
    }

    /// Makes room for what is shared with so many.
    fn reserve(&mut self, others: usize) {
        if self.shared.len() < others {
            self.shared.resize(others, 0.0);
        }
    }

    /// Hands over all that is shared, in the order in which it was met, and forgets it.
    fn drain(&mut self, mut emit: impl FnMut(u32, f64)) {
        for at in self.touched.drain(..) {
            emit(at, std::mem::take(&mut self.shared[at as usize]));
        }
    }
}

/// Hashes numbers, and how many there are.
fn hash_all<const N: usize>(hash: &mut blake3::Hasher, numbers: impl ExactSizeIterator<Item = [u8; N]>) {
    let mut bytes = Vec::with_capacity(HASHED_AT_ONCE + N);
    hash.update(&(numbers.len() as u64).to_le_bytes());
    for number in numbers {
        bytes.extend_from_slice(&number);
        if bytes.len() >= HASHED_AT_ONCE {
            hash.update(&bytes);
            bytes.clear();
        }
    }
    hash.update(&bytes);
}

/// Bytes that are hashed together.
const HASHED_AT_ONCE: usize = 1 << 14;

/// The one rounding of a similarity.
#[expect(clippy::cast_possible_truncation, reason = "the similarity is defined by this rounding")]
pub(crate) fn rounded(similarity: f64) -> f32 {
    similarity as f32
}

/// A count as a number; exact below 2⁵³.
#[expect(clippy::cast_precision_loss, reason = "nothing has 2⁵³ of anything")]
fn real(count: usize) -> f64 {
    count as f64
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Rows as numbers of the range that a signal knows.
fn known(range: &Range<u32>, rows: usize) -> Range<u32> {
    let end = range.end.min(number(rows));
    range.start.min(end)..end
}
