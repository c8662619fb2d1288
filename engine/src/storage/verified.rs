//! A file of the store whose every block is checked before it is first believed.

use crate::error::{Damage, OpenError, StorageError};
use crate::planted::{Planted, planted};
use crate::storage::{Access, FileName, Mapping, Vfs, at};
use hedgerow_format::FormatError;
use hedgerow_format::file::{FileKind, Layout};
use hedgerow_format::manifest::FileEntry;
use hedgerow_format::section::{SectionKind, Sections};
use std::sync::atomic::{AtomicBool, Ordering};

/// An open, mapped file with its header and tables checked.
#[derive(Debug)]
pub struct VerifiedFile {
    name: FileName,
    mapping: Mapping,
    layout: Layout,
    /// One flag a section: its blocks have been checked.
    checked: Vec<AtomicBool>,
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
        let checked = layout.sections().iter().map(|_| AtomicBool::new(false)).collect();
        Ok(Self { name, mapping, layout, checked })
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

    /// Checks every byte of the file.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn check_all(&self) -> Result<(), Damage> {
        if planted(Planted::ChecksumIgnored) {
            return Ok(());
        }
        self.layout.check_all(&self.mapping).map_err(|error| self.damage(error))
    }
}

impl Sections for VerifiedFile {
    fn section(&self, kind: SectionKind) -> Result<&[u8], FormatError> {
        let sections = self.layout.sections();
        let Ok(position) = sections.binary_search_by_key(&kind, |section| section.kind) else { return Ok(&[]) };
        let range = sections[position].range.clone();
        if !self.checked[position].load(Ordering::Acquire) && !planted(Planted::ChecksumIgnored) {
            Layout::blocks_of(&range).try_for_each(|block| self.layout.check_block(&self.mapping, block))?;
            self.checked[position].store(true, Ordering::Release);
        }
        Ok(&self.mapping[range])
    }
}
