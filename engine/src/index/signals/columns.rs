//! The similarity of tables: the mean of their three best pairs of columns, by the words of these.

use crate::index::signals::{Scratch, Sets, SetsBuilder, Signal, hash_all, known, number, real, rounded};
use std::ops::Range;

/// Columns of a table that count; those behind them don't.
pub const COLUMNS_MAX: usize = 40;

/// Pairs of columns that count.
const BEST: usize = 3;

/// Columns for each row, each a set of words: those of its heading and its cells.
///
/// Two columns are as similar as the share of words that both have among those that either has (Jaccard's index), in f64. Pairs
/// of columns of two tables are taken in descending order, each column once, those with common words only; among equals those
/// first whose smaller place, then whose larger place is lower. The first three, at most, are added up in f64 in this order,
/// divided by the columns of the narrower table, at most three, and rounded once to f32.
///
/// Takes 8 bytes for each word of each column and 20 for each column.
#[derive(Clone, Debug)]
pub struct Columns {
    words: Sets,
    holders: Sets,
    /// The first column of each row, and at the end their number.
    starts: Vec<u32>,
    /// The row of each column.
    rows: Vec<u32>,
}

/// Gathers the columns of one row after another.
#[derive(Debug, Default)]
pub struct ColumnsBuilder {
    words: SetsBuilder,
    ends: Vec<u32>,
}

impl ColumnsBuilder {
    /// Adds a row with the text of each of its columns, see [`SetsBuilder::push_words`]. Columns without words don't count, and
    /// none behind [`COLUMNS_MAX`]; a row without columns is similar to none.
    pub fn push(&mut self, columns: impl IntoIterator<Item: AsRef<str>>) {
        let has_words = |column: &_| !AsRef::<str>::as_ref(column).trim().is_empty();
        for column in columns.into_iter().filter(has_words).take(COLUMNS_MAX) {
            self.words.push_words(column.as_ref());
        }
        self.ends.push(number(self.words.len()));
    }

    /// The rows in the order in which they were added.
    pub fn finish(self) -> Columns {
        let words = self.words.finish();
        let starts: Vec<u32> = std::iter::once(0).chain(self.ends).collect();
        let rows = (0..).zip(starts.windows(2)).flat_map(|(row, ends)| (ends[0]..ends[1]).map(move |_| row)).collect();
        Columns { holders: words.transposed(), words, starts, rows }
    }
}

/// Two columns that share words, by their places in their tables.
#[derive(Clone, Copy)]
pub(super) struct Link {
    similarity: f64,
    places: (u32, u32),
}

impl Columns {
    fn of(&self, row: u32) -> Range<u32> {
        let row = row as usize;
        match (self.starts.get(row), self.starts.get(row + 1)) {
            (Some(start), Some(end)) => *start..*end,
            _ => 0..0,
        }
    }

    fn link(&self, a: u32, b: u32, places: (u32, u32), shared: f64) -> Link {
        let either = real(self.words.of(a).len() + self.words.of(b).len()) - shared;
        Link { similarity: shared / either, places }
    }

    fn mean(&self, a: u32, b: u32, links: &[(u32, Link)]) -> f32 {
        let narrower = self.of(a).len().min(self.of(b).len()).min(BEST);
        if narrower == 0 {
            return 0.0;
        }
        let mut taken: [Option<(u32, u32)>; BEST] = [None; BEST];
        let mut sum = 0.0;
        for at in 0..narrower {
            let is_free = |link: &Link| {
                taken.iter().flatten().all(|(left, right)| *left != link.places.0 && *right != link.places.1)
            };
            let Some(best) = links.iter().map(|(_, link)| *link).filter(is_free).reduce(better) else { break };
            sum += best.similarity;
            taken[at] = Some(best.places);
        }
        rounded(sum / real(narrower))
    }
}

/// The better of two links; neither comes first where a table is compared the other way round.
fn better(a: Link, b: Link) -> Link {
    let places = |link: &Link| (link.places.0.min(link.places.1), link.places.0.max(link.places.1));
    let order = a.similarity.total_cmp(&b.similarity).then_with(|| places(&b).cmp(&places(&a)));
    if order.is_lt() { b } else { a }
}

impl Signal for Columns {
    fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    fn similarity(&self, a: u32, b: u32) -> f32 {
        let mut links = Vec::new();
        for (i, left) in (0..).zip(self.of(a)) {
            for (j, right) in (0..).zip(self.of(b)) {
                let shared = self.words.shared(left, right).count();
                if shared > 0 {
                    links.push((b, self.link(left, right, (i, j), real(shared))));
                }
            }
        }
        self.mean(a, b, &links)
    }

    fn line(&self, row: u32, range: Range<u32>, scratch: &mut Scratch, out: &mut Vec<f32>) {
        out.clear();
        out.resize(range.len(), 0.0);
        let range = known(&range, self.rows());
        let (first, end) = (self.starts[range.start as usize], self.starts[range.end as usize]);
        scratch.reserve((end - first) as usize);
        let mut links = std::mem::take(&mut scratch.links);
        for (i, column) in (0..).zip(self.of(row)) {
            for word in self.words.of(column) {
                let holders = self.holders.of(*word);
                let start = holders.partition_point(|holder| *holder < first);
                holders[start..].iter().take_while(|holder| **holder < end).for_each(|holder| {
                    scratch.share(*holder - first, 1.0);
                });
            }
            scratch.drain(|at, shared| {
                let other = first + at;
                let of = self.rows[other as usize];
                let j = other - self.starts[of as usize];
                links.push((of, self.link(column, other, (i, j), shared)));
            });
        }
        links.sort_unstable_by_key(|(of, link)| (*of, link.places));
        for links in links.chunk_by(|a, b| a.0 == b.0) {
            let of = links[0].0;
            out[(of - range.start) as usize] = self.mean(row, of, links);
        }
        links.clear();
        scratch.links = links;
    }

    fn is_sparse(&self) -> bool {
        true
    }

    fn bytes(&self) -> u64 {
        self.words.bytes() + self.holders.bytes() + (self.starts.len() + self.rows.len()) as u64 * 4
    }

    fn identify(&self, hash: &mut blake3::Hasher) {
        hash.update(b"columns");
        self.words.identify(hash);
        hash_all(hash, self.starts.iter().map(|start| start.to_le_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::signals::columns_of;

    fn columns(tables: &[&[&str]]) -> Columns {
        let mut builder = ColumnsBuilder::default();
        for table in tables {
            builder.push(*table);
        }
        builder.finish()
    }

    #[test]
    fn tables_are_as_similar_as_the_mean_of_their_three_best_pairs_of_columns() {
        let tables = columns(&[
            &["a b", "c d", "e f", "g h"],
            &["g x", "a b", "c d e", "z"],
            &["a"],
            &[],
            &["", "a b", ""],
            &["a b", "a b"],
        ]);
        // a b = a b: 1; c d in c d e: 2/3; g h and g x: 1/3.
        assert_eq!(tables.similarity(0, 1).to_bits(), rounded((1.0 + 2.0 / 3.0 + 1.0 / 3.0) / 3.0).to_bits());
        assert_eq!(tables.similarity(0, 2).to_bits(), 0.5f32.to_bits());
        assert_eq!(tables.similarity(0, 3).to_bits(), 0);
        assert_eq!(tables.similarity(0, 4).to_bits(), 1f32.to_bits());
        // A column is taken once: the second one finds no partner, and still counts.
        assert_eq!(tables.similarity(0, 5).to_bits(), 0.5f32.to_bits());
        assert_eq!(tables.similarity(5, 5).to_bits(), 1f32.to_bits());
    }

    #[test]
    fn lines_give_the_bits_of_single_similarities_both_ways() {
        let mut seed = 3u32;
        let mut below = |end: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % end
        };
        let mut builder = ColumnsBuilder::default();
        for rows in 0..40 {
            let mut column = || (0..below(4)).map(|_| below(9).to_string()).collect::<Vec<_>>().join(" ");
            let table: Vec<String> = (0..rows % 6).map(|_| column()).collect();
            builder.push(table);
        }
        let tables = builder.finish();
        let (mut scratch, mut out) = (Scratch::default(), Vec::new());
        for row in 0..41 {
            for range in [0..40, 11..27, 39..50, 45..50] {
                tables.line(row, range.clone(), &mut scratch, &mut out);
                let bits: Vec<u32> = out.iter().map(|x| x.to_bits()).collect();
                let single = |other| tables.similarity(row, other).to_bits();
                assert_eq!(bits, range.clone().map(single).collect::<Vec<_>>());
                assert_eq!(bits, range.map(|other| tables.similarity(other, row).to_bits()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn columns_behind_the_limit_do_not_count() {
        let wide = (0..=COLUMNS_MAX).map(|column| column.to_string()).collect::<Vec<_>>().join(" | ");
        let mut builder = ColumnsBuilder::default();
        builder.push(columns_of(&wide));
        builder.push(columns_of("40 | 39"));
        // Only 39 is a column of both; the narrower table has two.
        assert_eq!(builder.finish().similarity(0, 1).to_bits(), 0.5f32.to_bits());
    }
}
