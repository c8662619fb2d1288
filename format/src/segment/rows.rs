//! The fixed records of a segment's sections.

use crate::TextRef;
use crate::record::record;

/// In an [`EvidenceRow`]: the evidence is the document as a whole.
pub const NO_CHUNK: u32 = u32::MAX;

/// In an [`EvidenceRow`]: the source is part of no extraction.
pub const NO_EXTRACTION: u32 = u32::MAX;

/// In an [`EdgeListRow`]: all edges of the list weigh 1.
pub const NO_WEIGHTS: u32 = u32::MAX;

/// How an entity comes to stand in a chunk's mentions.
pub mod mention_flags {
    /// At least one occurrence that is surely a name.
    pub const CERTAIN: u16 = 1;
    /// An occurrence as one capitalised word at the start of a sentence.
    pub const SENTENCE_START: u16 = 2;
    /// The title of the document, without what stands in parentheses at its end.
    pub const TITLE: u16 = 4;
    /// The part of the title before its first comma.
    pub const TITLE_PART: u16 = 8;
    /// An end of a relation that the chunk is evidence of.
    pub const RELATED: u16 = 16;
    /// Something that the chunk defines: a heading, a term, a symbol, the name of the file.
    pub const DEFINES: u16 = 32;
    /// All of them.
    pub const ALL: u16 = 63;
}

record! {
    /// A document.
    DocumentRow: 96 bytes {
        0 key: [u8; 16] = "Key: first 16 bytes of BLAKE3 of `document`, a zero byte and the caller's name for it.";
        16 fingerprint: [u8; 16] = "First 16 bytes of BLAKE3 over the document as it was given and the identity of what read it.";
        32 name: TextRef = "The caller's name for it.";
        40 title: TextRef = "Title; may be empty.";
        48 source: TextRef = "Where it came from; may be empty.";
        56 media_type: TextRef = "Media type, such as `text/plain`.";
        64 metadata: TextRef = "A JSON object, or empty for none.";
        72 text_offset: u64 = "First byte of its text in the segment's text.";
        80 text_bytes: u32 = "Bytes of its text.";
        84 first_chunk: u32 = "Slot of its first chunk.";
        88 chunks: u32 = "Number of its chunks.";
        92 reserved: u32 = "Zero.";
    }
}

record! {
    /// A chunk.
    ChunkRow: 40 bytes {
        0 document: u32 = "Slot of its document.";
        4 ordinal: u32 = "Position among the document's chunks, from 0.";
        8 start: u32 = "First byte in the document's text.";
        12 end: u32 = "One past its last byte in the document's text.";
        16 kind: u32 = "0 text, 1 table, 2 record.";
        20 reserved: u32 = "Zero.";
        24 heading: TextRef = "Heading path, its parts joined by ` > `; may be empty.";
        32 metadata: TextRef = "A JSON object, or empty for none.";
    }
}

record! {
    /// An entity that the segment's documents speak of.
    EntityRow: 32 bytes {
        0 key: [u8; 16] = "Key: first 16 bytes of BLAKE3 of `entity`, a zero byte and the name key.";
        16 name: TextRef = "The best of its spellings.";
        24 kind: TextRef = "The best of their types; may be empty.";
    }
}

record! {
    /// A way in which a document writes an entity, with the type that it gives it.
    SpellingRow: 20 bytes {
        0 entity: u32 = "Slot of the entity.";
        4 name: TextRef = "The name as it was given.";
        12 kind: TextRef = "The type; may be empty.";
    }
}

record! {
    /// An entity in a chunk.
    MentionRow: 16 bytes {
        0 entity: u32 = "Slot of the entity.";
        4 spelling: u32 = "Row of `spellings` that the chunk writes it in.";
        8 first_range: u32 = "First of its occurrences in `mention ranges`.";
        12 ranges: u16 = "Number of occurrences, cut at 65,535; 0 for a title or the end of a relation.";
        14 flags: u16 = "1 certain, 2 at a sentence start, 4 title, 8 part of the title, 16 end of a relation, 32 defined by the chunk.";
    }
}

record! {
    /// Bytes of a document's text.
    RangeRow: 8 bytes {
        0 start: u32 = "First byte.";
        4 end: u32 = "One past the last byte.";
    }
}

record! {
    /// A directed, labelled edge between entities.
    RelationRow: 24 bytes {
        0 subject: u32 = "Slot of the entity it starts from.";
        4 object: u32 = "Slot of the entity it leads to.";
        8 predicate: TextRef = "Its label.";
        16 first_evidence: u32 = "First of its sources in `evidence`.";
        20 evidence: u32 = "Number of its sources, at least 1.";
    }
}

record! {
    /// A source of a relation; its weight is the sum over the live ones.
    EvidenceRow: 32 bytes {
        0 document: u32 = "Id of the document, of this segment or an earlier one.";
        4 chunk: u32 = "Id of the chunk, or 4,294,967,295 for the document as a whole.";
        8 weight: f32 = "Finite and above zero.";
        12 start: u32 = "First byte, in the document's text, of what says it.";
        16 end: u32 = "One past the last byte; equal to `start` where unknown.";
        20 subject_spelling: u32 = "Row of `spellings` that the source writes the subject in.";
        24 object_spelling: u32 = "Row of `spellings` that the source writes the object in.";
        28 extraction: u32 = "Row of `extractions` that the source is part of, or 4,294,967,295 for none.";
    }
}

record! {
    /// What an extractor found in a chunk, bound to it: its entities and relations name its row.
    ExtractionRow: 20 bytes {
        0 chunk: u32 = "Id of the chunk, of this segment or an earlier one.";
        4 extractor: TextRef = "Name of the extractor; not empty.";
        12 model: TextRef = "Identity of the model and of what it was told; may be empty.";
    }
}

record! {
    /// An entity of an extraction.
    ExtractedRow: 24 bytes {
        0 extraction: u32 = "Row of `extractions`.";
        4 spelling: u32 = "Row of `spellings` that the extraction writes it in.";
        8 description: TextRef = "What the chunk says that it is; may be empty.";
        16 start: u32 = "First byte, in the document's text, of its name there.";
        20 end: u32 = "One past the last byte; equal to `start` where unknown.";
    }
}

record! {
    /// An extraction of an earlier segment that no longer counts.
    DeadExtractionRow: 12 bytes {
        0 extractor: TextRef = "Name of the extractor.";
        8 chunk: u32 = "Id of the chunk.";
    }
}

record! {
    /// A graph of named nodes that a document states as a whole: its edges of one label.
    EdgeListRow: 36 bytes {
        0 document: u32 = "Slot of the document.";
        4 predicate: TextRef = "Label of its edges; not empty.";
        12 first_node: u32 = "First of its nodes in `list nodes`.";
        16 nodes: u32 = "Number of its nodes, at least 1.";
        20 first_offset: u32 = "First of its offsets in `list offsets`, of which it has one more than nodes.";
        24 first_edge: u32 = "First of its edges in `list targets`.";
        28 edges: u32 = "Number of its edges, at least 1.";
        32 first_weight: u32 = "First of its weights in `list weights`, or 4,294,967,295 where all edges weigh 1.";
    }
}

record! {
    /// A term; it ends where the next row's begins, and so do its postings. The last row is no term.
    TermRow: 8 bytes {
        0 text: u32 = "First of its bytes in `term text`.";
        4 first_posting: u32 = "First of its postings.";
    }
}

record! {
    /// The vectors that a segment has in one vector space.
    SpaceRow: 40 bytes {
        0 name: TextRef = "Name of the space.";
        8 model: TextRef = "Identity of the model.";
        16 dimensions: u32 = "Components of a vector, 1 to 4,096.";
        20 metric: u16 = "0 cosine: the vectors have length 1.";
        22 element: u16 = "0 `f32`.";
        24 first_vector: u32 = "First of its rows in `vector chunks`.";
        28 vectors: u32 = "Number of its vectors.";
        32 first_component: u64 = "First of its components in `vectors`.";
    }
}

record! {
    /// A vector of an earlier segment that no longer counts.
    DeadVectorRow: 12 bytes {
        0 space: TextRef = "Name of the space.";
        8 chunk: u32 = "Id of the chunk.";
    }
}
