//! What some blocks of a build saw: kept when it is interrupted, and joined when several machines share it.

use crate::error::TilesFault;
use crate::index::edges::bracket::Bracket;
use crate::index::edges::scan::{Tally, insert};

/// So much of a build.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What the build is made of: rows, their order, and rules.
    pub identity: Identity,
    /// What is counted.
    pub bracket: Bracket,
    /// Whether each block is done.
    pub done: Vec<bool>,
    /// How many pairs these have.
    pub pairs: u64,
    /// What they are like.
    pub tally: Tally,
    /// Entries of a row.
    pub width: usize,
    /// For each row in turn its best partners in these blocks, worst first.
    pub entries: Vec<u64>,
}

/// One of several shares of the pairs, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeShare {
    /// Which.
    pub number: u32,
    /// Of how many.
    pub of: u32,
}

impl EdgeShare {
    /// Whether a block of pairs is in it: of every so many blocks one.
    pub(crate) fn has(self, block: usize) -> bool {
        block as u64 % u64::from(self.of.max(1)) + 1 == u64::from(self.number)
    }
}

/// Tells builds from each other.
pub type Identity = [u8; 32];

const MAGIC: &[u8; 16] = b"hedgerow-tiles\r\n";
const VERSION: u32 = 1;

/// Bytes before the counts, and those of the hash behind everything.
const HEAD: usize = 16 + 4 + 32 + 4 * 3 + 8 * 5 + 4;
/// Bytes of a bin that has pairs.
const COUNT: usize = 12;
const HASH: usize = 32;

impl Part {
    /// Nothing done yet of so many blocks, for so many rows.
    pub fn new(identity: Identity, bracket: Bracket, blocks: usize, rows: usize, width: usize) -> Self {
        Self {
            identity,
            bracket,
            done: vec![false; blocks],
            pairs: 0,
            tally: Tally { below: 0, counts: vec![0; bracket.bins as usize] },
            width,
            entries: vec![0; rows * width],
        }
    }

    /// Whether all blocks are done.
    pub fn is_whole(&self) -> bool {
        self.done.iter().all(|done| *done)
    }

    /// Adds what another part of the same build saw; false if the builds differ or a block is done in both.
    #[must_use]
    pub fn join(&mut self, other: &Self) -> bool {
        let same = self.identity == other.identity && self.bracket == other.bracket && self.width == other.width;
        let same = same && self.done.len() == other.done.len() && self.entries.len() == other.entries.len();
        if !same || self.done.iter().zip(&other.done).any(|(one, other)| *one && *other) {
            return false;
        }
        self.done.iter_mut().zip(&other.done).for_each(|(one, other)| *one |= *other);
        self.pairs = self.pairs.saturating_add(other.pairs);
        self.tally.add(&other.tally);
        let width = self.width.max(1);
        for (entries, others) in self.entries.chunks_mut(width).zip(other.entries.chunks(width)) {
            for entry in others {
                insert(entries, *entry);
            }
        }
        true
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> u64 {
        (self.entries.len() * 8 + self.tally.counts.len() * 8 + self.done.len()) as u64
    }

    /// Writes the part behind others.
    pub fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(HEAD + self.tally.counts.len() * COUNT + self.entries.len() * 8 + self.done.len() + HASH);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.identity);
        for number in [self.bracket.low, self.bracket.shift, self.bracket.bins] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        let counts = || (0_u32..).zip(&self.tally.counts).filter(|(_, count)| **count > 0);
        let lengths = [self.done.len(), self.entries.len(), counts().count()].map(|len| len as u64);
        for number in [self.pairs, self.tally.below].into_iter().chain(lengths) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&u32::try_from(self.width).unwrap_or(u32::MAX).to_le_bytes());
        for (bin, count) in counts() {
            out.extend_from_slice(&bin.to_le_bytes());
            out.extend_from_slice(&count.to_le_bytes());
        }
        self.entries.iter().for_each(|entry| out.extend_from_slice(&entry.to_le_bytes()));
        out.extend(self.done.iter().map(|done| u8::from(*done)));
        let hash = *blake3::hash(&out[start..]).as_bytes();
        out.extend_from_slice(&hash);
    }

    /// Reads the parts that a file holds, one behind the other.
    ///
    /// # Errors
    /// [`TilesFault`]. Nothing is allocated that the bytes don't hold.
    pub fn read_all(bytes: &[u8]) -> Result<Vec<Self>, TilesFault> {
        let (mut parts, mut at) = (Vec::new(), 0);
        while at < bytes.len() || parts.is_empty() {
            let (part, len) = Self::read(bytes.get(at..).unwrap_or_default(), at)?;
            parts.push(part);
            at += len;
        }
        Ok(parts)
    }

    /// Reads the part that bytes begin with, and says how long it is.
    fn read(bytes: &[u8], at: usize) -> Result<(Self, usize), TilesFault> {
        let damaged = TilesFault::Damaged { at };
        let head: &[u8; HEAD] = match bytes.first_chunk() {
            Some(head) if head.starts_with(MAGIC) => head,
            _ if bytes.starts_with(MAGIC) => return Err(damaged),
            _ => return Err(TilesFault::NotTiles),
        };
        let mut fields = Fields(&head[MAGIC.len()..]);
        let version = fields.u32();
        if version != VERSION {
            return Err(TilesFault::Version { found: version, expected: VERSION });
        }
        let identity = fields.array();
        let bracket = Bracket { low: fields.u32(), shift: fields.u32(), bins: fields.u32() };
        let [pairs, below] = [fields.u64(), fields.u64()];
        let [blocks, entries, counts] = [fields.len(), fields.len(), fields.len()];
        let width = usize::try_from(fields.u32()).unwrap_or(usize::MAX);
        let body = counts.checked_mul(COUNT).zip(entries.checked_mul(8));
        let body =
            body.and_then(|(counts, entries)| counts.checked_add(entries)?.checked_add(blocks)?.checked_add(HEAD));
        let Some((body, hash)) = body.and_then(|body| Some((bytes.get(..body)?, bytes.get(body..body + HASH)?))) else {
            return Err(damaged);
        };
        if blake3::hash(body).as_bytes() != hash || !bracket.is_sound() {
            return Err(damaged);
        }
        let (counts, rest) = body[HEAD..].split_at(counts * COUNT);
        let (entries, done) = rest.split_at(entries * 8);
        let mut tally = Tally { below, counts: vec![0; bracket.bins as usize] };
        for count in counts.as_chunks::<COUNT>().0 {
            let mut fields = Fields(count);
            let (bin, pairs) = (fields.u32(), fields.u64());
            *tally.counts.get_mut(bin as usize).ok_or_else(|| damaged.clone())? = pairs;
        }
        let entries = entries.as_chunks().0.iter().map(|number| u64::from_le_bytes(*number)).collect();
        let done = done.iter().map(|done| *done != 0).collect();
        let part = Self { identity, bracket, done, pairs, tally, width, entries };
        Ok((part, body.len() + HASH))
    }
}

/// The numbers of a head, one after another.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let Some((array, rest)) = self.0.split_first_chunk() else { return [0; N] };
        self.0 = rest;
        *array
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    fn len(&mut self) -> usize {
        usize::try_from(self.u64()).unwrap_or(usize::MAX)
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(blocks: &[bool], entries: &[u64]) -> Part {
        let bracket = Bracket { low: 7, shift: 0, bins: 3 };
        let mut part = Part::new([9; 32], bracket, blocks.len(), entries.len() / 2, 2);
        part.done = blocks.to_vec();
        part.tally = Tally { below: 5, counts: vec![1, 2, 3] };
        part.entries = entries.to_vec();
        part
    }

    #[test]
    fn parts_are_read_as_they_were_written_and_damage_is_found() {
        let parts = [part(&[true, false, true], &[0, 4, 3, 9]), part(&[false; 3], &[0; 4])];
        let mut bytes = Vec::new();
        for part in &parts {
            part.write(&mut bytes);
        }
        assert_eq!(Part::read_all(&bytes).unwrap(), parts);
        for cut in 0..bytes.len() {
            if cut != bytes.len() / 2 {
                assert!(Part::read_all(&bytes[..cut]).is_err(), "{cut}");
            }
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x41;
            assert!(Part::read_all(&damaged).is_err(), "{at}");
        }
        assert_eq!(Part::read_all(b"something else"), Err(TilesFault::NotTiles));
    }

    #[test]
    fn joined_parts_know_the_best_of_both_and_no_block_counts_twice() {
        let mut one = part(&[true, false, false], &[1, 8, 0, 2]);
        assert!(one.join(&part(&[false, true, false], &[3, 5, 0, 0])));
        assert_eq!(one.entries, [5, 8, 0, 2]);
        assert_eq!((one.tally.below, one.tally.counts.as_slice()), (10, [2, 4, 6].as_slice()));
        assert_eq!(one.done, [true, true, false]);
        let before = one.clone();
        assert!(!one.join(&part(&[false, true, true], &[0; 4])));
        let other = Part { identity: [0; 32], ..part(&[false, false, true], &[0; 4]) };
        assert!(!one.join(&other));
        assert_eq!(one, before);
    }
}
