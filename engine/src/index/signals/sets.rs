//! Sets of numbers, one after another; and which sets hold a number, which is the same the other way round.

use crate::index::signals::{hash_all, number};
use std::collections::HashMap;

/// Sets of numbers below a bound, each ascending and without repetition. Takes 4 bytes a member and 8 a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sets {
    /// Where each set starts, and at the end their length: one more than there are sets.
    offsets: Vec<usize>,
    members: Vec<u32>,
    /// One above the highest number there can be.
    bound: u32,
}

impl Sets {
    /// How many sets there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The numbers of a set; none where there is no such set.
    pub fn of(&self, set: u32) -> &[u32] {
        let set = set as usize;
        match (self.offsets.get(set), self.offsets.get(set + 1)) {
            (Some(start), Some(end)) => &self.members[*start..*end],
            _ => &[],
        }
    }

    /// For each number the sets that hold it.
    pub(crate) fn transposed(&self) -> Self {
        let mut offsets = vec![0; self.bound as usize + 1];
        for member in &self.members {
            offsets[*member as usize + 1] += 1;
        }
        for at in 1..offsets.len() {
            offsets[at] += offsets[at - 1];
        }
        let mut places = offsets.clone();
        let mut members = vec![0; self.members.len()];
        for set in 0..number(self.len()) {
            for member in self.of(set) {
                let place = &mut places[*member as usize];
                members[*place] = set;
                *place += 1;
            }
        }
        Self { offsets, members, bound: number(self.len()) }
    }

    /// Bytes of memory that they take.
    pub(crate) fn bytes(&self) -> u64 {
        (self.offsets.len() * 8 + self.members.len() * 4) as u64
    }

    /// Hashes what all sets hold.
    pub(crate) fn identify(&self, hash: &mut blake3::Hasher) {
        hash_all(hash, self.offsets.iter().map(|offset| (*offset as u64).to_le_bytes()));
        hash_all(hash, self.members.iter().map(|member| member.to_le_bytes()));
    }

    /// The numbers that two sets share, ascending.
    pub(crate) fn shared(&self, a: u32, b: u32) -> impl Iterator<Item = u32> {
        let (mut left, mut right) = (self.of(a), self.of(b));
        std::iter::from_fn(move || {
            loop {
                let (Some((x, lefts)), Some((y, rights))) = (left.split_first(), right.split_first()) else {
                    return None;
                };
                if x <= y {
                    left = lefts;
                }
                if y <= x {
                    right = rights;
                }
                if x == y {
                    return Some(*x);
                }
            }
        })
    }
}

/// Makes sets of names: the numbers follow the order of the names' bytes, whatever order they came in.
#[derive(Debug, Default)]
pub struct SetsBuilder {
    numbers: HashMap<Box<[u8]>, u32>,
    ends: Vec<usize>,
    members: Vec<u32>,
}

impl SetsBuilder {
    /// Adds a set; names may repeat.
    pub fn push(&mut self, names: impl IntoIterator<Item: AsRef<[u8]>>) {
        let start = self.members.len();
        for name in names {
            let known = self.numbers.get(name.as_ref()).copied();
            let name = known.unwrap_or_else(|| {
                let new = number(self.numbers.len());
                self.numbers.insert(name.as_ref().into(), new);
                new
            });
            self.members.push(name);
        }
        self.members[start..].sort_unstable();
        let mut kept = start;
        for at in start..self.members.len() {
            if kept == start || self.members[kept - 1] != self.members[at] {
                self.members[kept] = self.members[at];
                kept += 1;
            }
        }
        self.members.truncate(kept);
        self.ends.push(kept);
    }

    /// How many sets were added.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The sets in the order in which they were added.
    pub fn finish(self) -> Sets {
        let mut names: Vec<(Box<[u8]>, u32)> = self.numbers.into_iter().collect();
        names.sort_unstable();
        let mut ranks = vec![0; names.len()];
        for (rank, (_, name)) in (0..).zip(&names) {
            ranks[*name as usize] = rank;
        }
        let mut sets = Sets { offsets: vec![0], members: self.members, bound: number(names.len()) };
        sets.members.iter_mut().for_each(|member| *member = ranks[*member as usize]);
        let mut start = 0;
        for end in self.ends {
            sets.members[start..end].sort_unstable();
            sets.offsets.push(end);
            start = end;
        }
        sets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(rows: &[&str]) -> Sets {
        let mut builder = SetsBuilder::default();
        for row in rows {
            builder.push(row.split_whitespace());
        }
        builder.finish()
    }

    #[test]
    fn numbers_follow_the_order_of_names_and_repetition_counts_once() {
        let sets = sets(&["c a c", "", "b a"]);
        assert_eq!((sets.of(0), sets.of(1), sets.of(2)), ([0, 2].as_slice(), [].as_slice(), [0, 1].as_slice()));
        assert_eq!((sets.len(), sets.of(3), sets.of(u32::MAX)), (3, [].as_slice(), [].as_slice()));
        assert_eq!(sets.shared(0, 2).collect::<Vec<_>>(), [0]);
        assert_eq!(sets.shared(1, 2).count(), 0);
    }

    #[test]
    fn the_other_way_round_and_back_again_is_the_same() {
        let sets = sets(&["c a c", "", "b a"]);
        let holders = sets.transposed();
        assert_eq!((holders.of(0), holders.of(1), holders.of(2)), ([0, 2].as_slice(), [2].as_slice(), [0].as_slice()));
        assert_eq!(holders.transposed(), sets);
        assert_eq!(SetsBuilder::default().finish().transposed().len(), 0);
    }
}
