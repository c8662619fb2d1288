//! `HEAD`: which manifest is published.

use crate::checksum::crc32c;
use crate::file::FORMAT_VERSION;
use crate::record::record;
use crate::{FormatError, Record};

/// First bytes of `HEAD`.
pub const HEAD_MAGIC: [u8; 8] = *b"\x89HHEAD\r\n";

record! {
    /// The whole of the file `HEAD`.
    Head: 96 bytes {
        0 magic: [u8; 8] = "`89 48 48 45 41 44 0d 0a`.";
        8 version: u16 = "Version of the format.";
        10 reserved: u16 = "Zero.";
        12 checksum: u32 = "CRC32C of the whole record with this field zero.";
        16 store: [u8; 16] = "UUID of the store.";
        32 generation: u64 = "Generation that is published: first half of the manifest's name.";
        40 random: u64 = "Second half of the manifest's name.";
        48 manifest_bytes: u64 = "Length of the manifest.";
        56 reserved_too: u64 = "Zero.";
        64 manifest_hash: [u8; 32] = "BLAKE3 of the manifest's header.";
    }
}

impl Head {
    /// A head that names this manifest.
    #[must_use]
    pub fn new(store: [u8; 16], generation: u64, random: u64, manifest_bytes: u64, manifest_hash: [u8; 32]) -> Self {
        Self {
            magic: HEAD_MAGIC,
            version: FORMAT_VERSION,
            reserved: 0,
            checksum: 0,
            store,
            generation,
            random,
            manifest_bytes,
            reserved_too: 0,
            manifest_hash,
        }
    }

    /// The file's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        Self { checksum: self.sum(), ..*self }.encode(&mut bytes);
        bytes
    }

    /// Reads and checks the file's bytes.
    ///
    /// # Errors
    /// Says what is wrong: length, magic, version, checksum, reserved bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FormatError> {
        let short = FormatError::Length { what: "HEAD", expected: Self::SIZE as u64, found: bytes.len() as u64 };
        let head = Self::decode(bytes).ok_or(short)?;
        if head.magic != HEAD_MAGIC {
            return Err(FormatError::Magic { expected: "HEAD", found: head.magic });
        }
        if head.version != FORMAT_VERSION {
            return Err(FormatError::Version { expected: FORMAT_VERSION, found: head.version });
        }
        let found = head.sum();
        if found != head.checksum {
            return Err(FormatError::Checksum { what: "HEAD", offset: 0, expected: head.checksum, found });
        }
        if head.reserved != 0 || head.reserved_too != 0 {
            let (expected, found) = ("zero".into(), "other bytes".into());
            return Err(FormatError::Value { what: "a reserved field of HEAD", expected, found });
        }
        Ok(head)
    }

    fn sum(&self) -> u32 {
        let mut bytes = Vec::new();
        Self { checksum: 0, ..*self }.encode(&mut bytes);
        crc32c(&bytes)
    }
}
