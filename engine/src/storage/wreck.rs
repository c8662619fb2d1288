//! A file that may be damaged: hands out the bytes that are as they were written, and no others.

use crate::error::Damage;
use crate::storage::{Access, FileFault, FileName, Mapping, Vfs, at};
use hedgerow_format::checksum::crc32c;
use hedgerow_format::file::{FileKind, Layout};
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::text::{TEXT_BLOCK_BYTES, TextBlock, TextView};
use hedgerow_format::{FormatError, Record, Rows, TextRef};
use std::ops::Range;

/// An open file of which some blocks may be damaged.
#[derive(Debug)]
pub struct Wreck {
    name: FileName,
    mapping: Mapping,
    layout: Layout,
    /// One flag a block: whether its checksum is right.
    sound: Vec<bool>,
}

impl Wreck {
    /// Opens a file and checks every block of it. Its header and its table of blocks may be damaged; without its table of
    /// sections nothing can be read.
    ///
    /// # Errors
    /// [`FileFault`].
    pub fn open(disk: &dyn Vfs, kind: FileKind, name: FileName) -> Result<Self, FileFault> {
        let mapping = disk.open(&name, Access::Read).and_then(|file| file.map());
        let mapping = mapping.map_err(at("open", &name)).map_err(FileFault::Storage)?;
        let layout = Layout::parse(kind, &mapping).or_else(|error| {
            // What a sound header refuses, such as another version, may mean something else by the same bytes.
            let is_refused = header_is_sound(&mapping) && !matches!(error, FormatError::Hash { .. });
            if is_refused { Err(error) } else { Layout::of_damaged(kind, &mapping).ok_or(error) }
        });
        let layout = layout.map_err(|source| FileFault::Damage(Damage { file: name.to_string(), source }))?;
        let sound = (0..layout.block_count()).map(|block| layout.check_block(&mapping, block).is_ok()).collect();
        Ok(Self { name, mapping, layout, sound })
    }

    /// Which file it is.
    #[must_use]
    pub fn name(&self) -> &FileName {
        &self.name
    }

    /// Elements that a section has, as the section table says.
    #[must_use]
    pub fn count(&self, kind: SectionKind) -> usize {
        let size = usize::try_from(kind.element_bytes()).unwrap_or(usize::MAX);
        self.layout.section(kind).map_or(0, |range| range.len() / size)
    }

    /// Bytes of a section; none where one of them is not there or in a damaged block.
    #[must_use]
    pub fn bytes(&self, kind: SectionKind, range: Range<usize>) -> Option<&[u8]> {
        let section = self.layout.section(kind).unwrap_or_default();
        let (start, end) = (section.start.checked_add(range.start)?, section.start.checked_add(range.end)?);
        let mut blocks = Layout::blocks_of(&(start..end));
        let is_sound = end <= section.end && blocks.all(|block| self.sound.get(block) == Some(&true));
        if is_sound { self.mapping.get(start..end) } else { None }
    }

    /// A row of a section.
    #[must_use]
    pub fn row<R: Record>(&self, kind: SectionKind, row: usize) -> Option<R> {
        let start = row.checked_mul(R::SIZE)?;
        R::decode(self.bytes(kind, start..start.checked_add(R::SIZE)?)?)
    }

    /// A number of a section of numbers.
    #[must_use]
    pub fn number(&self, kind: SectionKind, row: usize) -> Option<u32> {
        let start = row.checked_mul(4)?;
        let bytes = self.bytes(kind, start..start.checked_add(4)?)?;
        Some(u32::from_le_bytes(*bytes.first_chunk()?))
    }

    /// A string that a row refers to.
    #[must_use]
    pub fn string(&self, place: TextRef) -> Option<&str> {
        let start = usize::try_from(place.offset).ok()?;
        let end = start.checked_add(usize::try_from(place.length).ok()?)?;
        std::str::from_utf8(self.bytes(SectionKind::Strings, start..end)?).ok()
    }

    /// Bytes of the segment's text.
    #[must_use]
    pub fn text(&self, range: Range<u64>) -> Option<String> {
        if range.is_empty() {
            return Some(String::new());
        }
        let block_bytes = TEXT_BLOCK_BYTES as u64;
        let (first, last) = (range.start / block_bytes, (range.end - 1) / block_bytes);
        for number in first..=last {
            let row: TextBlock = self.row(SectionKind::TextBlocks, usize::try_from(number).ok()?)?;
            let start = usize::try_from(row.offset).ok()?;
            self.bytes(SectionKind::Text, start..start.checked_add(usize::try_from(row.length).ok()?)?)?;
        }
        let blocks = Rows::new(SectionKind::TextBlocks.name(), self.unchecked(SectionKind::TextBlocks)).ok()?;
        TextView { blocks, bytes: self.unchecked(SectionKind::Text) }.read(range).ok()
    }

    fn unchecked(&self, kind: SectionKind) -> &[u8] {
        self.layout.section(kind).and_then(|range| self.mapping.get(range)).unwrap_or_default()
    }
}

fn header_is_sound(bytes: &[u8]) -> bool {
    let found = bytes.get(..252).zip(bytes.get(252..256).and_then(|sum| sum.first_chunk()));
    found.is_some_and(|(header, sum)| crc32c(header) == u32::from_le_bytes(*sum))
}

/// Whole sections only: one of which a block is damaged is an error.
impl Sections for Wreck {
    fn section(&self, kind: SectionKind) -> Result<&[u8], FormatError> {
        let Some(range) = self.layout.section(kind) else { return Ok(&[]) };
        Layout::blocks_of(&range).try_for_each(|block| self.layout.check_block(&self.mapping, block))?;
        Ok(self.unchecked(kind))
    }
}
