//! What a store holds, in words: one node with its edges and origin, and lists.

use crate::error::QueryError;
use crate::query::{CommunityDescription, CommunityLine, Direction, Node, node, rank};
use crate::segment::ExtractionView;
use crate::snapshot::Bounded;
use hedgerow_format::segment::NO_CHUNK;
use hedgerow_format::{ChunkId, DocumentId, EntitySlot, Key};
use roaring::RoaringBitmap;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes that a line of a list takes, beside texts of unusual length.
const LINE_BYTES: u64 = 256;

/// A node: its fields, its edges, where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "node", rename_all = "lowercase")]
pub enum Description {
    /// A document.
    Document {
        /// The caller's key.
        key: String,
        /// Its title.
        title: String,
        /// Where it came from.
        source: String,
        /// Its media type.
        media_type: String,
        /// Its metadata.
        metadata: Map<String, Value>,
        /// Bytes of its text.
        bytes: u32,
        /// Hash of what it was made from, in hexadecimal.
        fingerprint: String,
        /// Keys of its chunks.
        chunks: Vec<String>,
    },
    /// A chunk.
    Chunk {
        /// Its key.
        key: String,
        /// Key of its document.
        document: String,
        /// `text`, `table` or `record`.
        kind: &'static str,
        /// Heading path.
        heading: String,
        /// Its metadata.
        metadata: Map<String, Value>,
        /// First byte in the document's text.
        start: u32,
        /// One past the last byte.
        end: u32,
        /// Its text.
        text: String,
        /// Entities in it.
        mentions: Vec<MentionLine>,
        /// Entities that it defines.
        defines: Vec<String>,
        /// Similar chunks with their similarity, the most similar first.
        similar: Vec<(String, f32)>,
        /// Which extractors have read it.
        extractions: Vec<ExtractionLine>,
    },
    /// A community.
    Community(CommunityDescription),
    /// An entity.
    Entity {
        /// Its fields.
        #[serde(flatten)]
        entity: EntityLine,
        /// What chunks say that it is, as extractors found it.
        descriptions: Vec<DescriptionLine>,
        /// Its edges.
        #[serde(flatten)]
        edges: EntityEdges,
    },
}

/// An extractor that has read a chunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExtractionLine {
    /// Its name.
    pub extractor: String,
    /// Identity of its model and of what that was told.
    pub model: String,
}

/// What a chunk says that an entity is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DescriptionLine {
    /// Key of the chunk.
    pub chunk: String,
    /// Name of the extractor that found it.
    pub extractor: String,
    /// The description.
    pub text: String,
}

/// An entity in a chunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MentionLine {
    /// Its name.
    pub entity: String,
    /// Where it stands, as bytes of the document's text; empty where only the corpus knows the name.
    pub ranges: Vec<(u32, u32)>,
}

/// An entity in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntityLine {
    /// Its name.
    pub name: String,
    /// Its type; may be empty.
    pub kind: String,
    /// Live chunks that mention it.
    pub mentions: u64,
    /// Live chunks that define it.
    pub definitions: u64,
}

/// The edges of an entity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntityEdges {
    /// Chunks that define it.
    pub defined_by: Vec<String>,
    /// Chunks that mention it.
    pub mentioned_in: Vec<String>,
    /// Its relations.
    pub relations: Vec<RelationLine>,
}

/// A relation with its sources.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelationLine {
    /// Name of the entity that it starts from.
    pub subject: String,
    /// Its label.
    pub predicate: String,
    /// Name of the entity that it leads to.
    pub object: String,
    /// Sum over its live sources.
    pub weight: f32,
    /// Keys of the chunks or documents that say it.
    pub evidence: Vec<String>,
}

/// A document in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentLine {
    /// The caller's key.
    pub key: String,
    /// Its title.
    pub title: String,
    /// Number of its chunks.
    pub chunks: u64,
    /// Bytes of its text.
    pub bytes: u32,
}

/// A list of what is live.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Listing {
    /// Documents by key.
    Documents(Vec<DocumentLine>),
    /// Entities, those that most chunks mention first.
    Entities(Vec<EntityLine>),
    /// Relations by subject, predicate and object.
    Relations(Vec<RelationLine>),
    /// Communities level by level, those of higher rank first.
    Communities(Vec<CommunityLine>),
}

impl Bounded<'_> {
    /// See [`Snapshot::describe`](crate::Snapshot::describe).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn describe(&self, node: Node, limit: usize) -> Result<Description, QueryError> {
        self.guard.scope(|| match node {
            Node::Document(id) => self.describe_document(id, limit),
            Node::Chunk(id) => self.describe_chunk(id, limit),
            Node::Community(row) => Ok(Description::Community(self.describe_community(row, limit)?)),
            Node::Entity(key) => {
                let (definitions, mentions) = (self.definitions_of(key)?, self.chunks_mentioning(key)?);
                let keys = |chunks: &[ChunkId]| -> Result<Vec<String>, QueryError> {
                    let first = rank::best(self, chunks.iter().map(|chunk| (*chunk, 0.0)).collect(), limit)?;
                    first.into_iter().map(|(chunk, _)| Ok(self.chunk(chunk)?.key()?)).collect()
                };
                let edges = EntityEdges {
                    defined_by: keys(&definitions)?,
                    mentioned_in: keys(&mentions)?,
                    relations: self.relation_lines(key, limit, false)?,
                };
                let descriptions = self.description_lines(key, limit)?;
                Ok(Description::Entity { entity: self.entity_line(key)?, descriptions, edges })
            }
        })
    }

    /// See [`Snapshot::list_documents`](crate::Snapshot::list_documents).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn list_documents(&self, limit: usize) -> Result<Listing, QueryError> {
        self.guard.scope(|| self.first_documents(limit))
    }

    fn first_documents(&self, limit: usize) -> Result<Listing, QueryError> {
        let mut first: BTreeSet<(&str, DocumentId)> = BTreeSet::new();
        let mut pace = self.guard.pace();
        for id in self.document_ids() {
            pace.step()?;
            if first.len() < limit {
                self.guard.hold_bytes(LINE_BYTES)?;
            }
            first.insert((self.document(id)?.key()?, id));
            if first.len() > limit {
                first.pop_last();
            }
        }
        let line = |(key, id): (&str, DocumentId)| -> Result<DocumentLine, QueryError> {
            let document = self.document(id)?;
            let chunks = document.chunks().count() as u64;
            Ok(DocumentLine {
                key: key.to_owned(),
                title: document.title()?.to_owned(),
                chunks,
                bytes: document.text_bytes(),
            })
        };
        Ok(Listing::Documents(first.into_iter().map(line).collect::<Result<_, _>>()?))
    }

    /// See [`Snapshot::list_entities`](crate::Snapshot::list_entities).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn list_entities(&self, limit: usize) -> Result<Listing, QueryError> {
        self.guard.scope(|| self.first_entities(limit))
    }

    fn first_entities(&self, limit: usize) -> Result<Listing, QueryError> {
        let (mut lines, mut pace) = (Vec::new(), self.guard.pace());
        for key in self.live_entities()? {
            pace.step()?;
            let mark = self.guard.mark();
            let line = self.entity_line(key)?;
            self.guard.release(mark);
            self.guard.hold_bytes((line.name.len() + line.kind.len()) as u64 + LINE_BYTES)?;
            lines.push(line);
        }
        lines.sort_by(|a, b| b.mentions.cmp(&a.mentions).then_with(|| a.name.cmp(&b.name)));
        lines.truncate(limit);
        Ok(Listing::Entities(lines))
    }

    /// See [`Snapshot::list_relations`](crate::Snapshot::list_relations).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn list_relations(&self, limit: usize) -> Result<Listing, QueryError> {
        self.guard.scope(|| self.first_relations(limit))
    }

    fn first_relations(&self, limit: usize) -> Result<Listing, QueryError> {
        let mut pace = self.guard.pace();
        let mut subjects = BTreeSet::new();
        for segment in self.segments() {
            let mut slots = RoaringBitmap::new();
            slots.extend(segment.relations()?.iter().map(|row| row.subject));
            for found in self.edge_lists(segment)? {
                let (_, list) = found?;
                let starting = (0..list.nodes.len()).filter(|node| !list.edges_from(*node).is_empty());
                slots.extend(starting.filter_map(|node| list.entity(node)).map(|slot| slot.0));
            }
            for slot in slots {
                pace.step()?;
                self.guard.hold::<[Key; 2]>(1)?;
                subjects.insert(Key(segment.entity(EntitySlot(slot))?.key));
            }
        }
        let mut named = Vec::with_capacity(subjects.len());
        for subject in subjects {
            pace.step()?;
            let name = self.entity_name(subject)?.unwrap_or_default();
            self.guard.hold_bytes(name.len() as u64 + LINE_BYTES)?;
            named.push((name, subject));
        }
        named.sort_unstable();
        let mut lines = Vec::new();
        // Entities with different keys have different names, so the lines of one subject follow those of the one before it.
        for (_, subject) in named {
            if lines.len() >= limit {
                break;
            }
            lines.extend(self.relation_lines(subject, usize::MAX, true)?);
        }
        lines.sort_by(|a, b| (&a.subject, &a.predicate, &a.object).cmp(&(&b.subject, &b.predicate, &b.object)));
        lines.truncate(limit);
        Ok(Listing::Relations(lines))
    }

    fn describe_document(&self, id: DocumentId, limit: usize) -> Result<Description, QueryError> {
        let document = self.document(id)?;
        let chunks = document.chunks().take(limit).map(|chunk| Ok(self.chunk(chunk)?.key()?));
        Ok(Description::Document {
            key: document.key()?.to_owned(),
            title: document.title()?.to_owned(),
            source: document.source()?.to_owned(),
            media_type: document.media_type()?.to_owned(),
            metadata: node::object(document.metadata()?),
            bytes: document.text_bytes(),
            fingerprint: format!("{:?}", Key(document.fingerprint())),
            chunks: chunks.collect::<Result<_, QueryError>>()?,
        })
    }

    fn describe_chunk(&self, id: ChunkId, limit: usize) -> Result<Description, QueryError> {
        let chunk = self.chunk(id)?;
        let names = |keys: Vec<Key>| -> Result<Vec<String>, QueryError> {
            keys.into_iter().take(limit).map(|key| Ok(self.entity_name(key)?.unwrap_or_default())).collect()
        };
        self.guard.hold_bytes(chunk.range().len() as u64)?;
        let (mut similar, mut pace) = (Vec::new(), self.guard.pace());
        for edges in self.edges() {
            for (target, weight) in edges.neighbours(id)?.filter(|(target, _)| self.is_live(*target)) {
                pace.step()?;
                self.guard.hold_bytes(LINE_BYTES)?;
                similar.push((self.chunk(target)?.key()?, weight));
            }
        }
        similar.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        similar.truncate(limit);
        Ok(Description::Chunk {
            key: chunk.key()?,
            document: chunk.document()?.key()?.to_owned(),
            kind: chunk.kind(),
            heading: chunk.heading()?.to_owned(),
            metadata: node::object(chunk.metadata()?),
            start: chunk.range().start,
            end: chunk.range().end,
            text: chunk.text()?,
            mentions: self.mention_lines(id, limit)?,
            defines: names(self.defined_by(id)?)?,
            similar,
            extractions: self.extraction_lines(id, limit)?,
        })
    }

    fn extraction_lines(&self, id: ChunkId, limit: usize) -> Result<Vec<ExtractionLine>, QueryError> {
        let found = self.extractions(id)?.into_iter().take(limit);
        let line = |view: ExtractionView<'_>| {
            self.guard.hold_bytes(LINE_BYTES)?;
            Ok(ExtractionLine { extractor: view.extractor.to_owned(), model: view.model.to_owned() })
        };
        found.map(line).collect()
    }

    /// Descriptions of an entity, by chunk and extractor.
    fn description_lines(&self, entity: Key, limit: usize) -> Result<Vec<DescriptionLine>, QueryError> {
        let (mut lines, mut pace) = (BTreeSet::new(), self.guard.pace());
        for segment in self.segments() {
            let Some(slot) = segment.find_entity(entity)? else { continue };
            for found in self.extracted(segment, slot)? {
                pace.step()?;
                let (chunk, row) = found?;
                let text = segment.string(row.description)?;
                if text.is_empty() {
                    continue;
                }
                self.guard.hold_bytes(text.len() as u64 + LINE_BYTES)?;
                let extractor = segment.extraction(EntitySlot(row.extraction).index())?.extractor.to_owned();
                lines.insert(DescriptionLine { chunk: self.chunk(chunk)?.key()?, extractor, text: text.to_owned() });
                if lines.len() > limit {
                    lines.pop_last();
                }
            }
        }
        Ok(lines.into_iter().collect())
    }

    fn mention_lines(&self, id: ChunkId, limit: usize) -> Result<Vec<MentionLine>, QueryError> {
        let segment = self.chunk(id)?.segment();
        let mut places: BTreeMap<Key, Vec<(u32, u32)>> = BTreeMap::new();
        for mention in segment.mentions(id)? {
            let ranges = mention.ranges().map(|range| (range.start, range.end)).collect();
            places.insert(Key(segment.entity(mention.entity)?.key), ranges);
        }
        let mut lines = Vec::new();
        for key in self.entities_in(id)? {
            let entity = self.entity_name(key)?.unwrap_or_default();
            let mut ranges = places.remove(&key).unwrap_or_default();
            if ranges.is_empty() {
                ranges.extend(self.extracted_place(id, key)?);
            }
            lines.push(MentionLine { entity, ranges });
        }
        // In the order of the text; names that only the corpus knows come last.
        let place = |line: &MentionLine| line.ranges.first().map_or(u32::MAX, |range| range.0);
        lines.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.entity.cmp(&b.entity)));
        lines.truncate(limit);
        Ok(lines)
    }

    /// Where an extraction of a chunk found an entity.
    fn extracted_place(&self, chunk: ChunkId, entity: Key) -> Result<Option<(u32, u32)>, QueryError> {
        let mut pace = self.guard.pace();
        for segment in self.segments() {
            let rows = segment.extractions_of(chunk)?;
            let Some(slot) = segment.find_entity(entity)?.filter(|_| !rows.is_empty()) else { continue };
            for found in self.extracted(segment, slot)? {
                pace.step()?;
                let (found_in, row) = found?;
                if found_in == chunk && row.start < row.end {
                    return Ok(Some((row.start, row.end)));
                }
            }
        }
        Ok(None)
    }

    /// Keys of all live entities, ascending.
    fn live_entities(&self) -> Result<Vec<Key>, QueryError> {
        if let Some(links) = self.links_in_step() {
            let rows = links.entities()?;
            self.guard.hold::<Key>(rows.len())?;
            return Ok(rows.iter().map(|row| Key(row.key)).collect());
        }
        let mut keys = BTreeSet::new();
        for segment in self.segments() {
            let rows = segment.entities()?;
            self.guard.poll()?;
            self.guard.hold::<[Key; 3]>(rows.len())?;
            keys.extend(rows.iter().map(|row| Key(row.key)));
        }
        let mut live = Vec::with_capacity(keys.len());
        for key in keys {
            if self.is_live_entity(key)? {
                live.push(key);
            }
        }
        Ok(live)
    }

    fn entity_line(&self, key: Key) -> Result<EntityLine, QueryError> {
        let (name, kind) = self.entity_name_and_kind(key)?.unwrap_or_default();
        Ok(EntityLine {
            name,
            kind,
            mentions: self.chunks_mentioning(key)?.len() as u64,
            definitions: self.definitions_of(key)?.len() as u64,
        })
    }

    /// Relations of an entity, or only those that start from it.
    fn relation_lines(&self, entity: Key, limit: usize, starting: bool) -> Result<Vec<RelationLine>, QueryError> {
        let name = self.entity_name(entity)?.unwrap_or_default();
        let (mut lines, mut pace) = (Vec::new(), self.guard.pace());
        let direction = if starting { Direction::Out } else { Direction::Both };
        for ((predicate, other, reversed), relation) in self.relations_of(entity, direction)? {
            if (reversed && starting) || lines.len() >= limit {
                continue;
            }
            let mut evidence = BTreeSet::new();
            self.guard.hold_bytes((relation.sources.len() as u64 + 1).saturating_mul(LINE_BYTES))?;
            for source in relation.sources {
                pace.step()?;
                evidence.insert(match source.chunk {
                    NO_CHUNK => self.document(DocumentId(source.document))?.key()?.to_owned(),
                    chunk => self.chunk(ChunkId(chunk))?.key()?,
                });
            }
            let other = self.entity_name(other)?.unwrap_or_default();
            let (subject, object) = if reversed { (other, name.clone()) } else { (name.clone(), other) };
            let evidence = evidence.into_iter().collect();
            let predicate = predicate.to_owned();
            lines.push(RelationLine { subject, predicate, object, weight: relation.weight, evidence });
        }
        Ok(lines)
    }
}
