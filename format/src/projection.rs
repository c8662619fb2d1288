//! The records of projections, and the proof that their sections fit together.

mod communities;
mod relations;
mod vectors;

pub use communities::{
    CommunityLevelRow, CommunityReportRow, CommunityRow, CommunitySettingsRow, NO_PARENT, ReportCitationRow,
    communities_findings, validate_communities,
};
pub use vectors::{
    CoveredSegmentRow, INDEX_NODES, NOBODY, VectorIndexRow, WalkRow, code_bytes, validate_vectors, vectors_findings,
};

use crate::edges::PairKind;
use crate::record::{record, to_usize};
use crate::section::{SectionKind, Sections};
use crate::{FormatError, Key, Rows, TextRef, limits};
use std::ops::Range;

/// How an entity may be recognised.
pub mod link_flags {
    /// A document's title or the first part of one: text is searched for it.
    pub const GAZETTEER: u32 = 1;
    /// One word that the corpus writes in lower case more often than with a capital in mid-sentence.
    pub const COMMON: u32 = 2;
    /// One word that the corpus writes in lower case at least four times as often.
    pub const MOSTLY_LOWER: u32 = 4;
    /// All of them.
    pub const ALL: u32 = 7;
}

record! {
    /// An entity that a live chunk mentions, or that a live document has as its title.
    LinkEntityRow: 36 bytes {
        0 key: [u8; 16] = "Its key.";
        16 name: TextRef = "Its name: the best spelling among the live segments that have it.";
        24 kind: TextRef = "Its type, the lowest in byte order that is not empty; may be empty.";
        32 flags: u32 = "1 gazetteer: a document's title, or its part before the first comma, or what at most three chunks define otherwise; 2 one word written in lower case more often than with a capital; 4 at least four times as often.";
    }
}

record! {
    /// How similarity edges were made.
    EdgeReportRow: 108 bytes {
        0 space: TextRef = "Name of the vector space.";
        8 percentile_thousandths: u32 = "The percentile of this kind of pairs, in thousandths of a per cent.";
        12 top_m: u32 = "How many partners of the kind a chunk chooses.";
        16 rows: u64 = "Chunks that have a vector and occur in pairs of the kind.";
        24 pairs: u64 = "Pairs that were compared: all of the kind.";
        32 passed: u64 = "Pairs at or above the threshold.";
        40 kept: u64 = "Pairs that are edges.";
        48 threshold: f32 = "The order statistic at the percentile.";
        52 degree_max: u32 = "Highest number of edges of a chunk.";
        56 components: u32 = "Connected components among these chunks.";
        60 kind: u32 = "What the chunks of a pair are: 0 no tables, 1 both tables, 2 one of them a table.";
        64 tables: u64 = "How many of these chunks are tables.";
        72 shared: u64 = "Edges that are none by similarity: a rare entity made them.";
        80 cap: u32 = "0 a pair stays if either end chose it, 1 if both did.";
        84 nearest: u32 = "A pair is a candidate if one end is among so many nearest of the other; 0 all are.";
        88 least: u32 = "The image of the similarity that a pair must have at least; 0 for any.";
        92 shared_chunks: u32 = "An entity that at most so many chunks mention joins them whatever their similarity; 0 none does.";
        96 shared_top_m: u32 = "How many partners a chunk chooses for the entities that they share.";
        100 weighted: u32 = "0 all signals must agree, 1 they are weighted.";
        104 nearest_by: u32 = "0 the nearest are found by comparing all, 1 by walks through an index.";
    }
}

record! {
    /// A signal of how alike two chunks are, in place of the similarity of their vectors alone.
    EdgeSignalRow: 24 bytes {
        0 what: u32 = "0 the space's own vectors, 1 vectors of another space, 2 entities, 3 rare entities, 4 columns, 5 words, 6 titles.";
        4 percentile: u32 = "Its percentile, in thousandths of a per cent.";
        8 weight: u32 = "Its weight, in thousandths.";
        12 space: TextRef = "The other space; else empty.";
        20 threshold: f32 = "The order statistic at its percentile; 0 where it takes no part in pairs of the kind.";
    }
}

/// Which rules made a pair an edge.
pub mod edge_origins {
    /// The similarity.
    pub const SIMILARITY: u8 = 1;
    /// A rare entity that both mention.
    pub const SHARED: u8 = 2;
    /// All of them.
    pub const ALL: u8 = 3;
}

record! {
    /// What following the edges needs of a chunk.
    EdgeRow: 32 bytes {
        0 vector: [u8; 16] = "The first 16 bytes of the BLAKE3 hash of its vector.";
        16 chunk: u32 = "Its id.";
        20 rank: u32 = "Its place in the order of document keys and ordinals; where the kind is 2, tables come before all others.";
        24 floor: u32 = "The image from which on its edges and spares hold all its partners, those apart that other chunks chose alone.";
        28 spares_end: u32 = "Where its spares end; they begin where those of the row before end.";
    }
}

record! {
    /// A partner that is no choice of its chunk: the top is full, or the similarity is below the threshold.
    EdgeSpare: 8 bytes {
        0 row: u32 = "The partner's row.";
        4 similarity: f32 = "How similar it is.";
    }
}

record! {
    /// How many pairs have one similarity.
    EdgeCount: 8 bytes {
        0 pairs: u64 = "Pairs whose image is the lowest one and the place of this count.";
    }
}

record! {
    /// What the counts begin with.
    EdgeReserveRow: 16 bytes {
        0 below: u64 = "Pairs with lower images.";
        8 low: u32 = "The lowest image that is counted.";
        12 reserved: u32 = "Zero.";
    }
}

record! {
    /// A word of the corpus, and how often it is written how; it ends where the next row's begins, and the last where the text ends.
    LinkWordRow: 12 bytes {
        0 text: u32 = "First of its bytes in `link word text`.";
        4 lower: u32 = "How often it begins with a lower-case letter, cut at 4,294,967,295.";
        8 capital: u32 = "How often it begins with an upper-case letter where no sentence begins, cut likewise.";
    }
}

record! {
    /// A phrase that a chunk begins with.
    LinkLeadRow: 20 bytes {
        0 key: [u8; 16] = "Key of the entity that the phrase would name.";
        16 chunk: u32 = "Id of the chunk.";
    }
}

record! {
    /// A label of relations.
    LinkPredicateRow: 8 bytes {
        0 name: TextRef = "The label; not empty.";
    }
}

/// The words of a links projection with their counts, looked up where they lie.
#[derive(Clone, Copy, Debug)]
pub struct LinkWords<'a> {
    rows: Rows<'a, LinkWordRow>,
    text: &'a [u8],
}

impl<'a> LinkWords<'a> {
    /// The words of a links projection.
    ///
    /// # Errors
    /// [`FormatError::Block`] and [`FormatError::Shape`].
    pub fn of<S: Sections>(file: &'a S) -> Result<Self, FormatError> {
        Ok(Self { rows: file.rows(SectionKind::LinkWords)?, text: file.section(SectionKind::LinkWordText)? })
    }

    /// Number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A word's bytes and its counts.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<(&'a [u8], LinkWordRow)> {
        let found = self.rows.get(row)?;
        let next = self.rows.get(row.checked_add(1)?).map_or(self.text.len(), |next| to_usize(next.text));
        Some((self.text.get(to_usize(found.text)..next)?, found))
    }

    /// The counts of a word, by halving.
    #[must_use]
    pub fn find(&self, word: &str) -> Option<LinkWordRow> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            let (text, row) = self.get(middle)?;
            match text.cmp(word.as_bytes()) {
                std::cmp::Ordering::Equal => return Some(row),
                std::cmp::Ordering::Less => low = middle.saturating_add(1),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

/// A CSR of a projection: its sections, their numbered invariants and how many rows and which targets there may be.
struct Csr {
    offsets: SectionKind,
    targets: SectionKind,
    rows: usize,
    below: usize,
}

impl Csr {
    /// S-CSR-1: offsets rise from zero to the number of targets. S-CSR-2: targets of a row strictly increase, below the limit.
    fn validate<S: Sections>(&self, file: &S) -> Result<(), FormatError> {
        let broken = |section: SectionKind, rule, row: usize| FormatError::Invariant {
            section: section.name(),
            rule,
            row: row as u64,
        };
        let offsets = file.u32s(self.offsets)?;
        let targets = file.u32s(self.targets)?;
        if offsets.len() != self.rows.saturating_add(1) || offsets.get(0) != Some(0) {
            return Err(broken(self.offsets, "S-CSR-1", offsets.len()));
        }
        for row in 0..self.rows {
            let (start, end) = (offsets.get(row), offsets.get(row.saturating_add(1)));
            if start > end {
                return Err(broken(self.offsets, "S-CSR-1", row));
            }
            let mut before = None;
            for target in targets.slice(offsets.row(row)).iter() {
                if before >= Some(target) || to_usize(target) >= self.below {
                    return Err(broken(self.targets, "S-CSR-2", row));
                }
                before = Some(target);
            }
        }
        match offsets.get(self.rows) {
            Some(last) if to_usize(last) == targets.len() => Ok(()),
            _ => Err(broken(self.offsets, "S-CSR-1", self.rows)),
        }
    }

    /// S-CSR-3: `back` holds exactly the same pairs, turned. Both have been validated.
    fn mirrors<S: Sections>(&self, back: &Self, file: &S) -> Result<(), FormatError> {
        let (offsets, targets) = (file.u32s(self.offsets)?, file.u32s(self.targets)?);
        let (back_offsets, back_targets) = (file.u32s(back.offsets)?, file.u32s(back.targets)?);
        let broken = |row: usize| {
            let (section, row) = (back.targets.name(), row as u64);
            FormatError::Invariant { section, rule: "S-CSR-3", row }
        };
        if targets.len() != back_targets.len() {
            return Err(broken(0));
        }
        // Rows ascend, so each pair is the next one of its row in the other direction.
        let mut places: Vec<u32> = back_offsets.iter().collect();
        for row in 0..self.rows {
            for target in targets.slice(offsets.row(row)).iter() {
                let place = places.get_mut(to_usize(target)).ok_or_else(|| broken(row))?;
                let turned = back_targets.get(to_usize(*place)).map(to_usize);
                let end = back_offsets.get(to_usize(target).saturating_add(1));
                if turned != Some(row) || end.is_none_or(|end| *place >= end) {
                    return Err(broken(row));
                }
                *place = place.saturating_add(1);
            }
        }
        Ok(())
    }
}

/// Checks every invariant of a links projection that covers the chunks below `chunks_end`.
///
/// # Errors
/// The first that is broken.
pub fn validate_links<S: Sections>(file: &S, chunks_end: u32) -> Result<(), FormatError> {
    links_findings(file, chunks_end).into_iter().next().map_or(Ok(()), Err)
}

/// Checks every invariant of a links projection apart from that of its entities, which [`validate_link_entities`] checks.
///
/// # Errors
/// The first that is broken.
pub fn validate_link_lists<S: Sections>(file: &S, chunks_end: u32) -> Result<(), FormatError> {
    lists_findings(file, chunks_end).into_iter().next().map_or(Ok(()), Err)
}

/// What is wrong with a links projection: the first finding of its entities, of each of its adjacencies, of its words and of
/// its leads.
pub fn links_findings<S: Sections>(file: &S, chunks_end: u32) -> Vec<FormatError> {
    let mut found: Vec<FormatError> = validate_link_entities(file, 0..usize::MAX).err().into_iter().collect();
    found.extend(lists_findings(file, chunks_end));
    found
}

fn lists_findings<S: Sections>(file: &S, chunks_end: u32) -> Vec<FormatError> {
    let alone = [link_words(file), link_leads(file, chunks_end)];
    let mut found: Vec<FormatError> = alone.into_iter().filter_map(Result::err).collect();
    let entities = match file.rows::<LinkEntityRow>(SectionKind::LinkEntities) {
        Ok(entities) => entities.len(),
        // How long the adjacencies must be, the entities say.
        Err(_) => return found,
    };
    let chunks = to_usize(chunks_end);
    let by_chunk = |offsets, targets| Csr { offsets, targets, rows: chunks, below: entities };
    let by_entity = |offsets, targets| Csr { offsets, targets, rows: entities, below: chunks };
    let mentions = by_chunk(SectionKind::LinkMentionOffsets, SectionKind::LinkMentions);
    let mentioning = by_entity(SectionKind::LinkMentioningOffsets, SectionKind::LinkMentioning);
    let definitions = by_entity(SectionKind::DefinitionOffsets, SectionKind::Definitions);
    let defining = by_chunk(SectionKind::DefiningOffsets, SectionKind::Defining);
    for (csr, back) in [(mentions, mentioning), (definitions, defining)] {
        let broken = [csr.validate(file).err(), back.validate(file).err()];
        let sound = broken.iter().all(Option::is_none);
        found.extend(broken.into_iter().flatten());
        found.extend(if sound { csr.mirrors(&back, file).err() } else { None });
    }
    found.extend(relations::validate(file, entities).err());
    found
}

/// S-LNK-1: checks the entities in some rows; the keys also against the row before them.
///
/// # Errors
/// The first that is broken.
pub fn validate_link_entities<S: Sections>(file: &S, rows: Range<usize>) -> Result<(), FormatError> {
    let entities = file.rows::<LinkEntityRow>(SectionKind::LinkEntities)?;
    let mut before = rows.start.checked_sub(1).and_then(|row| entities.get(row)).map(|entity| Key(entity.key));
    for (row, entity) in (rows.start..).zip(entities.range(rows)) {
        let name = crate::name::name_key_text(file.string(entity.name)?);
        file.string(entity.kind)?;
        let key = Key(entity.key);
        let known = entity.flags & !link_flags::ALL == 0 && Key::of_entity(&name) == key;
        if before >= Some(key) || !known {
            let section = SectionKind::LinkEntities.name();
            return Err(FormatError::Invariant { section, rule: "S-LNK-1", row: row as u64 });
        }
        before = Some(key);
    }
    Ok(())
}

/// S-LNK-2: words strictly increase, are UTF-8 of 1 to 64 bytes, fill their text, and were counted.
fn link_words<S: Sections>(file: &S) -> Result<(), FormatError> {
    let words = LinkWords::of(file)?;
    let broken = |row: usize| FormatError::Invariant {
        section: SectionKind::LinkWords.name(),
        rule: "S-LNK-2",
        row: row as u64,
    };
    let mut before: &[u8] = &[];
    for row in 0..words.len() {
        let (word, counts) = words.get(row).ok_or_else(|| broken(row))?;
        let is_word = before < word && word.len() <= limits::CASE_WORD_BYTES && std::str::from_utf8(word).is_ok();
        if !is_word || (row == 0 && counts.text != 0) || (counts.lower == 0 && counts.capital == 0) {
            return Err(broken(row));
        }
        before = word;
    }
    if words.is_empty() && !file.section(SectionKind::LinkWordText)?.is_empty() { Err(broken(0)) } else { Ok(()) }
}

/// S-LNK-3: leads strictly increase by key and chunk; chunks are below the limit.
fn link_leads<S: Sections>(file: &S, chunks_end: u32) -> Result<(), FormatError> {
    let mut before = None;
    for (row, lead) in file.rows::<LinkLeadRow>(SectionKind::LinkLeads)?.iter().enumerate() {
        let place = (Key(lead.key), lead.chunk);
        if before >= Some(place) || lead.chunk >= chunks_end {
            let section = SectionKind::LinkLeads.name();
            return Err(FormatError::Invariant { section, rule: "S-LNK-3", row: row as u64 });
        }
        before = Some(place);
    }
    Ok(())
}

/// Checks every invariant of an edges projection that covers the chunks below `chunks_end`.
///
/// # Errors
/// The first that is broken.
pub fn validate_edges<S: Sections>(file: &S, chunks_end: u32) -> Result<(), FormatError> {
    edges_findings(file, chunks_end).into_iter().next().map_or(Ok(()), Err)
}

/// What is wrong with an edges projection: the first finding of its adjacency, its weights, its
/// report, its reserve and its origins.
pub fn edges_findings<S: Sections>(file: &S, chunks_end: u32) -> Vec<FormatError> {
    let chunks = to_usize(chunks_end);
    let csr = Csr { offsets: SectionKind::EdgeOffsets, targets: SectionKind::EdgeTargets, rows: chunks, below: chunks };
    let adjacency = csr.validate(file).and_then(|()| csr.mirrors(&csr, file));
    [adjacency, edge_weights(file), edge_report(file), edge_followers(file, chunks_end), edge_origins_fit(file)]
        .into_iter()
        .filter_map(Result::err)
        .collect()
}

fn edge_weights<S: Sections>(file: &S) -> Result<(), FormatError> {
    let weights = file.section(SectionKind::EdgeWeights)?;
    let targets = file.section(SectionKind::EdgeTargets)?;
    let finite = weights.as_chunks().0.iter().all(|bytes| f32::from_le_bytes(*bytes).is_finite());
    if weights.len() != targets.len() || !finite {
        let section = SectionKind::EdgeWeights.name();
        return Err(FormatError::Invariant { section, rule: "S-EDG-1", row: 0 });
    }
    Ok(())
}

fn edge_report<S: Sections>(file: &S) -> Result<(), FormatError> {
    let reports = file.rows::<EdgeReportRow>(SectionKind::EdgeReport)?;
    match reports.get(0) {
        Some(report) if reports.len() == 1 && counts_pairs(&report) => file
            .rows::<EdgeSignalRow>(SectionKind::EdgeSignals)?
            .iter()
            .map(|signal| signal.space)
            .chain(std::iter::once(report.space))
            .try_for_each(|space| file.string(space).map(|_| ())),
        _ => {
            let section = SectionKind::EdgeReport.name();
            Err(FormatError::Invariant { section, rule: "S-EDG-2", row: 0 })
        }
    }
}

/// S-EDG-6: each target has an origin that is known, or none has one.
fn edge_origins_fit<S: Sections>(file: &S) -> Result<(), FormatError> {
    let origins = file.section(SectionKind::EdgeOrigins)?;
    let targets = file.u32s(SectionKind::EdgeTargets)?.len();
    let unknown = origins.iter().position(|origins| *origins == 0 || *origins > edge_origins::ALL);
    match unknown {
        None if origins.is_empty() || origins.len() == targets => Ok(()),
        place => {
            let (section, row) = (SectionKind::EdgeOrigins.name(), place.unwrap_or(targets) as u64);
            Err(FormatError::Invariant { section, rule: "S-EDG-6", row })
        }
    }
}

/// Whether the kind of a report is known and its number of pairs is that of its chunks.
fn counts_pairs(report: &EdgeReportRow) -> bool {
    let EdgeReportRow { rows, tables, pairs, .. } = *report;
    let Some(kind) = PairKind::from_number(report.kind) else { return false };
    let fits = match kind {
        PairKind::DocumentDocument => tables == 0,
        PairKind::TableTable => tables == rows,
        PairKind::TableDocument => tables <= rows,
    };
    fits && u32::try_from(rows).is_ok() && pairs == kind.pairs(rows, tables)
}

fn edge_followers<S: Sections>(file: &S, chunks_end: u32) -> Result<(), FormatError> {
    let broken = |section: SectionKind, rule, row: usize| FormatError::Invariant {
        section: section.name(),
        rule,
        row: row as u64,
    };
    let rows = file.rows::<EdgeRow>(SectionKind::EdgeRows)?;
    let spares = file.rows::<EdgeSpare>(SectionKind::EdgeSpares)?;
    let known = to_usize(rows.len().try_into().unwrap_or(u32::MAX));
    let (mut chunk_before, mut spares_before) = (None, 0);
    for (row, edge) in rows.iter().enumerate() {
        let ascends = chunk_before < Some(edge.chunk) && edge.chunk < chunks_end;
        if !ascends || to_usize(edge.rank) >= known || edge.spares_end < spares_before {
            return Err(broken(SectionKind::EdgeRows, "S-EDG-3", row));
        }
        (chunk_before, spares_before) = (Some(edge.chunk), edge.spares_end);
    }
    if spares.len() != to_usize(spares_before) {
        return Err(broken(SectionKind::EdgeRows, "S-EDG-3", rows.len()));
    }
    if let Some(row) = spares.iter().position(|spare| to_usize(spare.row) >= known || !spare.similarity.is_finite()) {
        return Err(broken(SectionKind::EdgeSpares, "S-EDG-4", row));
    }
    let reserves = file.rows::<EdgeReserveRow>(SectionKind::EdgeReserve)?;
    let counts = file.rows::<EdgeCount>(SectionKind::EdgeCounts)?.len();
    let fits = |reserve: EdgeReserveRow| {
        reserve.reserved == 0 && to_usize(u32::MAX.saturating_sub(reserve.low)).saturating_add(1) >= counts
    };
    match (reserves.get(0), reserves.len()) {
        (Some(reserve), 1) if fits(reserve) && known > 0 => Ok(()),
        (None, _) if known == 0 && counts == 0 => Ok(()),
        _ => Err(broken(SectionKind::EdgeReserve, "S-EDG-5", 0)),
    }
}
