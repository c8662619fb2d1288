//! A file of the store whose every block is checked before it is first believed.

use crate::error::{Damage, OpenError, StorageError};
use crate::planted::{Planted, planted};
use crate::storage::sync::{AtomicBool, Ordering};
use crate::storage::{Access, FileName, Mapping, Vfs, at};
use hedgerow_format::FormatError;
use hedgerow_format::file::{FileKind, Layout};
use hedgerow_format::manifest::FileEntry;
use hedgerow_format::section::{SectionKind, Sections};
use std::ops::Range;

/// An open, mapped file with its header and tables checked.
#[derive(Debug)]
pub struct VerifiedFile {
    name: FileName,
    mapping: Mapping,
    layout: Layout,
    /// One flag a section: its blocks have been checked.
    checked: Vec<AtomicBool>,
    /// One flag a block: it has been checked by itself.
    checked_blocks: Vec<AtomicBool>,
}

/// Why a file could not be opened.
#[derive(Debug)]
pub enum FileFault {
    /// The system refused.
    Storage(StorageError),
    /// It is not the file that was meant.
    Damage(Damage),
}

impl From<FileFault> for OpenError {
    fn from(fault: FileFault) -> Self {
        match fault {
            FileFault::Storage(error) => Self::Storage(error),
            FileFault::Damage(damage) => Self::Damaged(damage),
        }
    }
}

impl VerifiedFile {
    /// Opens the file that `entry` names and checks length, header and tables, and that it is the one that was meant.
    ///
    /// # Errors
    /// [`FileFault`].
    pub fn open(disk: &dyn Vfs, kind: FileKind, store: [u8; 16], entry: &FileEntry) -> Result<Self, FileFault> {
        let name = FileName::of(kind, entry);
        let damage = |source| FileFault::Damage(Damage { file: name.to_string(), source });
        let file = disk.open(&name, Access::Read).map_err(at("open", &name)).map_err(FileFault::Storage)?;
        // Before it is mapped or read: no more memory is asked for than the manifest says.
        let found = file.len().map_err(at("open", &name)).map_err(FileFault::Storage)?;
        if found != entry.file_bytes {
            return Err(damage(FormatError::Length { what: "the file", expected: entry.file_bytes, found }));
        }
        let mapping = file.map().map_err(at("open", &name)).map_err(FileFault::Storage)?;
        let layout = Layout::parse(kind, &mapping).map_err(damage)?;
        let header = &layout.header;
        let named = (header.store, header.number, header.random, header.file_bytes);
        let meant = (store, entry.number, entry.random, entry.file_bytes);
        if layout.header_hash != entry.header_hash || named != meant {
            return Err(damage(FormatError::Hash { what: "the header", offset: 0 }));
        }
        Ok(Self::new(name, mapping, layout))
    }

    fn new(name: FileName, mapping: Mapping, layout: Layout) -> Self {
        let checked = layout.sections().iter().map(|_| AtomicBool::new(false)).collect();
        let checked_blocks = (0..layout.block_count()).map(|_| AtomicBool::new(false)).collect();
        Self { name, mapping, layout, checked, checked_blocks }
    }

    /// A file that was just made and lies in memory alone.
    ///
    /// # Errors
    /// [`Damage`] where the bytes are no such file.
    pub fn in_memory(name: FileName, kind: FileKind, bytes: Vec<u8>) -> Result<Self, Damage> {
        let layout = Layout::parse(kind, &bytes).map_err(|source| Damage { file: name.to_string(), source })?;
        Ok(Self::new(name, Mapping::Heap(bytes), layout))
    }

    /// Which file it is.
    #[must_use]
    pub fn name(&self) -> &FileName {
        &self.name
    }

    /// Its bytes, of which none need have been checked.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.mapping
    }

    /// Lets the system take its bytes out of this process's memory until they are next read.
    pub fn let_go(&self) {
        self.mapping.let_go();
    }

    /// Features of the file that a writer must know and this program does not.
    #[must_use]
    pub fn unknown_features(&self) -> u64 {
        self.layout.header.read_only_compatible
    }

    /// Length of a section, as the section table says.
    #[must_use]
    pub fn section_bytes(&self, kind: SectionKind) -> usize {
        self.layout.section(kind).map_or(0, |range| range.len())
    }

    /// Gives what is wrong with this file its place.
    #[must_use]
    pub fn damage(&self, source: FormatError) -> Damage {
        Damage { file: self.name.to_string(), source }
    }

    /// Everything that is wrong with its bytes: each damaged block or, where there is none, padding that is not zero.
    #[must_use]
    pub fn faults(&self) -> Vec<FormatError> {
        let blocks = 0..self.layout.block_count();
        let faults: Vec<_> = blocks.filter_map(|block| self.layout.check_block(&self.mapping, block).err()).collect();
        if faults.is_empty() { self.layout.check_all(&self.mapping).err().into_iter().collect() } else { faults }
    }

    /// A sentence that says what is wrong, in which sections, and at which offset of the file.
    #[must_use]
    pub fn sentence(&self, error: FormatError) -> String {
        let start = |range: &Range<usize>| range.start as u64;
        let named = |name: &str| self.layout.sections().iter().find(|section| section.kind.name() == name);
        let place = match &error {
            FormatError::Invariant { section, row, .. } => named(section).map(|found| {
                let offset = start(&found.range) + row * u64::from(found.kind.element_bytes());
                ((*section).to_owned(), offset)
            }),
            FormatError::Shape { section, .. } => {
                named(section).map(|found| ((*section).to_owned(), start(&found.range)))
            }
            _ => None,
        };
        match place {
            Some((sections, offset)) => format!("{} (section {sections}; offset {offset})", self.damage(error)),
            None => self.damage(error).to_string(),
        }
    }

    /// Section and offset of an element.
    #[must_use]
    pub fn place(&self, kind: SectionKind, element: usize) -> String {
        let start = self.layout.section(kind).map_or(0, |range| range.start as u64);
        let offset = start.saturating_add((element as u64).saturating_mul(u64::from(kind.element_bytes())));
        format!("section {}; offset {offset}", kind.name())
    }

    /// The sections that it has.
    pub fn sections(&self) -> impl Iterator<Item = SectionKind> {
        self.layout.sections().iter().map(|section| section.kind)
    }

    /// Some bytes of a section, or none where it has not as many. Only the blocks that they lie in are checked, each once.
    ///
    /// # Errors
    /// [`Damage`] where one of these is damaged.
    pub fn part(&self, kind: SectionKind, part: Range<usize>) -> Result<&[u8], Damage> {
        let sections = self.layout.sections();
        let Ok(position) = sections.binary_search_by_key(&kind, |section| section.kind) else { return Ok(&[]) };
        let whole = sections[position].range.clone();
        let range = whole.start.saturating_add(part.start)..whole.start.saturating_add(part.end);
        if range.end > whole.end || range.is_empty() {
            return Ok(&[]);
        }
        if !self.checked[position].load(Ordering::Acquire) && !planted(Planted::ChecksumIgnored) {
            for block in Layout::blocks_of(&range) {
                let known = self.checked_blocks.get(block).is_some_and(|checked| checked.load(Ordering::Acquire));
                if !known {
                    self.layout.check_block(&self.mapping, block).map_err(|error| self.damage(error))?;
                    self.checked_blocks.iter().skip(block).take(1).for_each(|flag| flag.store(true, Ordering::Release));
                }
            }
        }
        Ok(&self.mapping[range])
    }

    /// Checks every byte of the file; sections need no check of their own afterwards.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn check_all(&self) -> Result<(), Damage> {
        if planted(Planted::ChecksumIgnored) {
            return Ok(());
        }
        self.layout.check_all(&self.mapping).map_err(|error| self.damage(error))?;
        self.checked.iter().for_each(|checked| checked.store(true, Ordering::Release));
        Ok(())
    }
}

impl Sections for VerifiedFile {
    fn section(&self, kind: SectionKind) -> Result<&[u8], FormatError> {
        let sections = self.layout.sections();
        let Ok(position) = sections.binary_search_by_key(&kind, |section| section.kind) else { return Ok(&[]) };
        let range = sections[position].range.clone();
        if !self.checked[position].load(Ordering::Acquire) && !planted(Planted::ChecksumIgnored) {
            if planted(Planted::BelievedTooEarly) {
                self.checked[position].store(true, Ordering::Release);
            }
            Layout::blocks_of(&range).try_for_each(|block| self.layout.check_block(&self.mapping, block))?;
            self.checked[position].store(true, Ordering::Release);
        }
        Ok(&self.mapping[range])
    }
}
