//! What can be wrong with bytes.

/// Bytes that are not what `SPEC.md` asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file does not begin as a file of this kind does.
    #[error("not a Hedgerow {expected}: the bytes at offset 0 are {found:02x?}")]
    Magic {
        /// The kind of file that was expected.
        expected: &'static str,
        /// What it begins with.
        found: [u8; 8],
    },
    /// A format that this program does not read.
    #[error(
        "written in format {found}, says its header at offset 8, and this program reads format {expected}: use the version of Hedgerow that wrote it, or export and import again"
    )]
    Version {
        /// The version that this program reads.
        expected: u16,
        /// The version of the file.
        found: u16,
    },
    /// A feature that a reader must know and this program doesn't.
    #[error(
        "uses features {found:#x}, says its header at offset 16, that this program does not know: use a newer version of Hedgerow"
    )]
    Features {
        /// The unknown bits.
        found: u64,
    },
    /// More or fewer bytes than there must be.
    #[error("{what} has another length: {expected} bytes expected, {found} found")]
    Length {
        /// The structure.
        what: &'static str,
        /// Bytes that it must have.
        expected: u64,
        /// Bytes that there are.
        found: u64,
    },
    /// A checksum that does not match.
    #[error("{what} at offset {offset} is damaged: its checksum is {expected:#010x}, its bytes give {found:#010x}")]
    Checksum {
        /// The structure that is damaged.
        what: &'static str,
        /// Where it begins in the file.
        offset: u64,
        /// The checksum that was written.
        expected: u32,
        /// The checksum of what is there now.
        found: u32,
    },
    /// A block whose checksum does not match.
    #[error(
        "a block is damaged: its checksum is {expected:#010x}, its bytes give {found:#010x} (section {sections}; offset {offset})"
    )]
    Block {
        /// Names of the sections that have bytes in it.
        sections: String,
        /// Where its bytes begin in the file.
        offset: u64,
        /// The checksum that was written.
        expected: u32,
        /// The checksum of what is there now.
        found: u32,
    },
    /// A hash that does not match: the file is not the one that was meant.
    #[error(
        "the BLAKE3 hash of {what} at offset {offset} is not the one that was written down: another file, or damage"
    )]
    Hash {
        /// The structure that was hashed.
        what: &'static str,
        /// Where it begins in the file.
        offset: u64,
    },
    /// A field whose value cannot be.
    #[error("{what} is wrong: {expected} expected, {found} found")]
    Value {
        /// The field.
        what: &'static str,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A section that a file of this kind must have.
    #[error("the section {section} is missing")]
    Missing {
        /// Name of the section.
        section: &'static str,
    },
    /// A section of a length or form that cannot be.
    #[error("the section {section} is malformed: {expected} expected, {found} found")]
    Shape {
        /// Name of the section.
        section: &'static str,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A numbered invariant of the specification that a row breaks.
    #[error("the section {section} breaks {rule} at row {row}")]
    Invariant {
        /// Name of the section.
        section: &'static str,
        /// Number of the sentence in `SPEC.md`.
        rule: &'static str,
        /// The row.
        row: u64,
    },
    /// More than a file may hold.
    #[error("too much for one file: {what} is limited to {limit}; commit smaller batches")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        limit: u64,
    },
}
