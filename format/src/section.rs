//! The sections that a file may have, and how a reader gets at them.

use crate::{FormatError, Record, Rows, TextRef, U16s, U32s};

macro_rules! kinds {
    ($( $variant:ident = $number:literal, $name:literal, $element:literal, $meaning:literal; )*) => {
        /// What a section holds. The number is what the section table says.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum SectionKind {
            $( #[doc = $meaning] $variant = $number, )*
        }

        impl SectionKind {
            /// Every kind, in the order of the numbers, with its meaning.
            pub const ALL: &'static [(Self, &'static str)] = &[$( (Self::$variant, $meaning), )*];

            /// The number in the section table.
            #[must_use]
            pub fn number(self) -> u32 {
                match self { $( Self::$variant => $number, )* }
            }

            /// The name in `SPEC.md` and in errors.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )* }
            }

            /// Size in bytes of one element.
            #[must_use]
            pub fn element_bytes(self) -> u32 {
                match self { $( Self::$variant => $element, )* }
            }

            /// The kind with this number.
            #[must_use]
            pub fn from_number(number: u32) -> Option<Self> {
                match number { $( $number => Some(Self::$variant), )* _ => None }
            }
        }
    };
}

kinds! {
    Strings = 1, "strings", 1, "Names and metadata, UTF-8, referred to by offset and length.";
    Documents = 2, "documents", 96, "One `DocumentRow` a document, ascending by id.";
    Chunks = 3, "chunks", 40, "One `ChunkRow` a chunk, in the order of documents and ordinals.";
    TextBlocks = 4, "text blocks", 16, "One `TextBlock` a block of text.";
    Text = 5, "text", 1, "The documents' texts one after another, in zstd frames.";
    Entities = 6, "entities", 32, "One `EntityRow` an entity, ascending by key.";
    MentionOffsets = 7, "mention offsets", 4, "CSR offsets, chunk slot to mentions.";
    Mentions = 8, "mentions", 16, "One `MentionRow` an entity in a chunk, ascending by entity slot.";
    MentionRanges = 9, "mention ranges", 8, "One `RangeRow` an occurrence.";
    MentioningOffsets = 10, "mentioning offsets", 4, "CSR offsets, entity slot to the chunks that mention it.";
    Mentioning = 11, "mentioning", 4, "Chunk slots, ascending within an entity.";
    RelationOffsets = 12, "relation offsets", 4, "CSR offsets, subject slot to relations.";
    Relations = 13, "relations", 24, "One `RelationRow` a relation, ascending by subject, predicate and object.";
    RelatingOffsets = 14, "relating offsets", 4, "CSR offsets, object slot to relations.";
    Relating = 15, "relating", 4, "Rows of `relations`, ascending within an object.";
    Evidence = 16, "evidence", 32, "One `EvidenceRow` a source of a relation.";
    TermText = 17, "term text", 1, "The terms one after another, UTF-8, in byte order.";
    Terms = 18, "terms", 8, "One `TermRow` a term, in byte order, and one more that marks the ends.";
    PostingChunks = 19, "posting chunks", 4, "Chunk slots, ascending within a term.";
    PostingFrequencies = 20, "posting frequencies", 2, "How often the term stands in the chunk, cut at 65,535.";
    ChunkLengths = 21, "chunk lengths", 4, "Terms of each chunk, repeated ones and thrice-counted title included.";
    Spaces = 22, "spaces", 40, "One `SpaceRow` a vector space, ascending by name.";
    VectorChunks = 23, "vector chunks", 4, "Chunk ids of the vectors, ascending within a space.";
    Vectors = 24, "vectors", 4, "Components, `f32`, row after row.";
    DeadDocuments = 25, "dead documents", 1, "Ids of documents of earlier segments that no longer count, a portable Roaring bitmap.";
    DeadVectors = 26, "dead vectors", 12, "One `DeadVectorRow` a vector of an earlier segment that no longer counts.";
    DocumentIds = 27, "document ids", 4, "Id of each document, ascending; missing where every id of the segment's range has a document.";
    ChunkIds = 28, "chunk ids", 4, "Id of each chunk, ascending; missing where every id of the segment's range has a chunk.";
    DocumentOrder = 29, "document order", 4, "Document slots, ascending by key; missing where slots ascend by key themselves.";
    Spellings = 30, "spellings", 20, "One `SpellingRow` a spelling of an entity, ascending by entity, name and type.";
    Extractions = 31, "extractions", 20, "One `ExtractionRow` an extraction, ascending by chunk and extractor.";
    ExtractedOffsets = 32, "extracted offsets", 4, "CSR offsets, entity slot to extracted.";
    Extracted = 33, "extracted", 24, "One `ExtractedRow` an entity of an extraction, ascending by extraction within an entity.";
    DeadExtractions = 34, "dead extractions", 12, "One `DeadExtractionRow` an extraction of an earlier segment that no longer counts.";
    EdgeLists = 35, "edge lists", 36, "One `EdgeListRow` a document and label, ascending by document and label.";
    ListNodes = 36, "list nodes", 4, "Row of `spellings` of each node, ascending by entity within a list.";
    ListOffsets = 37, "list offsets", 4, "CSR offsets of each list, one after another: node to the edges that start from it.";
    ListTargets = 38, "list targets", 4, "The node that each edge leads to, by its position in the list; ascending within a node.";
    ListWeights = 39, "list weights", 4, "Weights, `f32`, beside the targets; missing for lists whose edges all weigh 1.";
    LinkEntities = 64, "link entities", 36, "One `LinkEntityRow` a live entity, ascending by key.";
    LinkMentionOffsets = 65, "link mention offsets", 4, "CSR offsets, chunk id to entity slots.";
    LinkMentions = 66, "link mentions", 4, "Entity slots, ascending within a chunk.";
    LinkMentioningOffsets = 67, "link mentioning offsets", 4, "CSR offsets, entity slot to chunk ids.";
    LinkMentioning = 68, "link mentioning", 4, "Chunk ids, ascending within an entity.";
    DefinitionOffsets = 69, "definition offsets", 4, "CSR offsets, entity slot to the chunks that define it.";
    Definitions = 70, "definitions", 4, "Chunk ids, ascending within an entity.";
    DefiningOffsets = 71, "defining offsets", 4, "CSR offsets, chunk id to the entities that it defines.";
    Defining = 72, "defining", 4, "Entity slots, ascending within a chunk.";
    LinkWordText = 73, "link word text", 1, "The words of the corpus one after another, UTF-8, in byte order.";
    LinkWords = 74, "link words", 12, "One `LinkWordRow` a word, in byte order.";
    LinkLeads = 75, "link leads", 20, "One `LinkLeadRow` a phrase that a chunk begins with, ascending by key and chunk.";
    LinkPredicates = 76, "link predicates", 8, "One `LinkPredicateRow` a label of relations, in byte order.";
    LinkRelationOffsets = 77, "link relation offsets", 4, "CSR offsets, entity slot to the relations that start from it.";
    LinkRelations = 78, "link relations", 4, "Entity slots that relations lead to, ascending within an entity.";
    LinkRelationPredicates = 79, "link relation predicates", 4, "Rows of `link predicates` beside them, ascending within a target; missing where there is but one label.";
    EdgeOffsets = 80, "edge offsets", 4, "CSR offsets, chunk id to similarity edges.";
    EdgeTargets = 81, "edge targets", 4, "Chunk ids, ascending within a chunk.";
    EdgeWeights = 82, "edge weights", 4, "Similarities, `f32`, beside the targets.";
    EdgeReport = 83, "edge report", 108, "One `EdgeReportRow`: how the edges were made.";
    EdgeRows = 84, "edge rows", 32, "One `EdgeRow` a chunk that was compared, ascending by chunk; empty where edges can't be followed.";
    EdgeSpares = 85, "edge spares", 8, "One `EdgeSpare` a partner that a chunk remembers beside its edges, best first.";
    EdgeCounts = 86, "edge counts", 8, "One `EdgeCount` a similarity near the threshold, ascending.";
    EdgeReserve = 87, "edge reserve", 16, "One `EdgeReserveRow`: what the counts begin with.";
    EdgeOrigins = 88, "edge origins", 1, "A byte a target: which rules made it an edge; missing where all are edges by similarity.";
    EdgeSignals = 89, "edge signals", 24, "One `EdgeSignalRow` a signal, in the order of the rules.";
    LinkRelationWeights = 90, "link relation weights", 4, "Weights, `f32`, beside `link relations`; missing where all are 1.";
    LinkRelatingOffsets = 91, "link relating offsets", 4, "CSR offsets, entity slot to the relations that lead to it.";
    LinkRelating = 92, "link relating", 4, "Entity slots that relations start from, ascending within an entity.";
    LinkRelatingPredicates = 93, "link relating predicates", 4, "Rows of `link predicates` beside them, ascending within a target; missing where there is but one label.";
    LinkRelatingWeights = 94, "link relating weights", 4, "Weights, `f32`, beside `link relating`; missing where all are 1.";
    Manifest = 96, "manifest", 1, "The archived `Manifest`.";
    CommunitySettings = 97, "community settings", 36, "One `CommunitySettingsRow`: how the communities were made.";
    CommunityLevels = 98, "community levels", 16, "One `CommunityLevelRow` a level, the coarsest first.";
    Communities = 99, "communities", 36, "One `CommunityRow` a community, level by level, ascending by first member.";
    CommunityMembers = 100, "community members", 16, "Keys of entities; those of a community at any level stand together.";
    CommunityOrder = 101, "community order", 4, "Places in `community members`, ascending by key.";
    CommunityReports = 102, "community reports", 32, "One `CommunityReportRow` a community.";
    ReportCitations = 103, "report citations", 20, "One `ReportCitationRow` a chunk that a report is drawn from.";
    ReportVectors = 104, "report vectors", 4, "Components, `f32`, of a vector a report; zero where it has none. Missing where none has.";
    VectorIndex = 112, "vector index", 40, "One `VectorIndexRow`: what the index is about.";
    CoveredSegments = 113, "covered segments", 8, "One `CoveredSegmentRow` a segment whose vectors are all nodes, ascending.";
    IndexedChunks = 114, "indexed chunks", 4, "Chunk id of each node, ascending.";
    IndexCodes = 115, "index codes", 1, "Codes of each node, row after row.";
    IndexNeighbours = 116, "index neighbours", 4, "Neighbours of each node, in lists of equal length.";
    IndexEntries = 117, "index entries", 4, "Nodes that walks begin at.";
    IndexErrors = 118, "index errors", 4, "How far each node's vector lies from what its codes stand for at most, `f32`.";
    IndexWalks = 119, "index walks", 8, "One `WalkRow` a slack that was tried, ascending.";
}

/// A file whose sections can be read; a missing section reads as an empty one.
pub trait Sections {
    /// The bytes of a section, their checksums verified.
    ///
    /// # Errors
    /// [`FormatError::Block`] where the bytes are damaged.
    fn section(&self, kind: SectionKind) -> Result<&[u8], FormatError>;

    /// A section of records.
    ///
    /// # Errors
    /// As [`Sections::section`], and [`FormatError::Shape`].
    fn rows<R: Record>(&self, kind: SectionKind) -> Result<Rows<'_, R>, FormatError> {
        Rows::new(kind.name(), self.section(kind)?)
    }

    /// A section of `u32`.
    ///
    /// # Errors
    /// As [`Sections::section`], and [`FormatError::Shape`].
    fn u32s(&self, kind: SectionKind) -> Result<U32s<'_>, FormatError> {
        U32s::new(kind.name(), self.section(kind)?)
    }

    /// A section of `u16`.
    ///
    /// # Errors
    /// As [`Sections::section`], and [`FormatError::Shape`].
    fn u16s(&self, kind: SectionKind) -> Result<U16s<'_>, FormatError> {
        U16s::new(kind.name(), self.section(kind)?)
    }

    /// The string that `place` refers to.
    ///
    /// # Errors
    /// As [`Sections::section`]; [`FormatError::Shape`] where the place lies outside or is not UTF-8.
    fn string(&self, place: TextRef) -> Result<&str, FormatError> {
        let bytes = self.section(SectionKind::Strings)?;
        let start = crate::record::to_usize(place.offset);
        let end = start.checked_add(crate::record::to_usize(place.length));
        let found = end.and_then(|end| bytes.get(start..end)).and_then(|bytes| std::str::from_utf8(bytes).ok());
        found.ok_or_else(|| FormatError::Shape {
            section: SectionKind::Strings.name(),
            expected: "UTF-8 inside the section".into(),
            found: format!("{} bytes at {}", place.length, place.offset),
        })
    }
}
