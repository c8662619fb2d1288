//! Candidates: every entity that something live speaks of, as the rows of segments say, without a look at text.

use crate::error::Damage;
use crate::index::names::{Cases, Gazetteer, counts_as_name};
use crate::project::links::LEADS_MAX;
use crate::segment::Segment;
use crate::snapshot::Snapshot;
use hedgerow_format::segment::{NO_CHUNK, SpellingRow, mention_flags};
use hedgerow_format::{ChunkId, DocumentId, EntitySlot, Key, name};
use rayon::prelude::*;

/// In a list of candidates by slot: nothing live speaks of the entity.
const NONE: u32 = u32::MAX;

/// Every entity that something live speaks of.
pub(super) struct Candidates<'s> {
    snapshot: &'s Snapshot,
    /// Ascending by key.
    pub list: Vec<Candidate<'s>>,
    /// By segment and entity slot.
    numbers: Vec<Vec<u32>>,
    /// Candidate and chunk: first chunks of documents whose titles name it, and what else is defined by few.
    pub definitions: Vec<(u32, u32)>,
    /// Live chunk and candidate of every end of a relation that the chunk is evidence of, and of what was extracted from it;
    /// sorted.
    pub related: Vec<(u32, u32)>,
}

pub(super) struct Candidate<'s> {
    pub key: Key,
    pub name: &'s str,
    pub kind: &'s str,
    /// Whether text is searched for it.
    pub gazetteer: bool,
    /// Whether a live relation has it as an end, an edge list as a node, or an extraction names it, so that it lives without a mention in text.
    pub related: bool,
}

/// What the live rows of one segment say. Entities are slots.
struct Said<'s> {
    /// Ascending by slot: key, slot, best name and type among the live spellings.
    entities: Vec<(Key, u32, &'s str, &'s str)>,
    /// First chunk of a document, entity and flags, where the title names it.
    titles: Vec<(u32, u32, u16)>,
    /// Chunk and entity of everything else that is defined.
    defined: Vec<(u32, u32)>,
    /// Chunk, or none, and entity of every end of a relation with a source that counts, of every node of an edge list, and of
    /// every extraction.
    related: Vec<(u32, u32)>,
}

impl<'s> Candidates<'s> {
    /// Reads the mentions and relations of everything live.
    pub(super) fn of(snapshot: &'s Snapshot) -> Result<Self, Damage> {
        let said: Result<Vec<Said<'s>>, Damage> =
            snapshot.segments().par_iter().map(|segment| Said::of(snapshot, segment)).collect();
        let said = said?;
        let (list, numbers) = merged(snapshot, &said);
        let mut candidates = Self { snapshot, list, numbers, definitions: Vec::new(), related: Vec::new() };
        candidates.add(&said);
        Ok(candidates)
    }

    fn add(&mut self, said: &[Said<'s>]) {
        let mut defined = Vec::new();
        for (position, said) in said.iter().enumerate() {
            for (chunk, slot, flags) in &said.titles {
                let Some(number) = self.number(position, *slot) else { continue };
                self.list[ChunkId(number).index()].gazetteer = true;
                if flags & mention_flags::TITLE != 0 {
                    self.definitions.push((number, *chunk));
                }
            }
            let number = |(chunk, slot): &(u32, u32)| Some((self.number(position, *slot)?, *chunk));
            defined.extend(said.defined.iter().filter_map(number));
            for (chunk, slot) in &said.related {
                let Some(number) = self.number(position, *slot) else { continue };
                self.list[ChunkId(number).index()].related = true;
                if *chunk != NO_CHUNK && self.snapshot.is_live(ChunkId(*chunk)) {
                    self.related.push((*chunk, number));
                }
            }
        }
        self.related.sort_unstable();
        self.related.dedup();
        // What many chunks define says what they are, not what they are about.
        defined.sort_unstable();
        for few in defined.chunk_by(|a, b| a.0 == b.0).filter(|chunks| chunks.len() <= LEADS_MAX) {
            for (number, _) in few {
                self.list[ChunkId(*number).index()].gazetteer = true;
            }
            self.definitions.extend(few);
        }
    }

    /// The candidate that an entity of the segment at a position is.
    pub(super) fn number(&self, position: usize, slot: u32) -> Option<u32> {
        self.numbers.get(position)?.get(EntitySlot(slot).index()).copied().filter(|number| *number != NONE)
    }

    /// The candidate with this key.
    pub(super) fn find(&self, key: Key) -> Option<u32> {
        let position = self.list.binary_search_by_key(&key, |candidate| candidate.key).ok()?;
        u32::try_from(position).ok()
    }

    /// Appends the candidates that a chunk of the segment at a position mentions by its rows, in a way that counts.
    pub(super) fn mentions(
        &self,
        position: usize,
        chunk: ChunkId,
        cases: &impl Cases,
        out: &mut Vec<u32>,
    ) -> Result<(), Damage> {
        for mention in self.snapshot.segments()[position].mentions(chunk)? {
            let Some(number) = self.number(position, mention.entity.0) else { continue };
            let certain = mention.flags & (mention_flags::CERTAIN | mention_flags::RELATED) != 0;
            let likely = mention.flags & mention_flags::SENTENCE_START != 0;
            let is_name = || counts_as_name(&self.key_text(number), cases);
            if certain || (likely && is_name()) {
                out.push(number);
            }
        }
        Ok(())
    }

    /// The name key of a candidate.
    pub(super) fn key_text(&self, number: u32) -> String {
        name::name_key_text(self.list[ChunkId(number).index()].name)
    }

    /// A gazetteer of some candidates.
    pub(super) fn gazetteer_of(&self, numbers: &[u32]) -> Gazetteer {
        let keys: Vec<String> = numbers.iter().map(|number| self.key_text(*number)).collect();
        Gazetteer::new(keys.iter().map(String::as_str).zip(numbers.iter().copied()))
    }

    /// The candidates that text is searched for.
    pub(super) fn gazetteer(&self) -> impl IndexedParallelIterator<Item = (u32, &Candidate<'s>)> {
        self.list.par_iter().enumerate().map(|(at, candidate)| (u32::try_from(at).unwrap_or(NONE), candidate))
    }
}

/// The entities of all segments by key, and for each segment and slot, which it is.
fn merged<'s>(snapshot: &'s Snapshot, said: &[Said<'s>]) -> (Vec<Candidate<'s>>, Vec<Vec<u32>>) {
    let slots = snapshot.segments().iter().map(|segment| segment.entities().map_or(0, |rows| rows.len()));
    let mut numbers: Vec<Vec<u32>> = slots.map(|slots| vec![NONE; slots]).collect();
    let index = |row: usize| u32::try_from(row).unwrap_or(NONE);
    let mut order: Vec<(Key, u32, u32)> = Vec::with_capacity(said.iter().map(|said| said.entities.len()).sum());
    for (position, said) in said.iter().enumerate() {
        order.extend(said.entities.iter().enumerate().map(|(row, entity)| (entity.0, index(position), index(row))));
    }
    // Sorted runs one after another: a stable sort merges them.
    order.sort();
    let mut list: Vec<Candidate<'s>> = Vec::with_capacity(order.len());
    for (key, position, row) in order {
        let (position, row) = (EntitySlot(position).index(), EntitySlot(row).index());
        let (_, slot, name, kind) = said[position].entities[row];
        match list.last_mut().filter(|last| last.key == key) {
            Some(last) => {
                last.name = name::better_spelling(last.name, name);
                last.kind = name::better_kind(last.kind, kind);
            }
            None => list.push(Candidate { key, name, kind, gazetteer: false, related: false }),
        }
        if let Some(number) = numbers[position].get_mut(EntitySlot(slot).index()) {
            *number = index(list.len() - 1);
        }
    }
    (list, numbers)
}

impl<'s> Said<'s> {
    fn of(snapshot: &Snapshot, segment: &'s Segment) -> Result<Self, Damage> {
        let mut said = Self { entities: Vec::new(), titles: Vec::new(), defined: Vec::new(), related: Vec::new() };
        let mut live = vec![!snapshot.has_dead(); segment.spellings()?.len()];
        let mark = |live: &mut Vec<bool>, spelling: u32| {
            if let Some(live) = usize::try_from(spelling).ok().and_then(|row| live.get_mut(row)) {
                *live = true;
            }
        };
        for (id, row) in segment.document_ids().iter().map(DocumentId).zip(segment.documents()?.iter()) {
            if !snapshot.is_live_document(id) {
                continue;
            }
            for (ordinal, chunk) in segment.chunks_of(&row).enumerate() {
                for mention in segment.mentions(ChunkId(chunk))? {
                    mark(&mut live, mention.spelling);
                    let titled = mention.flags & (mention_flags::TITLE | mention_flags::TITLE_PART) != 0;
                    if ordinal == 0 && titled {
                        said.titles.push((chunk, mention.entity.0, mention.flags));
                    }
                    if mention.flags & mention_flags::DEFINES != 0 {
                        said.defined.push((chunk, mention.entity.0));
                    }
                }
            }
        }
        for relation in segment.relations()?.iter() {
            for source in snapshot.evidence(segment, &relation)? {
                said.related.extend([relation.subject, relation.object].map(|end| (source.chunk, end)));
                mark(&mut live, source.subject_spelling);
                mark(&mut live, source.object_spelling);
            }
        }
        for found in snapshot.edge_lists(segment)? {
            let (_, list) = found?;
            said.related.extend(list.entities().map(|entity| (NO_CHUNK, entity.0)));
            list.nodes.iter().for_each(|spelling| mark(&mut live, spelling));
        }
        for found in snapshot.all_extracted(segment)? {
            let (chunk, row) = found?;
            mark(&mut live, row.spelling);
            said.related.push((chunk.0, segment.spelling(row.spelling)?.0.0));
        }
        said.add_entities(segment, &live)?;
        Ok(said)
    }

    fn add_entities(&mut self, segment: &'s Segment, live: &[bool]) -> Result<(), Damage> {
        let rows = segment.entities()?;
        for (SpellingRow { entity, name, kind }, _) in segment.spellings()?.iter().zip(live).filter(|(_, live)| **live)
        {
            let name = segment.string(name)?;
            let kind = if kind.length == 0 { "" } else { segment.string(kind)? };
            if let Some(last) = self.entities.last_mut().filter(|last| last.1 == entity) {
                last.2 = name::better_spelling(last.2, name);
                last.3 = name::better_kind(last.3, kind);
                continue;
            }
            // A slot without a row is damage, which reading the row says.
            let slot = EntitySlot(entity);
            let row = rows.get(slot.index()).map_or_else(|| segment.entity(slot), Ok)?;
            self.entities.push((Key(row.key), entity, name, kind));
        }
        Ok(())
    }
}
