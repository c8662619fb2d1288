//! `stats`: counts of what a generation holds.

use crate::error::QueryError;
use crate::index::guard::{Guard, QueryLimits};
use crate::projection::{Communities, Links, VectorIndex};
use crate::snapshot::{Bounded, Snapshot, Space};
use hedgerow_format::Key;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a generation holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Its number.
    pub generation: u64,
    /// Hash over the live content, in hexadecimal: the same whatever history led to it.
    pub fingerprint: String,
    /// Live documents.
    pub documents: u64,
    /// Live chunks.
    pub chunks: u64,
    /// Bytes of live text.
    pub text_bytes: u64,
    /// Terms of live chunks, repeated ones included.
    pub terms: u64,
    /// Live entities.
    pub entities: u64,
    /// Mentions that count.
    pub mentions: u64,
    /// Definition links.
    pub definitions: u64,
    /// Relations, each counted for every live source that it has; an edge of an edge list has one.
    pub relations: u64,
    /// Vector spaces.
    pub spaces: Vec<SpaceStats>,
    /// What extractors have read.
    pub extractions: Vec<ExtractionStats>,
    /// Similarity edges.
    pub edges: Vec<EdgeStats>,
    /// Communities and their reports; none where they were not found.
    pub communities: Option<CommunityStats>,
    /// Segments.
    pub segments: u64,
    /// Bytes of all segments.
    pub segment_bytes: u64,
    /// Bytes of all projections.
    pub projection_bytes: u64,
    /// What answers lack.
    pub incomplete: Vec<String>,
}

/// A vector space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpaceStats {
    /// Its name.
    pub name: String,
    /// Its model.
    pub model: String,
    /// Components of a vector.
    pub dimensions: usize,
    /// Vectors that count.
    pub vectors: u64,
    /// Vectors that its index covers; none where it has none.
    pub indexed: Option<u64>,
}

/// The chunks that an extractor has read with one model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExtractionStats {
    /// Name of the extractor.
    pub extractor: String,
    /// Identity of the model and of what it was told.
    pub model: String,
    /// Live chunks.
    pub chunks: u64,
}

/// Similarity edges of a space and a kind of pairs, as their report says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EdgeStats {
    /// The space.
    pub space: String,
    /// The kind of the pairs.
    pub kind: &'static str,
    /// Percentile of the threshold.
    pub percentile: f64,
    /// Best of either end that a pair must be among.
    pub top_m: u32,
    /// How many signals make the edges; 0 where the similarity alone does.
    pub signals: usize,
    /// The threshold; with signals, that of the first or of their weighted mean.
    pub threshold: f32,
    /// Pairs that were compared.
    pub pairs: u64,
    /// Pairs at or above the threshold.
    pub passed: u64,
    /// Edges.
    pub kept: u64,
    /// Highest degree.
    pub degree_max: u32,
    /// Connected components.
    pub components: u32,
    /// What is left of the reserve by which edges follow changes: how many pairs the threshold may pass on its way down, and
    /// on its way up, before all pairs are compared again.
    pub reserve: [u64; 2],
}

/// Communities and their reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommunityStats {
    /// Communities of all levels, each with a report.
    pub communities: u64,
    /// Levels.
    pub levels: u64,
    /// Reports that a model wrote; the others are drawn from the store.
    pub by_models: u64,
    /// The vector space of the reports; empty where they have no vectors.
    pub space: String,
    /// Identity of the model of their vectors.
    pub model: String,
    /// Reports that have a vector.
    pub vectors: u64,
}

impl Snapshot {
    /// Counts what the generation holds. Reads every row of documents, lengths, sources of relations and links.
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn stats(&self) -> Result<Stats, QueryError> {
        self.bounded(QueryLimits::default()).stats()
    }
}

/// What the documents of a segment take in memory, in bytes a byte of its file: measured, 3.4.
const READ_BACK: u64 = 4;

impl Bounded<'_> {
    /// The fingerprint, which reads a segment at a time back as it was staged.
    fn fingerprint_within(&self) -> Result<Key, QueryError> {
        let largest = self.segments().iter().map(|segment| segment.entry().file.file_bytes).max();
        self.guard.hold_bytes(largest.unwrap_or(0).saturating_mul(READ_BACK))?;
        self.fingerprint_while(&|| self.guard.poll())
    }

    /// Reads the sources of all relations.
    fn count_relations(&self) -> Result<u64, QueryError> {
        let (mut count, mut pace) = (0, self.guard.pace());
        for segment in self.segments() {
            for relation in segment.relations()?.iter() {
                pace.step()?;
                count += self.evidence(segment, &relation)?.count() as u64;
            }
            for found in self.edge_lists(segment)? {
                pace.step()?;
                count += found?.1.targets.len() as u64;
            }
        }
        Ok(count)
    }

    fn count_extractions(&self) -> Result<Vec<ExtractionStats>, QueryError> {
        let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for segment in self.segments() {
            self.guard.poll()?;
            self.for_each_extraction(segment, |_, view| *counts.entry((view.extractor, view.model)).or_default() += 1)?;
        }
        let counted = |((extractor, model), chunks): ((&str, &str), u64)| {
            let (extractor, model) = (extractor.to_owned(), model.to_owned());
            ExtractionStats { extractor, model, chunks }
        };
        Ok(counts.into_iter().map(counted).collect())
    }

    /// See [`Snapshot::stats`](crate::Snapshot::stats).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn stats(&self) -> Result<Stats, QueryError> {
        self.guard.poll()?;
        let counts = self.statistics()?;
        let mut stats = Stats {
            generation: self.generation(),
            fingerprint: format!("{:?}", self.guard.scope(|| self.fingerprint_within())?),
            documents: counts.documents,
            chunks: counts.chunks,
            terms: counts.terms,
            segments: self.segments().len() as u64,
            incomplete: self.incomplete(),
            ..Stats::default()
        };
        let mut pace = self.guard.pace();
        for id in self.document_ids() {
            pace.step()?;
            stats.text_bytes += u64::from(self.document(id)?.text_bytes());
        }
        for Space { name, model, dimensions, vectors } in self.spaces()?.iter().cloned() {
            let row = self.vector_index(&name).map(VectorIndex::row).transpose()?;
            let indexed = row.map(|row| u64::from(row.nodes));
            stats.spaces.push(SpaceStats { name, model, dimensions, vectors, indexed });
        }
        stats.segment_bytes = self.segments().iter().map(|segment| segment.entry().file.file_bytes).sum();
        stats.projection_bytes = self.manifest().projections.iter().map(|entry| entry.file.file_bytes).sum();
        stats.extractions = self.count_extractions()?;
        stats.relations = self.count_relations()?;
        if let Some(links) = self.links() {
            count_links(links, &mut stats, &self.guard)?;
        }
        for edges in self.edges() {
            let report = edges.report()?;
            stats.edges.push(EdgeStats {
                space: edges.space().to_owned(),
                kind: edges.kind().name(),
                percentile: f64::from(report.percentile_thousandths) / 1000.0,
                top_m: report.top_m,
                signals: edges.thresholds()?.len(),
                threshold: report.threshold,
                pairs: report.pairs,
                passed: report.passed,
                kept: report.kept,
                degree_max: report.degree_max,
                components: report.components,
                reserve: edges.counted_around()?,
            });
        }
        stats.communities =
            self.communities().map(|communities| count_communities(communities, &self.guard)).transpose()?;
        Ok(stats)
    }
}

fn count_communities(communities: &Communities, guard: &Guard<'_>) -> Result<CommunityStats, QueryError> {
    let settings = communities.settings()?;
    let mut stats = CommunityStats {
        communities: communities.communities()?.len() as u64,
        levels: communities.levels()?.len() as u64,
        by_models: 0,
        space: communities.text(settings.space)?.to_owned(),
        model: communities.text(settings.model)?.to_owned(),
        vectors: 0,
    };
    let mut pace = guard.pace();
    for row in 0..communities.communities()?.len() {
        pace.step()?;
        stats.by_models += u64::from(communities.is_by_model(row)?);
        stats.vectors += u64::from(!communities.vector(row)?.is_empty());
    }
    Ok(stats)
}

fn count_links(links: &Links, stats: &mut Stats, guard: &Guard<'_>) -> Result<(), QueryError> {
    let entities = links.entities()?.len();
    stats.entities = entities as u64;
    let mut pace = guard.pace();
    for slot in (0..).map(hedgerow_format::EntitySlot).take(entities) {
        pace.step()?;
        stats.mentions += links.mentioning(slot)?.len() as u64;
        stats.definitions += links.definitions(slot)?.len() as u64;
    }
    Ok(())
}
