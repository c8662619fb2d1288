//! The pack: one generation in one file.

use crate::checksum::{crc32c, hash};
use crate::file::{FORMAT_VERSION, FileKind, HEADER_BYTES, SECTION_ALIGNMENT, fingerprint};
use crate::head::Head;
use crate::manifest::{FileEntry, Manifest};
use crate::record::record;
use crate::{FormatError, Record, Rows, limits};
use std::ops::Range;

/// First bytes of a pack.
pub const PACK_MAGIC: [u8; 8] = *b"\x89HPACK\r\n";

record! {
    /// The first 256 bytes of a pack.
    PackHeader: 256 bytes {
        0 magic: [u8; 8] = "`89 48 50 41 43 4b 0d 0a`.";
        8 version: u16 = "Version of the format; a reader refuses any other.";
        10 header_bytes: u16 = "256.";
        12 reserved: u32 = "Zero.";
        16 directory: u64 = "Offset of the directory: 256.";
        24 directory_bytes: u64 = "Length of the directory: 40 bytes a file.";
        32 file_bytes: u64 = "Length of the whole pack.";
        40 layout: u64 = "As in the header of a file (§4.1).";
        48 directory_hash: [u8; 32] = "BLAKE3 of the directory.";
        80 head: [u8; 96] = "`HEAD` of the generation (§9).";
        176 reserved_too: [u8; 76] = "Zero.";
        252 checksum: u32 = "CRC32C of the 252 bytes before.";
    }
}

record! {
    /// One file of a pack.
    PackEntry: 40 bytes {
        0 kind: u32 = "As in the file's header: 1 segment, 2 links, 3 edges, 4 manifest.";
        4 reserved: u32 = "Zero.";
        8 number: u64 = "First half of its name.";
        16 random: u64 = "Second half of its name.";
        24 offset: u64 = "First byte in the pack, a multiple of 64.";
        32 length: u64 = "Its length in bytes.";
    }
}

/// What a pack holds and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Pack {
    /// Which manifest is published.
    pub head: Head,
    entries: Vec<PackEntry>,
    file_bytes: u64,
}

impl Pack {
    /// Where the files of a generation go in a pack: the manifest that `head` names, and every file that it names itself.
    ///
    /// # Errors
    /// [`FormatError::Limit`] where they are longer together than a file can be.
    pub fn of(head: Head, manifest: &Manifest) -> Result<Self, FormatError> {
        let mut entries: Vec<PackEntry> = wanted(&head, manifest).collect();
        entries.sort_unstable_by_key(|entry| (entry.kind, entry.number));
        let limit = || FormatError::Limit { what: "the length of a pack", limit: u64::MAX };
        let mut end = directory_end(entries.len()).ok_or_else(limit)?;
        for entry in &mut entries {
            entry.offset = end.checked_next_multiple_of(SECTION_ALIGNMENT).ok_or_else(limit)?;
            end = entry.offset.checked_add(entry.length).ok_or_else(limit)?;
        }
        Ok(Self { head, entries, file_bytes: end })
    }

    /// Reads and checks header and directory of the pack `bytes`. Reads nothing else.
    ///
    /// # Errors
    /// Says what is wrong, in this order: length, magic, version, checksum, fields, lengths, hash, rules S-PCK-1 to 3.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let header = check_header(bytes)?;
        let head = Head::from_bytes(&header.head)?;
        let outside = || FormatError::Length { what: "the directory", expected: header.directory_bytes, found: 0 };
        let end = usize::try_from(HEADER_BYTES.saturating_add(header.directory_bytes)).map_err(|_| outside())?;
        let directory = bytes.get(256..end).ok_or_else(outside)?;
        if hash(&[directory]) != header.directory_hash {
            return Err(FormatError::Hash { what: "the directory", offset: HEADER_BYTES });
        }
        let rows = Rows::<PackEntry>::new("directory", directory)?;
        let pack = Self { head, entries: rows.iter().collect(), file_bytes: header.file_bytes };
        pack.check_directory()?;
        Ok(pack)
    }

    /// Header and directory: what comes before the padding of the first file.
    #[must_use]
    pub fn front(&self) -> Vec<u8> {
        let mut directory = Vec::new();
        for entry in &self.entries {
            entry.encode(&mut directory);
        }
        let mut header = PackHeader {
            magic: PACK_MAGIC,
            version: FORMAT_VERSION,
            header_bytes: 256,
            reserved: 0,
            directory: HEADER_BYTES,
            directory_bytes: directory.len() as u64,
            file_bytes: self.file_bytes,
            layout: fingerprint(),
            directory_hash: hash(&[&directory]),
            head: self.head.to_bytes().try_into().unwrap_or([0; 96]),
            reserved_too: [0; 76],
            checksum: 0,
        };
        header.checksum = sum(&header);
        let mut front = Vec::new();
        header.encode(&mut front);
        front.append(&mut directory);
        front
    }

    /// The files, in the order in which they lie.
    #[must_use]
    pub fn entries(&self) -> &[PackEntry] {
        &self.entries
    }

    /// Length of the whole pack.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Where a file lies, if the pack has it.
    #[must_use]
    pub fn find(&self, kind: FileKind, number: u64, random: u64) -> Option<Range<usize>> {
        let key = |entry: &PackEntry| (entry.kind, entry.number);
        let found = self.entries.binary_search_by_key(&(kind.number(), number), key).ok()?;
        let entry = self.entries.get(found).filter(|entry| entry.random == random)?;
        let end = entry.offset.checked_add(entry.length)?;
        Some(usize::try_from(entry.offset).ok()?..usize::try_from(end).ok()?)
    }

    /// Checks what reading doesn't: that the files are those of the manifest, and that padding is zero.
    ///
    /// # Errors
    /// [`FormatError::Invariant`] with S-PCK-4 or S-PCK-5.
    pub fn check_all(&self, bytes: &[u8], manifest: &Manifest) -> Result<(), FormatError> {
        self.check_padding(bytes)?;
        if *self == Self::of(self.head, manifest)? { Ok(()) } else { Err(broken("S-PCK-5", self.entries.len())) }
    }

    fn check_padding(&self, bytes: &[u8]) -> Result<(), FormatError> {
        let mut end = directory_end(self.entries.len()).unwrap_or(u64::MAX);
        for (row, entry) in self.entries.iter().enumerate() {
            let padding = usize::try_from(end).ok().zip(usize::try_from(entry.offset).ok());
            let padding = padding.and_then(|(start, end)| bytes.get(start..end));
            if padding.is_none_or(|padding| padding.iter().any(|byte| *byte != 0)) {
                return Err(broken("S-PCK-4", row));
            }
            end = entry.offset.saturating_add(entry.length);
        }
        Ok(())
    }

    fn check_directory(&self) -> Result<(), FormatError> {
        let mut end = directory_end(self.entries.len());
        let mut before = None;
        for (row, entry) in self.entries.iter().enumerate() {
            let key = Some((entry.kind, entry.number));
            if FileKind::from_number(entry.kind).is_none() || entry.reserved != 0 || key <= before {
                return Err(broken("S-PCK-1", row));
            }
            before = key;
            let next = end.and_then(|end| end.checked_next_multiple_of(SECTION_ALIGNMENT));
            if next != Some(entry.offset) {
                return Err(broken("S-PCK-3", row));
            }
            end = entry.offset.checked_add(entry.length);
        }
        let is_manifest = |entry: &&PackEntry| entry.kind == FileKind::Manifest.number();
        let manifests: Vec<&PackEntry> = self.entries.iter().filter(is_manifest).collect();
        let named = (self.head.generation, self.head.random, self.head.manifest_bytes);
        if !matches!(manifests[..], [found] if (found.number, found.random, found.length) == named) {
            return Err(broken("S-PCK-2", self.entries.len()));
        }
        if end != Some(self.file_bytes) {
            return Err(broken("S-PCK-3", self.entries.len()));
        }
        Ok(())
    }
}

/// The files of a generation, without a place.
fn wanted<'m>(head: &Head, manifest: &'m Manifest) -> impl Iterator<Item = PackEntry> + use<'m> {
    let entry = |kind: u32, file: &FileEntry| PackEntry {
        kind,
        reserved: 0,
        number: file.number,
        random: file.random,
        offset: 0,
        length: file.file_bytes,
    };
    let published = FileEntry {
        number: head.generation,
        random: head.random,
        file_bytes: head.manifest_bytes,
        header_hash: head.manifest_hash,
    };
    let segments = manifest.segments.iter().map(move |segment| entry(FileKind::Segment.number(), &segment.file));
    let projections = manifest.projections.iter().map(move |projection| entry(projection.kind, &projection.file));
    segments.chain(projections).chain(std::iter::once(entry(FileKind::Manifest.number(), &published)))
}

fn check_header(bytes: &[u8]) -> Result<PackHeader, FormatError> {
    let short = FormatError::Length { what: "the pack", expected: HEADER_BYTES, found: bytes.len() as u64 };
    let header = bytes.get(..256).and_then(PackHeader::decode).ok_or(short)?;
    if header.magic != PACK_MAGIC {
        return Err(FormatError::Magic { expected: "pack", found: header.magic });
    }
    if header.version != FORMAT_VERSION {
        return Err(FormatError::Version { expected: FORMAT_VERSION, found: header.version });
    }
    let found = sum(&header);
    if found != header.checksum {
        return Err(FormatError::Checksum { what: "the header", offset: 0, expected: header.checksum, found });
    }
    let value = |what, expected: &str, found: String| FormatError::Value { what, expected: expected.into(), found };
    if header.header_bytes != 256 || header.reserved != 0 || header.reserved_too != [0; 76] {
        return Err(value("the header's reserved bytes", "zeros", "other bytes".into()));
    }
    if header.layout != fingerprint() {
        return Err(value("the layout fingerprint", "that of this program", format!("{:#x}", header.layout)));
    }
    if header.directory != HEADER_BYTES {
        return Err(value("the directory's offset", "256", header.directory.to_string()));
    }
    if header.directory_bytes > limits::DIRECTORY_BYTES {
        return Err(FormatError::Limit { what: "the directory of a pack", limit: limits::DIRECTORY_BYTES });
    }
    if header.file_bytes != bytes.len() as u64 {
        return Err(FormatError::Length { what: "the pack", expected: header.file_bytes, found: bytes.len() as u64 });
    }
    Ok(header)
}

fn sum(header: &PackHeader) -> u32 {
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    crc32c(bytes.get(..252).unwrap_or_default())
}

fn directory_end(entries: usize) -> Option<u64> {
    (entries as u64).checked_mul(PackEntry::SIZE as u64)?.checked_add(HEADER_BYTES)
}

fn broken(rule: &'static str, row: usize) -> FormatError {
    FormatError::Invariant { section: "directory", rule, row: row as u64 }
}
