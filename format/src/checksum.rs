//! The two checksums: CRC32C finds damage, BLAKE3 binds files to what names them.

/// Bytes of a file covered by one CRC32C.
pub const BLOCK_BYTES: u64 = 64 * 1024;

/// CRC32C (Castagnoli) of `bytes`.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes);
    u32::try_from(sum).unwrap_or(u32::MAX)
}

/// BLAKE3 of the parts, one after another.
#[must_use]
pub fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}
