//! What the files of a generation say about each other, and what the invariants of one file leave open.

use crate::distance;
use crate::error::Damage;
use crate::index::control::{Cancelled, Control};
use crate::index::edges::EdgeRules;
use crate::projection::{Communities, Edges, Links, Opened};
use crate::segment::Segment;
use crate::snapshot::Snapshot;
use hedgerow_format::edges::PairKind;
use hedgerow_format::file::FileKind;
use hedgerow_format::manifest::EdgeSettings;
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::segment::{ChunkRow, NO_CHUNK, Terms};
use hedgerow_format::{ChunkId, DocumentId, Key, TextRef};
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong with a generation whose segments are whole, one by one; `sound` are the numbers of the projections that
/// are. Each kind of fault is told once a file, with the number of others like it.
pub(super) fn problems(
    snapshot: &Snapshot,
    sound: &BTreeSet<u64>,
    control: &dyn Control,
) -> Result<Vec<String>, Cancelled> {
    let mut found = Findings::default();
    let mut models = BTreeMap::new();
    let check = |checked: Result<(), Damage>, found: &mut Findings| {
        if let Err(damage) = checked {
            found.add("the generation", "cannot be read across its files", || damage.to_string());
        }
        if control.cancelled() { Err(Cancelled) } else { Ok(()) }
    };
    check(keys(snapshot, &mut found), &mut found)?;
    for segment in snapshot.segments() {
        let file = segment.file().name().to_string();
        sections(segment, &file, &mut found);
        check(metadata(segment, &file, &mut found), &mut found)?;
        check(sources(snapshot, segment, &file, &mut found), &mut found)?;
        check(extracted(snapshot, segment, &file, &mut found), &mut found)?;
        check(vectors(segment, &file, &mut models, &mut found), &mut found)?;
        check(lengths(segment, &file, &mut found), &mut found)?;
    }
    projections(snapshot, &mut found);
    if let Some(links) = snapshot.links().filter(|links| sound.contains(&links.entry().file.number)) {
        check(links_follow(snapshot, links, &mut found), &mut found)?;
    }
    for edges in snapshot.edges().filter(|edges| sound.contains(&edges.entry().file.number)) {
        check(edges_agree(snapshot, edges, &mut found), &mut found)?;
    }
    if let Some(communities) = snapshot.communities().filter(|made| sound.contains(&made.entry().file.number)) {
        check(members_live(snapshot, communities, &mut found), &mut found)?;
    }
    Ok(found.sentences())
}

/// Findings by file and kind: the first one, and how many there are.
#[derive(Debug, Default)]
struct Findings(BTreeMap<(String, &'static str), (String, u64)>);

impl Findings {
    fn add(&mut self, file: &str, what: &'static str, place: impl FnOnce() -> String) {
        self.0.entry((file.to_owned(), what)).or_insert_with(|| (place(), 0)).1 += 1;
    }

    fn sentences(self) -> Vec<String> {
        let sentence = |((file, what), (place, count)): ((String, &'static str), (String, u64))| {
            let others = if count > 1 { format!("; {} more like it", count - 1) } else { String::new() };
            format!("{file} {what}: {place}{others}")
        };
        self.0.into_iter().map(sentence).collect()
    }
}

/// Of a document's key at most one document is live.
fn keys(snapshot: &Snapshot, found: &mut Findings) -> Result<(), Damage> {
    let mut keys = Vec::new();
    for id in snapshot.document_ids() {
        keys.push((Key::of_document(snapshot.document(id)?.key()?), id));
    }
    keys.sort_unstable();
    for pair in keys.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let key = snapshot.document(pair[0].1)?.key()?;
        found.add("the generation", "has two live documents with one key", || {
            format!("{key:?} is that of the documents {} and {}", pair[0].1.0, pair[1].1.0)
        });
    }
    Ok(())
}

/// Metadata is JSON inside its braces, too.
fn metadata(segment: &Segment, file: &str, found: &mut Findings) -> Result<(), Damage> {
    let damage = |error| segment.file().damage(error);
    let documents = segment.documents()?;
    let chunks = segment.file().rows::<ChunkRow>(SectionKind::Chunks).map_err(damage)?;
    let mut check = |kind: SectionKind, row: usize, place: TextRef| -> Result<(), Damage> {
        let text = segment.string(place)?;
        if !text.is_empty() && serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_err() {
            found.add(file, "has metadata that is not JSON", || segment.file().place(kind, row));
        }
        Ok(())
    };
    documents
        .iter()
        .enumerate()
        .try_for_each(|(row, document)| check(SectionKind::Documents, row, document.metadata))?;
    chunks.iter().enumerate().try_for_each(|(row, chunk)| check(SectionKind::Chunks, row, chunk.metadata))
}

/// A segment has no sections of other kinds of files.
fn sections(segment: &Segment, file: &str, found: &mut Findings) {
    for kind in segment.file().sections().filter(|kind| *kind >= SectionKind::LinkEntities) {
        found.add(file, "has a section that no segment has", || format!("section {}", kind.name()));
    }
}

/// Places of extracted entities lie inside the text. Extractions that a compaction left behind with their documents don't
/// count.
fn extracted(snapshot: &Snapshot, segment: &Segment, file: &str, found: &mut Findings) -> Result<(), Damage> {
    for (number, row) in segment.extracted()?.iter().enumerate() {
        let chunk = segment.extraction(usize::try_from(row.extraction).unwrap_or(usize::MAX))?.chunk;
        let Ok(document) = snapshot.chunk(chunk).and_then(|chunk| chunk.document()) else { continue };
        if row.end > document.text_bytes() {
            found.add(file, "has an extracted entity outside its document's text", || {
                segment.file().place(SectionKind::Extracted, number)
            });
        }
    }
    Ok(())
}

/// Places of evidence lie inside the text, and its chunk belongs to its document. Sources that a compaction left behind
/// with their documents don't count.
fn sources(snapshot: &Snapshot, segment: &Segment, file: &str, found: &mut Findings) -> Result<(), Damage> {
    for relation in segment.relations()?.iter() {
        for (row, source) in (u64::from(relation.first_evidence)..).zip(segment.evidence(&relation)?) {
            let Ok(document) = snapshot.document(DocumentId(source.document)) else { continue };
            let place = || segment.file().place(SectionKind::Evidence, usize::try_from(row).unwrap_or(usize::MAX));
            if source.end > document.text_bytes() {
                found.add(file, "has evidence outside its document's text", place);
            }
            let chunk = snapshot.chunk(ChunkId(source.chunk)).and_then(|chunk| chunk.document());
            if source.chunk != NO_CHUNK && chunk.is_ok_and(|chunk| chunk.id().0 != source.document) {
                found.add(file, "has evidence whose chunk is another document's", place);
            }
        }
    }
    Ok(())
}

/// Vectors have length one, and a space has one model and one number of components in all segments.
fn vectors(
    segment: &Segment,
    file: &str,
    models: &mut BTreeMap<String, (String, usize)>,
    found: &mut Findings,
) -> Result<(), Damage> {
    let mut first = 0;
    for view in segment.spaces()? {
        let known = models.entry(view.name.to_owned()).or_insert_with(|| (view.model.to_owned(), view.dimensions));
        if (known.0.as_str(), known.1) != (view.model, view.dimensions) {
            let (model, dimensions) = (&known.0, known.1);
            found.add(file, "gives a vector space another model than an older segment", || {
                format!("{}: {dimensions} of {model} expected, {} of {} found", view.name, view.dimensions, view.model)
            });
        }
        for row in view.vectors()? {
            let row: Vec<f32> = row.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            if (distance::dot(&row, &row) - 1.0).abs() > 1e-3 {
                found.add(file, "has a vector that is not of length one", || {
                    segment.file().place(SectionKind::Vectors, first)
                });
            }
            first += view.dimensions;
        }
    }
    Ok(())
}

/// The length of a chunk is the sum of its terms' frequencies; not below it where one was cut.
fn lengths(segment: &Segment, file: &str, found: &mut Findings) -> Result<(), Damage> {
    let damage = |error| segment.file().damage(error);
    let lengths = segment.lengths()?;
    let terms = Terms::of(segment.file()).map_err(damage)?;
    let chunks = segment.file().u32s(SectionKind::PostingChunks).map_err(damage)?;
    let frequencies = segment.file().u16s(SectionKind::PostingFrequencies).map_err(damage)?;
    let mut sums = vec![(0_u64, false); lengths.len()];
    for row in 0..terms.len() {
        let Some((_, postings)) = terms.get(row) else { continue };
        for (slot, frequency) in chunks.slice(postings.clone()).iter().zip(frequencies.slice(postings).iter()) {
            if let Some((sum, cut)) = usize::try_from(slot).ok().and_then(|slot| sums.get_mut(slot)) {
                *sum += u64::from(frequency);
                *cut |= frequency == u16::MAX;
            }
        }
    }
    for (row, (length, (sum, cut))) in lengths.iter().zip(sums).enumerate() {
        let length = u64::from(length);
        if length < sum.min(u64::from(u32::MAX)) || (length > sum && !cut) {
            found.add(file, "has a chunk whose length is not that of its terms", || {
                format!("{sum} expected, {length} found at {}", segment.file().place(SectionKind::ChunkLengths, row))
            });
        }
    }
    Ok(())
}

/// There is at most one links projection, and one edges projection a space and kind of pairs; those of a space have the
/// same settings.
fn projections(snapshot: &Snapshot, found: &mut Findings) {
    let (mut kinds, mut settings) = (BTreeSet::new(), BTreeMap::new());
    for entry in &snapshot.manifest().projections {
        let pairs = PairKind::from_number(entry.pairs).map_or("", PairKind::name);
        if !kinds.insert((entry.kind, entry.space.as_str(), entry.pairs)) {
            let kind = FileKind::from_number(entry.kind).map_or("projection", FileKind::name);
            found.add("the manifest", "names two projections for one thing", || {
                format!("{kind} {} {pairs}", entry.space)
            });
        }
        if *settings.entry((entry.kind, entry.space.as_str())).or_insert(&entry.settings) != &entry.settings {
            found.add("the manifest", "has two settings for the edges of one space", || entry.space.clone());
        }
    }
}

/// In step with the facts, a projection speaks of live chunks only.
fn only_live(snapshot: &Snapshot, opened: &Opened, rows: impl Iterator<Item = ChunkId>, found: &mut Findings) {
    if opened.entry().facts != snapshot.manifest().facts {
        return;
    }
    for chunk in rows.filter(|chunk| !snapshot.is_live(*chunk) || snapshot.chunk(*chunk).is_err()) {
        let file = opened.file().name().to_string();
        found.add(&file, "speaks of a chunk that is not live", || format!("chunk {}", chunk.0));
    }
}

fn links_follow(snapshot: &Snapshot, links: &Links, found: &mut Findings) -> Result<(), Damage> {
    for chunk in (0..links.entry().chunks_end).map(ChunkId) {
        if links.mentions(chunk)?.len() + links.defining(chunk)?.len() > 0 {
            only_live(snapshot, links, std::iter::once(chunk), found);
        }
    }
    Ok(())
}

/// In step with the facts and with links, communities have live entities as members.
fn members_live(snapshot: &Snapshot, communities: &Communities, found: &mut Findings) -> Result<(), Damage> {
    let facts = snapshot.manifest().facts;
    let Some(links) = snapshot.links_in_step() else { return Ok(()) };
    for community in communities.communities()?.iter().filter(|_| communities.entry().facts == facts) {
        for member in communities.members(&community)? {
            if links.find(member)?.is_none() {
                let file = communities.file().name().to_string();
                found.add(&file, "has a member that is no live entity", || format!("{member:?}"));
            }
        }
    }
    Ok(())
}

/// An edge has two different ends of its kind and the same weight at both, and the report says what the manifest does.
fn edges_agree(snapshot: &Snapshot, edges: &Edges, found: &mut Findings) -> Result<(), Damage> {
    let file = edges.file().name().to_string();
    let (report, entry) = (edges.report()?, edges.entry());
    let rules = EdgeRules::of(&entry.settings);
    let percentile = rules.percentile_of(edges.kind());
    let reported = (report.kind, edges.reported_settings()?, edges.reported_space()?);
    let expected = EdgeSettings { percentiles: [percentile; 3], ..entry.settings.clone() };
    if reported != (entry.pairs, expected, entry.space.as_str()) {
        found.add(&file, "has another report than the manifest says", || format!("{reported:?} found"));
    }
    for chunk in (0..entry.chunks_end).map(ChunkId) {
        let mut has_edges = false;
        for (target, weight) in edges.neighbours(chunk)? {
            has_edges = true;
            if let (Ok(one), Ok(other)) = (snapshot.chunk(chunk), snapshot.chunk(target))
                && PairKind::of([one.is_table(), other.is_table()]) != edges.kind()
            {
                found.add(&file, "has an edge between chunks of another kind", || {
                    format!("chunks {} and {}", chunk.0, target.0)
                });
            }
            if target == chunk {
                found.add(&file, "has an edge from a chunk to itself", || format!("chunk {}", chunk.0));
            }
            if edges.origins(chunk, target)? != edges.origins(target, chunk)? {
                found.add(&file, "has an edge with two origins", || format!("chunks {} and {}", chunk.0, target.0));
            }
            if edges.weight(target, chunk)?.is_none_or(|back| back.to_bits() != weight.to_bits()) {
                found.add(&file, "has an edge with two weights", || format!("chunks {} and {}", chunk.0, target.0));
            }
        }
        if has_edges {
            only_live(snapshot, edges, std::iter::once(chunk), found);
        }
    }
    Ok(())
}
