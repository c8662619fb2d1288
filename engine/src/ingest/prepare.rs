//! Reads documents in parallel.

use crate::distance;
use crate::index::control::{Cancelled, Control};
use crate::index::terms::analysis::Analyzer;
use crate::index::terms::counts;
use crate::ingest::chunking::{ChunkStrategy, Cut};
use crate::ingest::definitions::{self, Place};
use crate::ingest::{Document, Part, PartKind, Pipeline, Rejected, Staged, triple};
use crate::model::{Certainty, Embed, Extraction};
use crate::segment::{StagedChunk, StagedDocument, StagedMention, StagedRelation, StagedVector};
use crate::snapshot::Snapshot;
use crate::writer::Batch;
use hedgerow_format::segment::mention_flags;
use hedgerow_format::{Key, limits, name};
use rayon::prelude::*;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Texts that are given to the embedder in one call.
pub(super) const EMBEDDED_TOGETHER: usize = 64;

enum Outcome {
    Staged(Box<StagedDocument>),
    Unchanged(String),
    Rejected(Rejected),
}

pub(super) fn stage(
    pipeline: &Pipeline<'_>,
    snapshot: &Snapshot,
    documents: Vec<Document>,
    batch: &mut Batch,
    control: &dyn Control,
) -> Result<Staged, Cancelled> {
    let read = |analyzer: &mut Analyzer, document: Document| {
        if control.cancelled() {
            return Err(Cancelled);
        }
        let key = document.key.clone();
        Ok(match read(pipeline, snapshot, document, analyzer, control) {
            Ok(Some(staged)) => Outcome::Staged(Box::new(staged)),
            Ok(None) => Outcome::Unchanged(key),
            Err(_) if control.cancelled() => return Err(Cancelled),
            Err(reason) => Outcome::Rejected(Rejected { key, reason }),
        })
    };
    let outcomes: Result<Vec<Outcome>, Cancelled> = documents.into_par_iter().map_init(Analyzer::new, read).collect();
    let mut outcomes = outcomes?;
    if let Some(embedder) = pipeline.embedder {
        embed(embedder, &mut outcomes, control)?;
    }
    let mut staged = Staged::default();
    let mut keys = BTreeSet::new();
    for outcome in outcomes {
        match outcome {
            Outcome::Rejected(rejected) => staged.rejected.push(rejected),
            Outcome::Unchanged(key) => {
                staged.unchanged += 1;
                keys.remove(&key);
                if batch.keep(&key) {
                    staged.duplicates.push(key);
                }
            }
            Outcome::Staged(document) => {
                let key = document.name.clone();
                if batch.put(*document) {
                    staged.duplicates.push(key.clone());
                }
                keys.insert(key);
            }
        }
    }
    staged.staged = keys.len() as u64;
    Ok(staged)
}

/// Everything but the vectors. `None` where the store has the document just so.
fn read(
    pipeline: &Pipeline<'_>,
    snapshot: &Snapshot,
    document: Document,
    analyzer: &mut Analyzer,
    control: &dyn Control,
) -> Result<Option<StagedDocument>, String> {
    let metadata = json(&document.metadata)?;
    check(&document)?;
    let known = snapshot.find_document(&document.key).map_err(|damage| damage.to_string())?;
    let known = known.map(|known| known.fingerprint());
    // Where cutting is dear, the places of the chunks, which follow from the rest, are left out.
    let is_dear = document.chunks.is_none()
        && pipeline.chunking.is_some_and(|chunking| chunking.strategy == ChunkStrategy::Semantic);
    let early = is_dear.then(|| fingerprint(pipeline, &document, &metadata, &document.text, &[]));
    if early.is_some() && early == known {
        return Ok(None);
    }
    let Cut { text, parts, ranges } = cut(pipeline, &document, control)?;
    check_chunks(&text, &ranges)?;
    let fingerprint = early.unwrap_or_else(|| fingerprint(pipeline, &document, &metadata, &text, &ranges));
    if known == Some(fingerprint) {
        return Ok(None);
    }
    let mut chunks = Vec::with_capacity(ranges.len());
    let mut title = counts::Title::new(&document.title);
    for (ordinal, range) in ranges.into_iter().enumerate() {
        let given = document.chunks.as_ref().and_then(|chunks| chunks.get(ordinal));
        let body = &text[range.clone()];
        let mut chunk = StagedChunk { range: bytes(&range)?, ..StagedChunk::default() };
        if let Some(given) = given {
            chunk.metadata = json(&given.metadata)?;
        } else if let Some(part) = part_at(&parts, chunk.range.start) {
            chunk.kind = u32::from(part.kind == PartKind::Table && range.end <= part.range.end);
            part.heading.clone_into(&mut chunk.heading);
            chunk.metadata = json(&pages(part, part_at(&parts, chunk.range.end.saturating_sub(1))))?;
        }
        (chunk.terms, chunk.length) = counts::of_chunk(analyzer, &mut title, body);
        if let Some(extractor) = pipeline.extractor {
            let found = extractor.extract(&document.title, body).map_err(|error| error.to_string())?;
            let title = if ordinal == 0 { document.title.as_str() } else { "" };
            let before: Option<&str> = chunks.last().map(|before: &StagedChunk| before.heading.as_str());
            let (key, heading) = (document.key.as_str(), chunk.heading.as_str());
            let place = Place { key, title: &document.title, heading, heading_before: before, text: body };
            (chunk.mentions, chunk.relations) = graph(found, title, &range, place)?;
        }
        chunks.push(chunk);
    }
    let text = text.into_owned();
    Ok(Some(StagedDocument {
        name: document.key,
        fingerprint,
        title: document.title,
        source: document.source,
        media_type: if document.media_type.is_empty() { "text/plain".into() } else { document.media_type },
        metadata,
        text,
        chunks,
        ..StagedDocument::default()
    }))
}

/// The part that a byte lies in, or the last before it.
fn part_at(parts: &[Part], byte: u32) -> Option<&Part> {
    let after = parts.partition_point(|part| part.range.start as u64 <= u64::from(byte));
    parts.get(after.checked_sub(1)?)
}

/// The page that a chunk begins on, and the one that it ends on where that is a later one.
fn pages(first: &Part, last: Option<&Part>) -> Map<String, Value> {
    let page = first.page.map(|page| ("page".to_owned(), Value::from(page)));
    let last = last.and_then(|last| last.page).filter(|last| first.page.is_some_and(|page| page < *last));
    page.into_iter().chain(last.map(|last| ("page_last".to_owned(), Value::from(last)))).collect()
}

fn json(map: &Map<String, Value>) -> Result<String, String> {
    if map.is_empty() {
        return Ok(String::new());
    }
    let text = serde_json::to_string(map).map_err(|error| error.to_string())?;
    if text.len() > limits::METADATA_BYTES {
        return Err(format!("metadata must have at most {} bytes, and has {}", limits::METADATA_BYTES, text.len()));
    }
    Ok(text)
}

/// The text, its parts, and the chunks' places in it.
fn cut<'d>(pipeline: &Pipeline<'_>, document: &'d Document, control: &dyn Control) -> Result<Cut<'d>, String> {
    if let Some(given) = &document.chunks {
        let texts: Vec<&str> = given.iter().map(|chunk| chunk.text.as_str()).collect();
        if let Some(empty) = texts.iter().position(|text| text.trim().is_empty()) {
            return Err(format!("chunks[{empty}].text must not be empty"));
        }
        let mut ranges = Vec::with_capacity(texts.len());
        let mut start = 0;
        for text in &texts {
            ranges.push(trimmed(text, start));
            start += text.len() + 2;
        }
        return Ok(Cut { text: texts.join("\n\n").into(), parts: Cow::Borrowed(&[]), ranges });
    }
    match &pipeline.chunking {
        Some(chunking) => chunking.cut(document, pipeline.embedder, control),
        None => Ok(Cut { ranges: vec![trimmed(&document.text, 0)], ..Cut::whole(document) }),
    }
}

fn trimmed(text: &str, offset: usize) -> Range<usize> {
    let start = offset + (text.len() - text.trim_start().len());
    start..start + text.trim().len()
}

fn check(document: &Document) -> Result<(), String> {
    let names = [
        ("key", &document.key),
        ("title", &document.title),
        ("source", &document.source),
        ("media_type", &document.media_type),
    ];
    for (field, value) in names {
        if value.len() > limits::NAME_BYTES {
            return Err(format!("{field} must have at most {} bytes, and has {}", limits::NAME_BYTES, value.len()));
        }
    }
    if document.key.is_empty() {
        return Err("key must not be empty".into());
    }
    if document.chunks.is_some() {
        return Ok(());
    }
    check_length(&document.text)?;
    wrong_part(&document.text, &document.parts).map_or(Ok(()), Err)
}

fn check_length(text: &str) -> Result<(), String> {
    if text.len() > limits::DOCUMENT_BYTES {
        return Err(format!("text must have at most {} bytes, and has {}", limits::DOCUMENT_BYTES, text.len()));
    }
    Ok(())
}

fn check_chunks(text: &str, ranges: &[Range<usize>]) -> Result<(), String> {
    check_length(text)?;
    if ranges.iter().all(Range::is_empty) {
        return Err("text must not be empty".into());
    }
    if ranges.len() > limits::DOCUMENT_CHUNKS {
        return Err(format!(
            "a document must have at most {} chunks, and has {}",
            limits::DOCUMENT_CHUNKS,
            ranges.len()
        ));
    }
    Ok(())
}

/// The first part that does not fit, and why.
fn wrong_part(text: &str, parts: &[Part]) -> Option<String> {
    let mut end = 0;
    for (position, Part { range, heading, .. }) in parts.iter().enumerate() {
        if range.start < end || text.get(range.clone()).is_none() {
            return Some(format!("parts[{position}] must be whole characters behind byte {end}, and is {range:?}"));
        }
        if heading.len() > limits::NAME_BYTES {
            return Some(format!("parts[{position}].heading must have at most {} bytes", limits::NAME_BYTES));
        }
        end = range.end;
    }
    None
}

/// Every part is preceded by its length, so that no two documents give the same bytes. Where a document came from is left
/// out: the same content from another place is no change.
fn fingerprint(
    pipeline: &Pipeline<'_>,
    document: &Document,
    metadata: &str,
    text: &str,
    ranges: &[Range<usize>],
) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for text in [&pipeline.id(), &document.key, &document.title, &document.media_type, metadata, text] {
        part(text.as_bytes());
    }
    for range in ranges {
        part(&(range.start as u64).to_le_bytes());
        part(&(range.end as u64).to_le_bytes());
    }
    for Part { range, heading, page, kind } in &document.parts {
        let numbers =
            [range.start as u64, range.end as u64, u64::from(page.unwrap_or(0)), u64::from(*kind == PartKind::Table)];
        part(heading.as_bytes());
        for number in numbers {
            part(&number.to_le_bytes());
        }
    }
    for chunk in document.chunks.iter().flatten() {
        part(json(&chunk.metadata).unwrap_or_default().as_bytes());
    }
    hasher.finalize().as_bytes().first_chunk().copied().unwrap_or_default()
}

fn bytes(range: &Range<usize>) -> Result<Range<u32>, String> {
    let place = |byte: usize| u32::try_from(byte).map_err(|_| "text is too long".to_owned());
    Ok(place(range.start)?..place(range.end)?)
}

/// Mentions by entity, and relations, of one chunk; `title` is empty but for the first.
fn graph(
    found: Extraction,
    title: &str,
    range: &Range<usize>,
    chunk: Place<'_>,
) -> Result<(Vec<StagedMention>, Vec<StagedRelation>), String> {
    let mut mentions: BTreeMap<Key, StagedMention> = BTreeMap::new();
    for mention in found.mentions {
        if chunk.text.get(mention.range.clone()).is_none_or(str::is_empty) {
            return Err(format!(
                "the extractor gave {:?} a place that is not whole characters of the text: {:?}",
                mention.name, mention.range
            ));
        }
        let flag = match mention.certainty {
            Certainty::Certain => mention_flags::CERTAIN,
            Certainty::SentenceStart => mention_flags::SENTENCE_START,
        };
        let place = bytes(&(mention.range.start + range.start..mention.range.end + range.start))?;
        add(&mut mentions, &mention.name, &mention.kind, flag, Some(place));
    }
    let whole = name::title_name(title);
    add(&mut mentions, whole, "", mention_flags::TITLE, None);
    if let Some((part, _)) = whole.split_once(',')
        && name::name_key_text(part).len() > 2
    {
        add(&mut mentions, part, "", mention_flags::TITLE_PART, None);
    }
    definitions::for_each(chunk, |name| add(&mut mentions, name, "", mention_flags::DEFINES, None));
    let mut relations = Vec::new();
    for relation in found.relations {
        let ends = ((relation.subject.as_str(), ""), (relation.object.as_str(), ""));
        let place = bytes(&(relation.range.start + range.start..relation.range.end + range.start))?;
        // What a model says of itself or of nothing is left out; the rest of the document is worth keeping.
        if let Ok(staged) = triple(ends.0, &relation.predicate, ends.1, relation.weight) {
            for end in [&staged.subject, &staged.object] {
                add(&mut mentions, &end.name, "", mention_flags::RELATED, None);
            }
            relations.push(StagedRelation { range: place, ..staged });
        }
    }
    let mut mentions: Vec<StagedMention> = mentions.into_values().collect();
    for mention in &mut mentions {
        mention.ranges.sort_by_key(|range| (range.start, range.end));
    }
    Ok((mentions, relations))
}

fn add(mentions: &mut BTreeMap<Key, StagedMention>, given: &str, kind: &str, flag: u16, place: Option<Range<u32>>) {
    let key = name::name_key_text(given);
    if !name::is_meaningful(&key) || given.len() > limits::NAME_BYTES || kind.len() > limits::NAME_BYTES {
        return;
    }
    let key = Key::of_entity(&key);
    let mention = mentions.entry(key).or_insert_with(|| StagedMention {
        key,
        name: String::new(),
        kind: String::new(),
        flags: 0,
        ranges: Vec::new(),
    });
    mention.flags |= flag;
    // A name that a line break cuts is one name.
    let spelling = given.split_whitespace().collect::<Vec<_>>().join(" ");
    if mention.name.is_empty() || name::better_spelling(&mention.name, &spelling) == spelling {
        mention.name = spelling;
    }
    if name::better_kind(&mention.kind, kind) == kind {
        kind.clone_into(&mut mention.kind);
    }
    mention.ranges.extend(place);
}

/// Gives every staged chunk its vector. A vector that cannot be used rejects its document, a call that fails all
/// documents that it was made for.
fn embed(embedder: &dyn Embed, outcomes: &mut [Outcome], control: &dyn Control) -> Result<(), Cancelled> {
    let mut places = Vec::new();
    let mut texts = Vec::new();
    for (position, outcome) in outcomes.iter().enumerate() {
        let Outcome::Staged(document) = outcome else { continue };
        for (chunk, staged) in document.chunks.iter().enumerate() {
            let body = usize::try_from(staged.range.start).ok().zip(usize::try_from(staged.range.end).ok());
            let body = body.and_then(|(start, end)| document.text.get(start..end)).unwrap_or_default();
            texts.push(if document.title.is_empty() { body.to_owned() } else { format!("{}\n{body}", document.title) });
            places.push((position, chunk));
        }
    }
    let made: Result<Vec<Vec<Vector>>, Cancelled> = texts
        .par_chunks(EMBEDDED_TOGETHER)
        .map(|texts| {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            if control.cancelled() { Err(Cancelled) } else { Ok(vectors(embedder, &texts)) }
        })
        .collect();
    for ((position, chunk), vector) in places.into_iter().zip(made?.into_iter().flatten()) {
        let Outcome::Staged(document) = &mut outcomes[position] else { continue };
        match vector {
            Ok(vector) => document.chunks[chunk].vectors.extend(vector),
            Err(reason) => {
                let key = std::mem::take(&mut document.name);
                outcomes[position] = Outcome::Rejected(Rejected { key, reason });
            }
        }
    }
    Ok(())
}

/// The vector of a text, none where it has none, or why it cannot be used.
pub(super) type Vector = Result<Option<StagedVector>, String>;

/// One call: as many vectors as texts, normalised.
pub(super) fn vectors(embedder: &dyn Embed, texts: &[&str]) -> Vec<Vector> {
    let model = embedder.model();
    let made = match embedder.embed(texts) {
        Ok(made) if made.len() == texts.len() => made,
        Ok(made) => {
            let reason = format!("the embedder {model} gave {} vectors for {} texts", made.len(), texts.len());
            return vec![Err(reason); texts.len()];
        }
        Err(error) => return vec![Err(error.to_string()); texts.len()],
    };
    let staged = |vector: Option<Vec<f32>>| {
        let Some(mut components) = vector else { return Ok(None) };
        let (expected, found) = (embedder.dimensions(), components.len());
        if found != expected {
            return Err(format!("the embedder {model} gave a vector of {found} components, not {expected}"));
        }
        distance::normalise(&mut components)
            .map_err(|fault| format!("the embedder {model} gave a vector that cannot be used: {fault}"))?;
        Ok(Some(StagedVector { space: embedder.space().to_owned(), model: model.to_owned(), components }))
    };
    made.into_iter().map(staged).collect()
}
