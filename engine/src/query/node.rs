//! Nodes as people type them, and which chunks a filter lets through.

use crate::error::{Damage, QueryError};
use crate::query::filter::{Fields, Filter, Neighbourhood, TextField};
use crate::query::{ChunkSet, ExpandOptions};
use crate::segment::Segment;
use crate::snapshot::{Bounded, ChunkView, DocumentView};
use hedgerow_format::{ChunkId, DocumentId, EntitySlot, Key, name};
use roaring::RoaringBitmap;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// A node of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A document.
    Document(DocumentId),
    /// A chunk.
    Chunk(ChunkId),
    /// An entity, by its key.
    Entity(Key),
    /// A community, by its row.
    Community(u32),
}

impl Bounded<'_> {
    /// See [`Snapshot::find`](crate::Snapshot::find).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn find(&self, key: &str) -> Result<Node, QueryError> {
        self.guard.poll()?;
        let not_found = || QueryError::NotFound { key: key.to_owned() };
        if let Some(name) = key.strip_prefix("doc:") {
            return self.find_document(name)?.map(|found| Node::Document(found.id())).ok_or_else(not_found);
        }
        if let Some(name) = key.strip_prefix("chunk:") {
            return self.find_chunk(name)?.map(Node::Chunk).ok_or_else(not_found);
        }
        if let Some(name) = key.strip_prefix("entity:") {
            return self.find_entity(name)?.map(Node::Entity).ok_or_else(not_found);
        }
        if let Some(digits) = key.strip_prefix("community:") {
            return self.find_community(digits)?.map(Node::Community).ok_or_else(not_found);
        }
        if let Some(document) = self.find_document(key)? {
            return Ok(Node::Document(document.id()));
        }
        if let Some(entity) = self.find_entity(key)? {
            return Ok(Node::Entity(entity));
        }
        self.find_chunk(key)?.map(Node::Chunk).ok_or_else(not_found)
    }

    /// See [`Snapshot::key_of`](crate::Snapshot::key_of).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn key_of(&self, node: Node) -> Result<String, QueryError> {
        Ok(match node {
            Node::Document(id) => format!("doc:{}", self.document(id)?.key()?),
            Node::Chunk(id) => format!("chunk:{}", self.chunk(id)?.key()?),
            Node::Entity(key) => format!("entity:{}", self.entity_name(key)?.unwrap_or_else(|| format!("{key:?}"))),
            Node::Community(row) => self.community_key(row)?,
        })
    }

    /// A live chunk by `KEY#N`.
    fn find_chunk(&self, key: &str) -> Result<Option<ChunkId>, Damage> {
        let Some((document, ordinal)) = key.rsplit_once('#') else { return Ok(None) };
        let Ok(ordinal) = ordinal.parse::<usize>() else { return Ok(None) };
        Ok(self.find_document(document)?.and_then(|document| document.chunks().nth(ordinal)))
    }

    /// A live entity by name: one of the links projection, or of a segment where the projection does not have it.
    fn find_entity(&self, given: &str) -> Result<Option<Key>, QueryError> {
        let key = Key::of_entity(&name::name_key_text(given));
        Ok(if self.is_live_entity(key)? { Some(key) } else { None })
    }

    /// Whether a live chunk mentions an entity, or a live relation has it as an end, or an edge list or an extraction has it.
    pub(super) fn is_live_entity(&self, key: Key) -> Result<bool, QueryError> {
        if let Some(links) = self.links_in_step() {
            return Ok(links.find(key)?.is_some());
        }
        let mut pace = self.guard.pace();
        for segment in self.segments() {
            let Some(slot) = segment.find_entity(key)? else { continue };
            for chunk in segment.mentioning(slot)? {
                pace.step()?;
                if self.is_live(chunk) {
                    return Ok(true);
                }
            }
            for relation in segment.relations_from(slot)?.chain(segment.relations_to(slot)?) {
                pace.step()?;
                if self.evidence(segment, &relation)?.next().is_some() {
                    return Ok(true);
                }
            }
            if self.extracted(segment, slot)?.next().transpose()?.is_some() {
                return Ok(true);
            }
            for found in self.edge_lists(segment)? {
                pace.step()?;
                if found?.1.node_of(slot).is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Name and type of an entity: those of the links projection, or the best in which something live writes it.
    pub(super) fn entity_name_and_kind(&self, key: Key) -> Result<Option<(String, String)>, QueryError> {
        if let Some(links) = self.links()
            && let Some(slot) = links.find(key)?
        {
            let row = links.entity(slot)?;
            return Ok(Some((links.string(row.name)?.to_owned(), links.string(row.kind)?.to_owned())));
        }
        let mut best: Option<(&str, &str)> = None;
        for segment in self.segments() {
            let Some(slot) = segment.find_entity(key)? else { continue };
            for row in self.live_spellings(segment, slot)? {
                let (_, spelling, kind) = segment.spelling(row)?;
                let (known, known_kind) = best.unwrap_or((spelling, kind));
                best = Some((name::better_spelling(known, spelling), name::better_kind(known_kind, kind)));
            }
        }
        Ok(best.map(|(spelling, kind)| (spelling.to_owned(), kind.to_owned())))
    }

    /// The rows of a segment's spellings in which live chunks, sources of relations and edge lists write an entity.
    fn live_spellings(&self, segment: &Segment, entity: EntitySlot) -> Result<BTreeSet<u32>, QueryError> {
        let (mut rows, mut pace) = (BTreeSet::new(), self.guard.pace());
        for chunk in segment.mentioning(entity)? {
            pace.step()?;
            if self.is_live(chunk) {
                let mentions = segment.mentions(chunk)?.filter(|mention| mention.entity == entity);
                rows.extend(mentions.map(|mention| mention.spelling));
            }
        }
        for relation in segment.relations_from(entity)?.chain(segment.relations_to(entity)?) {
            for source in self.evidence(segment, &relation)? {
                pace.step()?;
                let ends = [(relation.subject, source.subject_spelling), (relation.object, source.object_spelling)];
                rows.extend(ends.into_iter().filter(|end| end.0 == entity.0).map(|end| end.1));
            }
        }
        for found in self.extracted(segment, entity)? {
            pace.step()?;
            rows.insert(found?.1.spelling);
        }
        for found in self.edge_lists(segment)? {
            pace.step()?;
            let (_, list) = found?;
            rows.extend(list.node_of(entity).and_then(|node| list.nodes.get(node)));
        }
        Ok(rows)
    }

    /// Name of an entity.
    pub(super) fn entity_name(&self, key: Key) -> Result<Option<String>, QueryError> {
        Ok(self.entity_name_and_kind(key)?.map(|(spelling, _)| spelling))
    }
}

/// Bytes that a bitmap of few chunks may take beside those of many.
const BITMAP_BYTES: u64 = 16 << 10;
/// Bytes that JSON takes once it is parsed, for each of its own: an empty list in a list has two and takes 32.
const PARSED_BYTES: u64 = 32;

/// The live chunks that a filter lets through. Reads the fields of every chunk.
pub(super) fn allowed(bounded: &Bounded<'_>, filter: &Filter) -> Result<RoaringBitmap, QueryError> {
    let guard = &bounded.guard;
    guard.hold_bytes((bounded.chunks_end() as u64 / 4).saturating_add(BITMAP_BYTES))?;
    let (mut allowed, mut pace) = (RoaringBitmap::new(), guard.pace());
    let reads_metadata = filter.reads_metadata();
    let mut near = BTreeMap::new();
    for neighbourhood in filter.neighbourhoods() {
        if near.contains_key(neighbourhood) {
            continue;
        }
        let hops = usize::try_from(neighbourhood.hops).unwrap_or(usize::MAX);
        let seed = bounded.find(&neighbourhood.of)?;
        near.insert(neighbourhood, bounded.chunks_within(&[seed], &ExpandOptions::all_within(hops))?);
    }
    let mark = guard.mark();
    for id in bounded.chunk_ids() {
        pace.step()?;
        let chunk = bounded.chunk(id)?;
        if reads_metadata {
            let bytes = chunk.metadata()?.len() + chunk.document()?.metadata()?.len();
            guard.hold_bytes((bytes as u64).saturating_mul(PARSED_BYTES))?;
            guard.release(mark);
        }
        let fields = ChunkFields { id, chunk, document: chunk.document()?, near: &near, damage: OnceCell::new() };
        let is_allowed = filter.matches(&fields);
        if let Some(damage) = fields.damage.into_inner() {
            return Err(damage.into());
        }
        if is_allowed {
            allowed.insert(id.0);
        }
    }
    Ok(allowed)
}

struct ChunkFields<'s> {
    id: ChunkId,
    chunk: ChunkView<'s>,
    document: DocumentView<'s>,
    near: &'s BTreeMap<&'s Neighbourhood, ChunkSet>,
    /// The first that was met: a field that cannot be read is not one that is missing, which `not` would let through.
    damage: OnceCell<Damage>,
}

impl ChunkFields<'_> {
    fn readable<'t>(&self, text: Result<&'t str, Damage>) -> Option<&'t str> {
        // Only the first damage is told, so that a second one has nowhere to go.
        text.map_err(|damage| drop(self.damage.set(damage))).ok()
    }
}

impl Fields for ChunkFields<'_> {
    fn text(&self, field: TextField) -> Option<Cow<'_, str>> {
        let text = match field {
            TextField::Kind => Ok(self.chunk.kind()),
            TextField::Source => self.document.source(),
            TextField::Title => self.document.title(),
            TextField::Key => self.document.key(),
            TextField::MediaType => self.document.media_type(),
        };
        self.readable(text).map(Cow::Borrowed)
    }

    /// The document's metadata; the chunk's own fields stand above them.
    fn metadata(&self) -> Option<Cow<'_, Value>> {
        let mut fields = object(self.readable(self.document.metadata())?);
        fields.extend(object(self.readable(self.chunk.metadata())?));
        Some(Cow::Owned(Value::Object(fields)))
    }

    fn within(&self, neighbourhood: &Neighbourhood) -> bool {
        self.near.get(neighbourhood).is_some_and(|near| near.chunks.contains(self.id.0))
    }
}

/// Metadata as it was given; the empty string is no metadata.
pub(super) fn object(json: &str) -> Map<String, Value> {
    serde_json::from_str(json).unwrap_or_default()
}
