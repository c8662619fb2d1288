//! What similarity edges join.

/// What the two chunks of a pair are. A chunk that is no table, text or record, counts as one of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PairKind {
    /// Neither is a table.
    DocumentDocument,
    /// Both are tables.
    TableTable,
    /// One of them is a table.
    TableDocument,
}

impl PairKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::DocumentDocument, Self::TableTable, Self::TableDocument];

    /// The number in files.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::DocumentDocument => 0,
            Self::TableTable => 1,
            Self::TableDocument => 2,
        }
    }

    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DocumentDocument => "document-document",
            Self::TableTable => "table-table",
            Self::TableDocument => "table-document",
        }
    }

    /// The kind of a pair of chunks, by whether each is a table.
    #[must_use]
    pub fn of(tables: [bool; 2]) -> Self {
        match tables {
            [false, false] => Self::DocumentDocument,
            [true, true] => Self::TableTable,
            _ => Self::TableDocument,
        }
    }

    /// How many pairs of this kind so many chunks make, of which so many are tables.
    #[must_use]
    pub fn pairs(self, chunks: u64, tables: u64) -> u64 {
        let documents = chunks.saturating_sub(tables);
        let among = |count: u64| count.saturating_mul(count.saturating_sub(1)) / 2;
        match self {
            Self::DocumentDocument => among(documents),
            Self::TableTable => among(tables),
            Self::TableDocument => tables.saturating_mul(documents),
        }
    }
}
