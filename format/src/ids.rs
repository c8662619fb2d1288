//! Numbers that stand for rows: store-wide ids, and slots that mean something inside one file only.

macro_rules! number {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The number as an index of an array.
            #[must_use]
            pub fn index(self) -> usize {
                crate::record::to_usize(self.0)
            }
        }
    };
}
number!(
    /// Store-wide number of a document, handed out at its commit and never reused.
    DocumentId
);
number!(
    /// Store-wide number of a chunk, handed out at its commit and never reused.
    ChunkId
);
number!(
    /// Dense position of a chunk inside one segment.
    ChunkSlot
);
number!(
    /// Dense position of an entity inside one file.
    EntitySlot
);
