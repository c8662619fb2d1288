//! Reads the header and the tables of a file, and checks its blocks.

use crate::checksum::{BLOCK_BYTES, crc32c, hash};
use crate::file::{FORMAT_VERSION, FileHeader, FileKind, HEADER_BYTES, MAGIC, SECTION_ALIGNMENT, SectionEntry};
use crate::section::{SectionKind, Sections};
use crate::{Field, FormatError, Record, Rows, U32s, limits};
use std::ops::Range;
use std::sync::OnceLock;

/// Where everything lies in a file whose header and tables have been checked.
#[derive(Clone, Debug)]
pub struct Layout {
    /// What the file is.
    pub kind: FileKind,
    /// The header.
    pub header: FileHeader,
    /// BLAKE3 of the header, which the manifest holds.
    pub header_hash: [u8; 32],
    sections: Vec<Section>,
    blocks: Range<usize>,
    end: u64,
}

/// One section: what it is and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What it holds.
    pub kind: SectionKind,
    /// Its bytes in the file.
    pub range: Range<usize>,
}

impl Layout {
    /// Checks the header and the tables of the file `bytes`. Reads nothing else.
    ///
    /// # Errors
    /// Says what is wrong, in this order: length, magic, version, features, checksum, lengths, hash, sections.
    pub fn parse(expected: FileKind, bytes: &[u8]) -> Result<Self, FormatError> {
        let header = check_header(expected, bytes)?;
        let end = header.section_table;
        let table_bytes = u64::from(header.sections).saturating_mul(SectionEntry::SIZE as u64);
        let blocks_start = end.saturating_add(table_bytes);
        let blocks_end = blocks_start.saturating_add(u64::from(header.blocks).saturating_mul(4));
        if blocks_end != header.file_bytes || !end.is_multiple_of(SECTION_ALIGNMENT) || end < HEADER_BYTES {
            return Err(value("the section table's offset", "tables that end the file", format!("{end}")));
        }
        if header.sections > limits::SECTIONS || u64::from(header.blocks) != end.div_ceil(BLOCK_BYTES) {
            return Err(value(
                "the number of sections or blocks",
                "what the length bears out",
                header.blocks.to_string(),
            ));
        }
        let place = |start: u64, end: u64| Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?);
        let outside = || FormatError::Length { what: "the file", expected: blocks_end, found: bytes.len() as u64 };
        let table = place(end, blocks_start).and_then(|range| bytes.get(range)).ok_or_else(outside)?;
        let blocks = place(blocks_start, blocks_end).ok_or_else(outside)?;
        let block_table = bytes.get(blocks.clone()).ok_or_else(outside)?;
        if hash(&[table, block_table]) != header.tables_hash {
            return Err(FormatError::Hash { what: "the section and block tables", offset: end });
        }
        let sections = check_sections(table, end)?;
        let header_hash = hash(&[bytes.get(..256).unwrap_or_default()]);
        Ok(Self { kind: expected, header, header_hash, sections, blocks, end })
    }

    /// What can be known of a damaged file whose length is right: its section table is looked for where the length lets it
    /// be, and counts if its sections follow each other without a gap. Header and block table may hold anything, so that
    /// every block is to be checked before it is believed.
    #[must_use]
    pub fn of_damaged(kind: FileKind, bytes: &[u8]) -> Option<Self> {
        let header = FileHeader::decode(bytes.get(..256)?)?;
        let file_bytes = bytes.len() as u64;
        (0..=u64::from(limits::SECTIONS)).find_map(|sections| {
            let table_bytes = sections.saturating_mul(SectionEntry::SIZE as u64);
            let rest = file_bytes.checked_sub(table_bytes)?;
            // The blocks take 4 bytes each behind what they cover.
            let blocks = rest.div_ceil(BLOCK_BYTES.saturating_add(4));
            let end = rest.checked_sub(blocks.saturating_mul(4))?;
            if end < HEADER_BYTES || !end.is_multiple_of(SECTION_ALIGNMENT) || end.div_ceil(BLOCK_BYTES) != blocks {
                return None;
            }
            let place = |start: u64, length: u64| {
                Some(usize::try_from(start).ok()?..usize::try_from(start.checked_add(length)?).ok()?)
            };
            let table = bytes.get(place(end, table_bytes)?)?;
            let found = check_sections(table, end).ok()?;
            let mut next = usize::try_from(HEADER_BYTES).ok()?;
            for section in &found {
                if section.range.start != next || section.range.is_empty() {
                    return None;
                }
                next = section.range.end.checked_next_multiple_of(usize::try_from(SECTION_ALIGNMENT).ok()?)?;
            }
            let header_hash = hash(&[bytes.get(..256)?]);
            let blocks = place(end.checked_add(table_bytes)?, blocks.checked_mul(4)?)?;
            let tight = next as u64 == end;
            tight.then_some(Self { kind, header, header_hash, sections: found, blocks, end })
        })
    }

    /// All sections, in the order of kinds.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Where a section lies, if the file has it.
    #[must_use]
    pub fn section(&self, kind: SectionKind) -> Option<Range<usize>> {
        let found = self.sections.binary_search_by_key(&kind, |section| section.kind).ok()?;
        self.sections.get(found).map(|section| section.range.clone())
    }

    /// Number of blocks.
    #[must_use]
    pub fn block_count(&self) -> usize {
        self.blocks.len() / 4
    }

    /// The blocks that hold the bytes `range` of the file.
    #[must_use]
    pub fn blocks_of(range: &Range<usize>) -> Range<usize> {
        let block_bytes = usize::try_from(BLOCK_BYTES).unwrap_or(usize::MAX);
        if range.is_empty() {
            return 0..0;
        }
        let first = range.start.checked_div(block_bytes).unwrap_or(0);
        first..range.end.div_ceil(block_bytes)
    }

    /// Checks one block against its checksum.
    ///
    /// # Errors
    /// [`FormatError::Block`].
    pub fn check_block(&self, bytes: &[u8], block: usize) -> Result<(), FormatError> {
        let start = (block as u64).saturating_mul(BLOCK_BYTES);
        let range = start.max(HEADER_BYTES)..start.saturating_add(BLOCK_BYTES).min(self.end);
        let found = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        let found = found.and_then(|(start, end)| bytes.get(start..end)).map(crc32c);
        let table = U32s::new("block table", bytes.get(self.blocks.clone()).unwrap_or_default())?;
        match (table.get(block), found) {
            (Some(expected), Some(found)) if expected == found => Ok(()),
            (expected, found) => Err(FormatError::Block {
                sections: self.names_between(&range),
                offset: range.start,
                expected: expected.unwrap_or_default(),
                found: found.unwrap_or_default(),
            }),
        }
    }

    fn names_between(&self, range: &Range<u64>) -> String {
        let touches =
            |section: &&Section| (section.range.start as u64) < range.end && (section.range.end as u64) > range.start;
        let names: Vec<&str> = self.sections.iter().filter(touches).map(|section| section.kind.name()).collect();
        if names.is_empty() { "padding".into() } else { names.join(", ") }
    }

    /// Checks all that [`Layout::parse`] and the reading of sections don't: every block, and that padding is zero.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn check_all(&self, bytes: &[u8]) -> Result<(), FormatError> {
        (0..self.block_count()).try_for_each(|block| self.check_block(bytes, block))?;
        let mut end = usize::try_from(HEADER_BYTES).unwrap_or(usize::MAX);
        let last = usize::try_from(self.end).unwrap_or(usize::MAX);
        let starts = self.sections.iter().map(|section| section.range.clone()).chain(std::iter::once(last..last));
        for range in starts {
            let padding = bytes.get(end..range.start).unwrap_or_default();
            if padding.iter().any(|byte| *byte != 0) {
                return Err(value(
                    "the padding between sections",
                    "zeros",
                    format!("other bytes before {}", range.start),
                ));
            }
            end = range.end;
        }
        Ok(())
    }
}

/// A file in memory whose every block has been checked.
#[derive(Clone, Debug)]
pub struct Whole<'a> {
    /// Where everything lies.
    pub layout: Layout,
    bytes: &'a [u8],
}

impl<'a> Whole<'a> {
    /// Checks every byte of the file.
    ///
    /// # Errors
    /// As [`Layout::parse`] and [`Layout::check_all`].
    pub fn open(expected: FileKind, bytes: &'a [u8]) -> Result<Self, FormatError> {
        let layout = Layout::parse(expected, bytes)?;
        layout.check_all(bytes)?;
        Ok(Self { layout, bytes })
    }
}

impl Sections for Whole<'_> {
    fn section(&self, kind: SectionKind) -> Result<&[u8], FormatError> {
        Ok(self.layout.section(kind).and_then(|range| self.bytes.get(range)).unwrap_or_default())
    }
}

/// First eight bytes of the BLAKE3 of all record tables: two programs that disagree about a record refuse each other's files.
pub(crate) fn fingerprint() -> u64 {
    static FINGERPRINT: OnceLock<u64> = OnceLock::new();
    *FINGERPRINT.get_or_init(|| {
        let mut tables = String::new();
        for (name, fields) in crate::segment::RECORDS {
            for Field { offset, size, name: field, .. } in *fields {
                tables.extend([name, " ", &offset.to_string(), " ", &size.to_string(), " ", field, "\n"]);
            }
        }
        u64::from_le_bytes(hash(&[tables.as_bytes()]).first_chunk().copied().unwrap_or_default())
    })
}

fn check_header(expected: FileKind, bytes: &[u8]) -> Result<FileHeader, FormatError> {
    let short = FormatError::Length { what: "the file", expected: HEADER_BYTES, found: bytes.len() as u64 };
    let first = bytes.get(..256).ok_or_else(|| short.clone())?;
    let header = FileHeader::decode(first).ok_or(short)?;
    if header.magic != MAGIC {
        return Err(FormatError::Magic { expected: expected.name(), found: header.magic });
    }
    if header.version != FORMAT_VERSION {
        return Err(FormatError::Version { expected: FORMAT_VERSION, found: header.version });
    }
    if header.incompatible != 0 {
        return Err(FormatError::Features { found: header.incompatible });
    }
    let found = crc32c(first.get(..252).unwrap_or_default());
    if found != header.checksum {
        return Err(FormatError::Checksum { what: "the header", offset: 0, expected: header.checksum, found });
    }
    if FileKind::from_number(header.kind) != Some(expected) {
        return Err(value("the kind of file", expected.name(), header.kind.to_string()));
    }
    if header.header_bytes != 256 || header.reserved != [0; 116] {
        return Err(value("the header's reserved bytes", "zeros", "other bytes".into()));
    }
    if header.layout != fingerprint() {
        return Err(value("the layout fingerprint", "that of this program", format!("{:#x}", header.layout)));
    }
    if header.file_bytes != bytes.len() as u64 {
        return Err(FormatError::Length { what: "the file", expected: header.file_bytes, found: bytes.len() as u64 });
    }
    Ok(header)
}

fn check_sections(table: &[u8], end: u64) -> Result<Vec<Section>, FormatError> {
    let mut sections: Vec<Section> = Vec::new();
    let mut free_from = HEADER_BYTES;
    let entries = Rows::<SectionEntry>::new("section table", table)?;
    for entry in entries.iter() {
        let kind = SectionKind::from_number(entry.kind);
        let kind = kind.ok_or_else(|| value("the kind of a section", "a known one", entry.kind.to_string()))?;
        let last = entry.offset.saturating_add(entry.length);
        let whole = entry.length.checked_rem(u64::from(entry.element_bytes)) == Some(0);
        if entry.element_bytes != kind.element_bytes() || !whole || entry.reserved != 0 {
            let expected = format!("elements of {} bytes", kind.element_bytes());
            return Err(FormatError::Shape { section: kind.name(), expected, found: format!("{entry:?}") });
        }
        let ascending = sections.last().is_none_or(|before| before.kind < kind);
        let placed = entry.offset >= free_from && entry.offset.is_multiple_of(SECTION_ALIGNMENT) && last <= end;
        let range = usize::try_from(entry.offset).ok().zip(usize::try_from(last).ok());
        let (true, true, Some((start, stop))) = (ascending, placed, range) else {
            return Err(FormatError::Shape {
                section: kind.name(),
                expected: "sections in order, aligned, apart and inside the file".into(),
                found: format!("{} bytes at {}", entry.length, entry.offset),
            });
        };
        free_from = last;
        sections.push(Section { kind, range: start..stop });
    }
    Ok(sections)
}

fn value(what: &'static str, expected: &str, found: String) -> FormatError {
    FormatError::Value { what, expected: expected.into(), found }
}
