//! Keys: 128 bits of BLAKE3 over what a thing is called, the same on every machine and for ever.

/// What stands for a document or an entity in files, whatever the order of insertion.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// Key of the document that the caller calls `name`.
    #[must_use]
    pub fn of_document(name: &str) -> Self {
        Self::of(b"document\0", name)
    }

    /// Key of the entity with the name key `name` (see [`crate::name::name_key_text`]).
    #[must_use]
    pub fn of_entity(name: &str) -> Self {
        Self::of(b"entity\0", name)
    }

    fn of(domain: &[u8], name: &str) -> Self {
        let hash = crate::checksum::hash(&[domain, name.as_bytes()]);
        Self(hash.first_chunk().copied().unwrap_or_default())
    }
}

impl Ord for Key {
    /// The order of bytes; comparing numbers is several times as fast.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        u128::from_be_bytes(self.0).cmp(&u128::from_be_bytes(other.0))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
