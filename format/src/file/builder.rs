//! Writes a file from front to back; only the header, written last, goes back to the front.

use crate::checksum::{BLOCK_BYTES, crc32c, hash};
use crate::file::{FORMAT_VERSION, FileHeader, FileKind, HEADER_BYTES, MAGIC, SECTION_ALIGNMENT, SectionEntry};
use crate::section::SectionKind;
use crate::{FormatError, Record};
use std::io::{self, Write};

/// What a file is called and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    /// What it is.
    pub kind: FileKind,
    /// UUID of the store.
    pub store: [u8; 16],
    /// First half of its name.
    pub number: u64,
    /// Second half of its name.
    pub random: u64,
}

/// A file whose sections are written one after another.
#[derive(Debug)]
pub struct FileBuilder<W> {
    out: W,
    identity: FileIdentity,
    position: u64,
    block: Vec<u8>,
    blocks: Vec<u8>,
    sections: Vec<SectionEntry>,
}

/// A file that is complete but for its header.
#[derive(Clone, Debug)]
pub struct Finished {
    /// To be written over the first bytes of the file.
    pub header: Vec<u8>,
    /// BLAKE3 of the header, which the manifest holds.
    pub header_hash: [u8; 32],
    /// Length of the file.
    pub file_bytes: u64,
}

impl<W: Write> FileBuilder<W> {
    /// Begins a file; `out` stands at its first byte.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W, identity: FileIdentity) -> io::Result<Self> {
        let header = [0; 256];
        out.write_all(&header)?;
        // The header's place belongs to the first block but not to its checksum: it is written when all is known.
        Ok(Self { out, identity, position: HEADER_BYTES, block: Vec::new(), blocks: Vec::new(), sections: Vec::new() })
    }

    /// Writes a section that lies in memory; an empty one is left out.
    ///
    /// # Errors
    /// Those of `out`; [`io::ErrorKind::InvalidInput`] where the kinds don't increase.
    pub fn section(&mut self, kind: SectionKind, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.begin(kind)?;
        self.put(bytes)
    }

    /// Begins a section whose bytes follow through [`FileBuilder::put`].
    ///
    /// # Errors
    /// As [`FileBuilder::section`].
    pub fn begin(&mut self, kind: SectionKind) -> io::Result<()> {
        if self.sections.last().is_some_and(|last| last.kind >= kind.number()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "sections must be written in the order of kinds"));
        }
        self.pad()?;
        self.sections.push(SectionEntry {
            kind: kind.number(),
            element_bytes: kind.element_bytes(),
            offset: self.position,
            length: 0,
            reserved: 0,
        });
        Ok(())
    }

    /// Appends to the section that was begun last.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(section) = self.sections.last_mut() {
            section.length = section.length.saturating_add(bytes.len() as u64);
        }
        self.append(bytes)
    }

    /// Writes the tables and gives the header, which the caller writes at the file's first byte, and `out`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self) -> io::Result<(Finished, W)> {
        self.pad()?;
        let section_table = self.position;
        if !self.block.is_empty() || self.blocks.is_empty() {
            self.close_block();
        }
        let mut table = Vec::new();
        for section in &self.sections {
            section.encode(&mut table);
        }
        self.out.write_all(&table)?;
        self.out.write_all(&self.blocks)?;
        let file_bytes = section_table.saturating_add(table.len() as u64).saturating_add(self.blocks.len() as u64);
        let mut header = Vec::new();
        FileHeader {
            magic: MAGIC,
            version: FORMAT_VERSION,
            header_bytes: 256,
            kind: self.identity.kind.number(),
            incompatible: 0,
            read_only_compatible: 0,
            compatible: 0,
            store: self.identity.store,
            number: self.identity.number,
            random: self.identity.random,
            file_bytes,
            section_table,
            sections: u32::try_from(self.sections.len()).unwrap_or(u32::MAX),
            blocks: u32::try_from(self.blocks.len() / 4).map_err(|_| too_long())?,
            tables_hash: hash(&[&table, &self.blocks]),
            layout: crate::file::layout::fingerprint(),
            reserved: [0; 116],
            checksum: 0,
        }
        .encode(&mut header);
        header.truncate(252);
        header.extend_from_slice(&crc32c(&header).to_le_bytes());
        let header_hash = hash(&[&header]);
        Ok((Finished { header, header_hash, file_bytes }, self.out))
    }

    fn pad(&mut self) -> io::Result<()> {
        let end = self.position.checked_next_multiple_of(SECTION_ALIGNMENT).ok_or_else(too_long)?;
        let zeros = [0_u8; 64];
        let missing = usize::try_from(end.saturating_sub(self.position)).unwrap_or(0);
        self.append(zeros.get(..missing).unwrap_or_default())
    }

    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        while !bytes.is_empty() {
            let room = BLOCK_BYTES.saturating_sub(self.position.checked_rem(BLOCK_BYTES).unwrap_or(0));
            let (now, later) = bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            self.block.extend_from_slice(now);
            self.position = self.position.saturating_add(now.len() as u64);
            if self.position.is_multiple_of(BLOCK_BYTES) {
                self.close_block();
            }
            bytes = later;
        }
        Ok(())
    }

    fn close_block(&mut self) {
        self.blocks.extend_from_slice(&crc32c(&self.block).to_le_bytes());
        self.block.clear();
    }
}

fn too_long() -> io::Error {
    let limit = FormatError::Limit { what: "the length of a file", limit: u64::from(u32::MAX) * BLOCK_BYTES };
    io::Error::new(io::ErrorKind::FileTooLarge, limit)
}
