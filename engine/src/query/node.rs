//! Nodes as people type them, and which chunks a filter lets through.

use crate::error::{Damage, QueryError};
use crate::query::filter::{Fields, Filter, TextField};
use crate::snapshot::{ChunkView, DocumentView, Snapshot};
use hedgerow_format::{ChunkId, DocumentId, Key, name};
use roaring::RoaringBitmap;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A node of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A document.
    Document(DocumentId),
    /// A chunk.
    Chunk(ChunkId),
    /// An entity, by its key.
    Entity(Key),
}

impl Snapshot {
    /// The node that a key as people type it stands for: `doc:KEY`, `chunk:KEY#N`, `entity:NAME`; a bare key is tried as
    /// document, then as entity, then as chunk.
    ///
    /// # Errors
    /// [`QueryError::NotFound`] where it stands for nothing that is live.
    pub fn find(&self, key: &str) -> Result<Node, QueryError> {
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
        if let Some(document) = self.find_document(key)? {
            return Ok(Node::Document(document.id()));
        }
        if let Some(entity) = self.find_entity(key)? {
            return Ok(Node::Entity(entity));
        }
        self.find_chunk(key)?.map(Node::Chunk).ok_or_else(not_found)
    }

    /// The key of a node, with its kind before it.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn key_of(&self, node: Node) -> Result<String, Damage> {
        Ok(match node {
            Node::Document(id) => format!("doc:{}", self.document(id)?.key()?),
            Node::Chunk(id) => format!("chunk:{}", self.chunk(id)?.key()?),
            Node::Entity(key) => format!("entity:{}", self.entity_name(key)?.unwrap_or_else(|| format!("{key:?}"))),
        })
    }

    /// A live chunk by `KEY#N`.
    fn find_chunk(&self, key: &str) -> Result<Option<ChunkId>, Damage> {
        let Some((document, ordinal)) = key.rsplit_once('#') else { return Ok(None) };
        let Ok(ordinal) = ordinal.parse::<usize>() else { return Ok(None) };
        Ok(self.find_document(document)?.and_then(|document| document.chunks().nth(ordinal)))
    }

    /// A live entity by name: one of the links projection, or of a segment where the projection does not have it.
    fn find_entity(&self, given: &str) -> Result<Option<Key>, Damage> {
        let key = Key::of_entity(&name::name_key_text(given));
        Ok(if self.is_live_entity(key)? { Some(key) } else { None })
    }

    /// Whether a live chunk mentions an entity, or a live relation has it as an end.
    pub(super) fn is_live_entity(&self, key: Key) -> Result<bool, Damage> {
        if let Some(links) = self.links()
            && links.entry().facts == self.manifest().facts
        {
            return Ok(links.find(key)?.is_some());
        }
        for segment in self.segments() {
            let Some(slot) = segment.find_entity(key)? else { continue };
            if segment.mentioning(slot)?.any(|chunk| self.is_live(chunk)) {
                return Ok(true);
            }
            for relation in segment.relations_from(slot)?.chain(segment.relations_to(slot)?) {
                if segment.evidence(&relation)?.any(|source| self.is_live_document(DocumentId(source.document))) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Name and type of an entity: those of the links projection, or the better ones of all segments.
    pub(super) fn entity_name_and_kind(&self, key: Key) -> Result<Option<(String, String)>, Damage> {
        if let Some(links) = self.links()
            && let Some(slot) = links.find(key)?
        {
            let row = links.entity(slot)?;
            return Ok(Some((links.string(row.name)?.to_owned(), links.string(row.kind)?.to_owned())));
        }
        let mut best: Option<(&str, &str)> = None;
        for segment in self.segments() {
            let Some(slot) = segment.find_entity(key)? else { continue };
            let row = segment.entity(slot)?;
            let (spelling, kind) = (segment.string(row.name)?, segment.string(row.kind)?);
            let (known, known_kind) = best.unwrap_or((spelling, kind));
            best = Some((name::better_spelling(known, spelling), name::better_kind(known_kind, kind)));
        }
        Ok(best.map(|(spelling, kind)| (spelling.to_owned(), kind.to_owned())))
    }

    /// Name of an entity.
    pub(super) fn entity_name(&self, key: Key) -> Result<Option<String>, Damage> {
        Ok(self.entity_name_and_kind(key)?.map(|(spelling, _)| spelling))
    }
}

/// The live chunks that a filter lets through. Reads the fields of every chunk.
pub(super) fn allowed(snapshot: &Snapshot, filter: &Filter) -> Result<RoaringBitmap, Damage> {
    let mut allowed = RoaringBitmap::new();
    for id in snapshot.chunk_ids() {
        let chunk = snapshot.chunk(id)?;
        if filter.matches(&ChunkFields { chunk, document: chunk.document()? }) {
            allowed.insert(id.0);
        }
    }
    Ok(allowed)
}

struct ChunkFields<'s> {
    chunk: ChunkView<'s>,
    document: DocumentView<'s>,
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
        text.ok().map(Cow::Borrowed)
    }

    /// The document's metadata; the chunk's own fields stand above them.
    fn metadata(&self) -> Option<Cow<'_, Value>> {
        let mut fields = object(self.document.metadata().ok()?);
        fields.extend(object(self.chunk.metadata().ok()?));
        Some(Cow::Owned(Value::Object(fields)))
    }
}

/// Metadata as it was given; the empty string is no metadata.
pub(super) fn object(json: &str) -> Map<String, Value> {
    serde_json::from_str(json).unwrap_or_default()
}
