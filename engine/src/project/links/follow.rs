//! Links made from those of an earlier generation: only text that may say something else than before is read.
//!
//! What a chunk mentions follows from its text, from the rows of its segment, from the gazetteer, and from the counts of
//! words that are names by themselves. So it stands as it is unless the chunk came; or a name in it left the gazetteer; or
//! one that it has came in; or a word in it became a name or stopped being one; or an extraction of it was replaced.

use crate::error::Damage;
use crate::index::control::{Cancelled, Control};
use crate::index::names::{CaseCounts, Gazetteer, leads};
use crate::index::scripts::is_unspaced;
use crate::index::terms::analysis::Analyzer;
use crate::project::Fault;
use crate::project::links::candidates::{Candidate, Candidates};
use crate::project::links::full;
use crate::project::links::places::Places;
use crate::project::links::words::Counted;
use crate::project::links::{Found, case_flags, finish};
use crate::projection::{Links, LinksData};
use crate::snapshot::Snapshot;
use hedgerow_format::name::{self, Token, fold_lower_into, tokens};
use hedgerow_format::projection::{LinkEntityRow, link_flags};
use hedgerow_format::segment::mention_flags;
use hedgerow_format::{ChunkId, EntitySlot, Key};
use rayon::prelude::*;
use roaring::RoaringBitmap;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// So many chunks may go and come in any store; in a larger one, a part of it.
const CHANGED_MIN: u64 = 1024;
const CHANGED_PART: u64 = 4;

/// The text of a chunk, and the position of its segment.
struct Text {
    id: ChunkId,
    position: usize,
    content: String,
}

/// The links of a snapshot, from those of an earlier one. None where they are better made of all text, or must be.
pub(super) fn follow(
    earlier: &Snapshot,
    snapshot: &Snapshot,
    control: &dyn Control,
) -> Result<Option<LinksData>, Fault> {
    // Another thread may have committed since the snapshot was taken.
    let Some(links) = earlier.links().filter(|_| earlier.generation() <= snapshot.generation()) else {
        return Ok(None);
    };
    let (then, now) = (earlier.live_chunks(), snapshot.live_chunks());
    let (gone, come) = (&then - &now, &now - &then);
    let changed = gone.len() + come.len();
    if changed > CHANGED_MIN.max(now.len() / CHANGED_PART) {
        return Ok(None);
    }
    let steps = Steps { control, total: changed };
    steps.advance(0)?;
    let (candidates, texts) = rayon::join(
        || Candidates::of(snapshot),
        || -> Result<_, Damage> { Ok((texts_of(earlier, &gone)?, texts_of(snapshot, &come)?)) },
    );
    let (candidates, (gone_texts, mut texts)) = (candidates?, texts?);
    let Some(counted) = Counted::new(links.words()?, &counts_of(&gone_texts), &counts_of(&texts)) else {
        return Ok(None);
    };
    let Some(numbering) = Numbering::between(links, &candidates)? else { return Ok(None) };
    let following = Following { snapshot, links, candidates: &candidates, counted: &counted, numbering: &numbering };
    let (Some(leads), Some(words)) = (following.leads(&now, &texts)?, counted.list()) else { return Ok(None) };
    let (mut anew, wanted) = following.touched()?;
    anew |= unsaid(earlier, snapshot)?;
    let known = &anew | &come;
    let anew = ((anew | following.having(&wanted, &known)?) & &now) - &come;
    steps.advance(changed)?;
    texts.extend(texts_of(snapshot, &anew)?);
    let Some(mentions) = following.mentions(&following.read(&texts)?)? else { return Ok(None) };
    let recounted = following.recounted();
    let found = Found { mentions, leads, words };
    let flags = |number: usize, candidate: &Candidate<'_>| {
        let then = numbering.then[number].filter(|_| !recounted[number]);
        then.map_or_else(
            || case_flags(candidate.name, &counted),
            |(_, flags)| flags & (link_flags::COMMON | link_flags::MOSTLY_LOWER),
        )
    };
    let links = finish(snapshot, candidates, found, flags);
    links.map(Some)
}

fn counts_of(texts: &[Text]) -> CaseCounts {
    let mut counts = CaseCounts::default();
    for text in texts {
        counts.add(&text.content);
    }
    counts
}

/// What is asked while links are followed.
struct Steps<'c> {
    control: &'c dyn Control,
    total: u64,
}

impl Steps<'_> {
    fn advance(&self, done: u64) -> Result<(), Cancelled> {
        self.control.advance(done, self.total);
        if self.control.cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}

/// What an entity is called in the earlier links and now.
struct Numbering {
    /// By slot of the earlier links: the candidate.
    now: Vec<Option<u32>>,
    /// By candidate: slot and flags of the earlier links.
    then: Vec<Option<(u32, u32)>>,
}

impl Numbering {
    /// None where the earlier entities are not in order.
    fn between(links: &Links, candidates: &Candidates<'_>) -> Result<Option<Self>, Damage> {
        let rows = links.entities()?;
        let mut numbering = Self { now: Vec::with_capacity(rows.len()), then: vec![None; candidates.list.len()] };
        let mut list = (0_u32..).zip(&candidates.list).peekable();
        let mut before = None;
        for (slot, LinkEntityRow { key, flags, .. }) in (0_u32..).zip(rows.iter()) {
            let key = Key(key);
            if before >= Some(key) {
                return Ok(None);
            }
            before = Some(key);
            while list.next_if(|(_, candidate)| candidate.key < key).is_some() {}
            let number = list.next_if(|(_, candidate)| candidate.key == key).map(|(number, _)| number);
            if let Some(number) = number {
                numbering.then[ChunkId(number).index()] = Some((slot, flags));
            }
            numbering.now.push(number);
        }
        Ok(Some(numbering))
    }
}

/// Both generations, and what is known of their difference.
struct Following<'f> {
    snapshot: &'f Snapshot,
    links: &'f Links,
    candidates: &'f Candidates<'f>,
    counted: &'f Counted<'f>,
    numbering: &'f Numbering,
}

impl Following<'_> {
    /// Chunks that have to be read anew, and candidates that text must be searched for anew.
    fn touched(&self) -> Result<(RoaringBitmap, BTreeSet<u32>), Damage> {
        let (mut anew, mut wanted) = (RoaringBitmap::new(), BTreeSet::new());
        let is_searched = |number: u32| self.candidates.list[ChunkId(number).index()].gazetteer;
        for (slot, row) in (0_u32..).zip(self.links.entities()?.iter()) {
            let was = row.flags & link_flags::GAZETTEER != 0;
            if was && !self.numbering.now[ChunkId(slot).index()].is_some_and(is_searched) {
                anew.extend(self.links.mentioning(EntitySlot(slot))?.iter());
            }
        }
        for (number, then) in (0_u32..).zip(&self.numbering.then) {
            if is_searched(number) && then.is_none_or(|(_, flags)| flags & link_flags::GAZETTEER == 0) {
                wanted.insert(number);
            }
        }
        for changed in self.counted.changed() {
            let key = Key::of_entity(&changed.word);
            if changed.before.allows() != changed.after.allows() {
                if let Some(slot) = self.links.find(key)? {
                    anew.extend(self.links.mentioning(slot)?.iter());
                }
                wanted.extend(self.candidates.find(key).filter(|number| is_searched(*number)));
            }
            if changed.before.is_name() != changed.after.is_name() {
                self.add_sentence_starts(key, &mut anew)?;
            }
        }
        Ok((anew, wanted))
    }

    /// The chunks that have an entity as a capitalised word at a sentence's start.
    fn add_sentence_starts(&self, key: Key, anew: &mut RoaringBitmap) -> Result<(), Damage> {
        for segment in self.snapshot.segments() {
            let Some(slot) = segment.find_entity(key)? else { continue };
            for chunk in segment.mentioning(slot)?.filter(|chunk| self.snapshot.is_live(*chunk)) {
                let mut mentions = segment.mentions(chunk)?.filter(|mention| mention.entity == slot);
                if mentions.any(|mention| mention.flags & mention_flags::SENTENCE_START != 0) {
                    anew.insert(chunk.0);
                }
            }
        }
        Ok(())
    }

    /// The chunks outside of `known` in whose text one of the candidates stands.
    fn having(&self, wanted: &BTreeSet<u32>, known: &RoaringBitmap) -> Result<RoaringBitmap, Damage> {
        let numbers: Vec<u32> = wanted.iter().copied().collect();
        if numbers.is_empty() {
            return Ok(RoaringBitmap::new());
        }
        let keys: Vec<String> = numbers.iter().map(|number| self.candidates.key_text(*number)).collect();
        let places = Places::of(self.snapshot, &keys)?;
        let asked: Option<Vec<RoaringBitmap>> =
            keys.par_iter().map_init(Analyzer::new, |analyzer, key| places.chunks(analyzer, key)).collect();
        let gazetteer = Gazetteer::new(keys.iter().map(String::as_str).zip(numbers));
        let stands = |text: &str| {
            let mut hits = Vec::new();
            gazetteer.find(text, self.counted, &mut hits);
            !hits.is_empty()
        };
        let Some(asked) = asked else {
            return full::chunks_where(self.snapshot, |id, text| !known.contains(id.0) && stands(text));
        };
        let mut chunks: RoaringBitmap = asked.into_iter().fold(RoaringBitmap::new(), |all, chunks| all | chunks);
        chunks -= known;
        let texts = texts_of(self.snapshot, &chunks)?;
        Ok(texts
            .par_iter()
            .filter(|text| stands(&text.content))
            .map(|text| text.id.0)
            .collect::<Vec<_>>()
            .into_iter()
            .collect())
    }

    /// Candidates in each of the texts, ascending.
    fn read(&self, texts: &[Text]) -> Result<BTreeMap<u32, Vec<u32>>, Damage> {
        let gazetteer = self.gazetteer_for(texts);
        let row = |Text { id, position, content }: &Text| -> Result<(u32, Vec<u32>), Damage> {
            let mut hits = Vec::new();
            gazetteer.find(content, self.counted, &mut hits);
            let mut numbers = hits.into_iter().map(|hit| hit.id).collect();
            self.candidates.mentions(*position, *id, self.counted, &mut numbers)?;
            numbers.sort_unstable();
            numbers.dedup();
            Ok((id.0, numbers))
        };
        texts.par_iter().map(row).collect()
    }

    /// As much of the gazetteer as can stand in the texts: making all of it would take longer than reading them.
    fn gazetteer_for(&self, texts: &[Text]) -> Gazetteer {
        let mut words = HashSet::new();
        let mut word = String::new();
        for token in texts.iter().flat_map(|text| tokens(&text.content)).filter(Token::is_word) {
            word.clear();
            fold_lower_into(token.text, &mut word);
            if !words.contains(&word) {
                words.insert(word.clone());
            }
        }
        let searched = self.candidates.gazetteer().filter(|(_, candidate)| candidate.gazetteer);
        let standing = searched.filter_map(|(number, candidate)| {
            // The key of a name in ASCII has its words in lower case: most names have one that no text has.
            let mut lower = [0; 64];
            let is_elsewhere = |word: &[u8]| {
                let Some(lower) = lower.get_mut(..word.len()) else { return false };
                lower.copy_from_slice(word);
                lower.make_ascii_lowercase();
                let word = std::str::from_utf8(lower).unwrap_or_default();
                !word.is_empty() && !matches!(word, "the" | "a" | "an") && !words.contains(word)
            };
            let mut parts = candidate.name.as_bytes().split(|byte| !byte.is_ascii_alphanumeric());
            if candidate.name.is_ascii() && parts.any(is_elsewhere) {
                return None;
            }
            let key = name::name_key_text(candidate.name);
            let inside = key.chars().next().is_some_and(is_unspaced);
            (inside || key.split(' ').all(|word| words.contains(word))).then_some((number, key))
        });
        let standing: Vec<(u32, String)> = standing.collect();
        Gazetteer::new(standing.iter().map(|(number, key)| (key.as_str(), *number)))
    }

    /// Chunk and candidate of every mention that counts: of what was read anew by `rows`, else as it was. None where the
    /// earlier links have what nothing live speaks of, or are not in order.
    fn mentions(&self, rows: &BTreeMap<u32, Vec<u32>>) -> Result<Option<Vec<(u32, u32)>>, Damage> {
        let mut mentions = Vec::new();
        for id in self.snapshot.chunk_ids() {
            if let Some(row) = rows.get(&id.0) {
                mentions.extend(row.iter().map(|number| (id.0, *number)));
                continue;
            }
            let mut before = None;
            for slot in self.links.mentions(id)?.iter() {
                let number = self.numbering.now.get(ChunkId(slot).index()).copied().flatten();
                let Some(number) = number.filter(|_| before < Some(slot)) else { return Ok(None) };
                before = Some(slot);
                mentions.push((id.0, number));
            }
        }
        if !self.candidates.related.is_empty() {
            mentions.extend(&self.candidates.related);
            mentions.sort_unstable();
            mentions.dedup();
        }
        Ok(Some(mentions))
    }

    /// The phrases that live chunks begin with: those that were there, and those of what came. None where
    /// the earlier ones are not in order.
    fn leads(&self, live: &RoaringBitmap, texts: &[Text]) -> Result<Option<Vec<(Key, u32)>>, Damage> {
        let mut new = Vec::new();
        for Text { id, content, .. } in texts {
            leads(content, |phrase| new.push((Key::of_entity(phrase), id.0)));
        }
        new.sort_unstable();
        new.dedup();
        let old = self.links.leads()?;
        let mut all = Vec::with_capacity(old.len() + new.len());
        let (mut new, mut before) = (new.into_iter().peekable(), None);
        for row in old.iter() {
            let lead = (Key(row.key), row.chunk);
            if before >= Some(lead) {
                return Ok(None);
            }
            before = Some(lead);
            while let Some(new) = new.next_if(|new| *new < lead) {
                all.push(new);
            }
            if live.contains(lead.1) {
                all.push(lead);
            }
        }
        all.extend(new);
        Ok(Some(all))
    }

    /// For each candidate, whether it is a word whose counts changed.
    fn recounted(&self) -> Vec<bool> {
        let mut recounted = vec![false; self.candidates.list.len()];
        for changed in self.counted.changed() {
            if let Some(number) = self.candidates.find(Key::of_entity(&changed.word)) {
                recounted[ChunkId(number).index()] = true;
            }
        }
        recounted
    }
}

/// The chunks of which relations or extractions said something earlier that they don't say now.
fn unsaid(earlier: &Snapshot, snapshot: &Snapshot) -> Result<RoaringBitmap, Damage> {
    let mut extractions = 0;
    for segment in earlier.segments() {
        extractions += segment.extractions()?;
    }
    if extractions == 0 {
        return Ok(RoaringBitmap::new());
    }
    let (then, now) = (said(earlier)?, said(snapshot)?);
    Ok(then.difference(&now).map(|(chunk, _)| *chunk).collect())
}

/// Chunk and entity of everything that relations and extractions say of live chunks.
fn said(snapshot: &Snapshot) -> Result<HashSet<(u32, [u8; 16])>, Damage> {
    let mut said = HashSet::new();
    for segment in snapshot.segments() {
        for relation in segment.relations()?.iter() {
            for source in snapshot.evidence(segment, &relation)? {
                for end in [relation.subject, relation.object].map(EntitySlot) {
                    said.insert((source.chunk, segment.entity(end)?.key));
                }
            }
        }
        for found in snapshot.all_extracted(segment)? {
            let (chunk, row) = found?;
            said.insert((chunk.0, segment.entity(segment.spelling(row.spelling)?.0)?.key));
        }
    }
    Ok(said)
}

/// Texts of chunks.
fn texts_of(snapshot: &Snapshot, chunks: &RoaringBitmap) -> Result<Vec<Text>, Damage> {
    let text = |id: u32| -> Result<Text, Damage> {
        let position = snapshot.segments().partition_point(|segment| segment.entry().chunks_end <= id);
        Ok(Text { id: ChunkId(id), position, content: snapshot.chunk(ChunkId(id))?.text()? })
    };
    chunks.iter().collect::<Vec<u32>>().into_par_iter().map(text).collect()
}
