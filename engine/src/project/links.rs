//! Definition links, and the mentions that count: the recipe's index, made from all live text.

use crate::error::Damage;
use crate::index::control::{Cancelled, Control};
use crate::index::names::{CaseCounts, Gazetteer, counts_as_name, leads};
use crate::project::{Fault, chunks_end};
use crate::projection::{LinkEntity, LinksData};
use crate::segment::Segment;
use crate::snapshot::{Snapshot, TextRun};
use hedgerow_format::projection::link_flags;
use hedgerow_format::segment::{NO_CHUNK, mention_flags};
use hedgerow_format::{ChunkId, DocumentId, EntitySlot, Key, name};
use rayon::prelude::*;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// A phrase at the start of more chunks than this, or a heading, term or symbol of more, defines none of them.
const LEADS_MAX: usize = 3;

/// Makes the links projection of a snapshot. Reads all live text twice, in pieces, on all threads.
pub(super) fn build(snapshot: &Snapshot, control: &dyn Control) -> Result<LinksData, Fault> {
    let tasks = tasks(snapshot)?;
    let total = 2 * tasks.iter().map(|task| task.documents.len() as u64).sum::<u64>();
    let done = AtomicU64::new(0);
    let advance = |task: &TextRun<'_>| -> Result<(), Cancelled> {
        let count = task.documents.len() as u64;
        control.advance(done.fetch_add(count, Ordering::Relaxed) + count, total);
        if control.cancelled() { Err(Cancelled) } else { Ok(()) }
    };
    let counted: Result<Vec<CaseCounts>, Fault> = tasks
        .par_iter()
        .map(|task| {
            let mut counts = CaseCounts::default();
            for_each_chunk(task, |_, text| counts.add(text))?;
            advance(task)?;
            Ok(counts)
        })
        .collect();
    let mut counts = CaseCounts::default();
    counted?.iter().for_each(|part| counts.merge(part));
    let candidates = Candidates::of(snapshot)?;
    let gazetteer = candidates.gazetteer();
    let found: Result<Vec<Found>, Fault> = tasks
        .par_iter()
        .map(|task| {
            let found = search(task, &candidates, &gazetteer, &counts)?;
            advance(task)?;
            Ok(found)
        })
        .collect();
    let mut all = Found { mentions: related(snapshot, &candidates)?, leads: Vec::new() };
    for part in found? {
        all.mentions.extend(part.mentions);
        all.leads.extend(part.leads);
    }
    Ok(candidates.into_links(all, &counts, chunks_end(snapshot)))
}

/// What the text of a task gives: pairs of chunk id and candidate.
#[derive(Default)]
struct Found {
    mentions: Vec<(u32, u32)>,
    leads: Vec<(u32, u32)>,
}

/// The live documents of all segments, as many together as one task reads at once.
fn tasks(snapshot: &Snapshot) -> Result<Vec<TextRun<'_>>, Damage> {
    let mut tasks = Vec::new();
    for segment in snapshot.segments() {
        tasks.extend(snapshot.text_runs(segment)?);
    }
    Ok(tasks)
}

fn for_each_chunk(task: &TextRun<'_>, mut visit: impl FnMut(ChunkId, &str)) -> Result<(), Damage> {
    task.for_each(|_, row, text| {
        for id in task.segment.chunks_of(row).map(ChunkId) {
            let chunk = task.segment.chunk(id)?;
            let range = usize::try_from(chunk.start).ok().zip(usize::try_from(chunk.end).ok());
            visit(id, range.and_then(|(start, end)| text.get(start..end)).unwrap_or_default());
        }
        Ok(())
    })
}

fn search(
    task: &TextRun<'_>,
    candidates: &Candidates<'_>,
    gazetteer: &Gazetteer,
    counts: &CaseCounts,
) -> Result<Found, Fault> {
    let mut found = Found::default();
    let mut hits = Vec::new();
    for_each_chunk(task, |id, text| {
        hits.clear();
        gazetteer.find(text, counts, &mut hits);
        found.mentions.extend(hits.iter().map(|hit| (id.0, hit.id)));
        leads(text, |key| found.leads.extend(candidates.find(Key::of_entity(key)).map(|slot| (id.0, slot))));
    })?;
    for (_, row) in &task.documents {
        for id in task.segment.chunks_of(row).map(ChunkId) {
            for mention in task.segment.mentions(id)? {
                let entity = Key(task.segment.entity(mention.entity)?.key);
                let Some(slot) = candidates.find(entity) else { continue };
                let certain = mention.flags & (mention_flags::CERTAIN | mention_flags::RELATED) != 0;
                let likely = mention.flags & mention_flags::SENTENCE_START != 0;
                if certain || (likely && counts_as_name(&candidates.list[ChunkId(slot).index()].key_text, counts)) {
                    found.mentions.push((id.0, slot));
                }
            }
        }
    }
    Ok(found)
}

/// Ends of relations count as mentions of the chunks that are evidence, and entities of extractions in theirs.
fn related(snapshot: &Snapshot, candidates: &Candidates<'_>) -> Result<Vec<(u32, u32)>, Damage> {
    let mut mentions = Vec::new();
    for segment in snapshot.segments() {
        for relation in segment.relations()?.iter() {
            let ends = [relation.subject, relation.object].map(EntitySlot);
            for source in snapshot.evidence(segment, &relation)?.filter(|source| source.chunk != NO_CHUNK) {
                for end in ends {
                    let key = Key(segment.entity(end)?.key);
                    mentions.extend(candidates.find(key).map(|slot| (source.chunk, slot)));
                }
            }
        }
        for found in snapshot.all_extracted(segment)? {
            let (chunk, row) = found?;
            let (entity, _, _) = segment.spelling(row.spelling)?;
            let key = Key(segment.entity(entity)?.key);
            mentions.extend(candidates.find(key).map(|slot| (chunk.0, slot)));
        }
    }
    Ok(mentions)
}

/// The rows of a segment's spellings that a live chunk, a live source of a relation or an extraction uses.
fn live_spellings(snapshot: &Snapshot, segment: &Segment) -> Result<RoaringBitmap, Damage> {
    let mut live = RoaringBitmap::new();
    if !snapshot.has_dead() {
        live.insert_range(0..u32::try_from(segment.spellings()?.len()).unwrap_or(u32::MAX));
        return Ok(live);
    }
    for chunk in segment.chunk_ids().iter().map(ChunkId).filter(|chunk| snapshot.is_live(*chunk)) {
        live.extend(segment.mentions(chunk)?.map(|mention| mention.spelling));
    }
    for relation in segment.relations()?.iter() {
        let sources = snapshot.evidence(segment, &relation)?;
        live.extend(sources.flat_map(|source| [source.subject_spelling, source.object_spelling]));
    }
    for found in snapshot.all_extracted(segment)? {
        live.insert(found?.1.spelling);
    }
    Ok(live)
}

/// Every entity that something live speaks of.
struct Candidates<'s> {
    /// Ascending by key.
    list: Vec<Candidate<'s>>,
    /// First chunk and candidate of every live document whose title names it.
    titles: Vec<(u32, u32)>,
    /// Live chunk and candidate of everything else that is defined, where few chunks define it.
    defined: Vec<(u32, u32)>,
}

struct Candidate<'s> {
    key: Key,
    name: &'s str,
    kind: &'s str,
    key_text: String,
    gazetteer: bool,
    /// Whether a live relation has it as an end, so that it lives without a mention.
    related: bool,
}

impl<'s> Candidates<'s> {
    fn of(snapshot: &'s Snapshot) -> Result<Self, Damage> {
        let mut known: BTreeMap<Key, (&str, &str)> = BTreeMap::new();
        for segment in snapshot.segments() {
            for row in live_spellings(snapshot, segment)? {
                let (slot, spelling, kind) = segment.spelling(row)?;
                let entity = known.entry(Key(segment.entity(slot)?.key)).or_insert((spelling, kind));
                *entity = (name::better_spelling(entity.0, spelling), name::better_kind(entity.1, kind));
            }
        }
        let list = known.into_iter().map(|(key, (name, kind))| Candidate {
            key,
            name,
            kind,
            key_text: name::name_key_text(name),
            gazetteer: false,
            related: false,
        });
        let mut candidates = Self { list: list.collect(), titles: Vec::new(), defined: Vec::new() };
        for segment in snapshot.segments() {
            candidates.add_titles(snapshot, segment)?;
            candidates.add_defined(snapshot, segment)?;
            candidates.add_related(snapshot, segment)?;
        }
        candidates.keep_defined_by_few();
        Ok(candidates)
    }

    fn find(&self, key: Key) -> Option<u32> {
        let position = self.list.binary_search_by_key(&key, |candidate| candidate.key).ok()?;
        u32::try_from(position).ok()
    }

    fn add_titles(&mut self, snapshot: &Snapshot, segment: &Segment) -> Result<(), Damage> {
        for (id, row) in segment.document_ids().iter().map(DocumentId).zip(segment.documents()?.iter()) {
            let Some(first) = segment.chunks_of(&row).map(ChunkId).next().filter(|_| snapshot.is_live_document(id))
            else {
                continue;
            };
            for mention in segment.mentions(first)? {
                if mention.flags & (mention_flags::TITLE | mention_flags::TITLE_PART) == 0 {
                    continue;
                }
                let Some(slot) = self.find(Key(segment.entity(mention.entity)?.key)) else { continue };
                self.list[ChunkId(slot).index()].gazetteer = true;
                if mention.flags & mention_flags::TITLE != 0 {
                    self.titles.push((first.0, slot));
                }
            }
        }
        Ok(())
    }

    fn add_defined(&mut self, snapshot: &Snapshot, segment: &Segment) -> Result<(), Damage> {
        for chunk in segment.chunk_ids().iter().map(ChunkId).filter(|chunk| snapshot.is_live(*chunk)) {
            for mention in segment.mentions(chunk)?.filter(|mention| mention.flags & mention_flags::DEFINES != 0) {
                let slot = self.find(Key(segment.entity(mention.entity)?.key));
                self.defined.extend(slot.map(|slot| (chunk.0, slot)));
            }
        }
        Ok(())
    }

    /// What many chunks define says what they are, not what they are about.
    fn keep_defined_by_few(&mut self) {
        let mut counts = vec![0_usize; self.list.len()];
        for (_, slot) in &self.defined {
            counts[ChunkId(*slot).index()] += 1;
        }
        self.defined.retain(|(_, slot)| counts[ChunkId(*slot).index()] <= LEADS_MAX);
        for (_, slot) in &self.defined {
            self.list[ChunkId(*slot).index()].gazetteer = true;
        }
    }

    fn add_related(&mut self, snapshot: &Snapshot, segment: &Segment) -> Result<(), Damage> {
        for relation in segment.relations()?.iter() {
            if snapshot.evidence(segment, &relation)?.next().is_none() {
                continue;
            }
            for end in [relation.subject, relation.object].map(EntitySlot) {
                if let Some(slot) = self.find(Key(segment.entity(end)?.key)) {
                    self.list[ChunkId(slot).index()].related = true;
                }
            }
        }
        Ok(())
    }

    fn gazetteer(&self) -> Gazetteer {
        let names = (0..).zip(&self.list).filter(|(_, candidate)| candidate.gazetteer);
        Gazetteer::new(names.map(|(slot, candidate)| (candidate.key_text.as_str(), slot)))
    }

    /// Keeps what is live and numbers it anew, in the order of keys.
    fn into_links(self, mut found: Found, counts: &CaseCounts, chunks_end: u32) -> LinksData {
        found.mentions.sort_unstable();
        found.mentions.dedup();
        found.leads.sort_unstable_by_key(|(chunk, slot)| (*slot, *chunk));
        found.leads.dedup();
        let few = found.leads.chunk_by(|a, b| a.1 == b.1).filter(|chunks| chunks.len() <= LEADS_MAX);
        let mut definitions: Vec<(u32, u32)> =
            self.titles.iter().chain(&self.defined).chain(few.flatten()).map(|(chunk, slot)| (*slot, *chunk)).collect();
        definitions.sort_unstable();
        definitions.dedup();
        let mut alive: Vec<bool> = self.list.iter().map(|candidate| candidate.gazetteer || candidate.related).collect();
        for (_, slot) in &found.mentions {
            alive[ChunkId(*slot).index()] = true;
        }
        let mut numbers = vec![None; alive.len()];
        let mut entities = Vec::new();
        for (position, candidate) in self.list.into_iter().enumerate().filter(|(position, _)| alive[*position]) {
            numbers[position] = u32::try_from(entities.len()).ok();
            let Candidate { key, name, kind, key_text, gazetteer, .. } = candidate;
            let flags = if gazetteer { link_flags::GAZETTEER } else { 0 } | case_flags(&key_text, counts);
            entities.push(LinkEntity { key, name: name.to_owned(), kind: kind.to_owned(), flags });
        }
        let number = |slot: u32| numbers[ChunkId(slot).index()];
        let mentions = found.mentions.iter().filter_map(|(chunk, slot)| Some((*chunk, number(*slot)?))).collect();
        let definitions = definitions.iter().filter_map(|(slot, chunk)| Some((number(*slot)?, *chunk))).collect();
        LinksData { entities, mentions, definitions, chunks_end }
    }
}

/// How the corpus writes a name of one word, for questions, in which there is no corpus to count.
fn case_flags(key_text: &str, counts: &CaseCounts) -> u32 {
    if key_text.contains(' ') {
        return 0;
    }
    let case = counts.get(key_text);
    let common = if case.lower > case.capital { link_flags::COMMON } else { 0 };
    let mostly = if case.lower >= case.capital.saturating_mul(4) && common != 0 { link_flags::MOSTLY_LOWER } else { 0 };
    common | mostly
}
