//! What segments say about documents beside their own rows: relations and vectors, of their own and of older documents.

use crate::maintain::salvage::Lost;
use crate::maintain::salvage::document::spelling;
use crate::maintain::salvage::extractions::Extractions;
use crate::maintain::salvage::lists::Lists;
use crate::maintain::salvage::part::{Part, index};
use crate::segment::{StagedDocument, StagedEnd, StagedRelation, StagedVector};
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::{DeadVectorRow, EvidenceRow, NO_CHUNK, NO_EXTRACTION, RelationRow, SpaceRow};
use hedgerow_format::{DocumentId, limits};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A relation with the chunk that says it, or none where its words are lost.
#[derive(Clone, Debug)]
pub(super) struct Sourced {
    chunk: u32,
    /// Row of the extraction that it is part of.
    pub extraction: Option<u32>,
    pub relation: Option<StagedRelation>,
}

/// Relations that were added to older documents, and all vectors.
#[derive(Debug, Default)]
pub(super) struct Extras {
    /// By document: relations of later segments.
    added: HashMap<DocumentId, Vec<Sourced>>,
    /// By chunk and space: the newest vector, none where it is lost.
    vectors: BTreeMap<(u32, String), Option<VectorPlace>>,
    /// Model and number of components of each space.
    spaces: HashMap<String, (String, usize)>,
    /// What extractors found.
    pub extractions: Extractions,
    /// Files of which something is lost that no document can be told from.
    doubtful: BTreeSet<String>,
}

/// Where a vector lies: which part, in which of its rows of spaces, and the how manieth it is there.
#[derive(Clone, Copy, Debug)]
struct VectorPlace {
    part: usize,
    space: usize,
    number: usize,
}

impl Extras {
    /// Reads all vectors, and the relations that segments add to older documents.
    pub fn gather(parts: &[Part], lost: &mut Vec<Lost>) -> Self {
        let mut extras = Self { extractions: Extractions::gather(parts, lost), ..Self::default() };
        for (position, part) in parts.iter().enumerate() {
            extras.bury(part, lost);
            extras.gather_vectors(part, position, lost);
            let first = part.first_document();
            let mut added = HashMap::new();
            for_each_source(part, |document, sourced| {
                if document.0 < first && sourced.extraction.is_none() {
                    added.entry(document).or_insert_with(Vec::new).push(sourced);
                }
            });
            for (document, relations) in added {
                extras.added.entry(document).or_default().extend(relations);
            }
        }
        extras
    }

    /// Vectors of earlier segments that were replaced.
    fn bury(&mut self, part: &Part, lost: &mut Vec<Lost>) {
        let mut unknown = 0;
        for row in 0..part.wreck.count(SectionKind::DeadVectors) {
            let row: Option<DeadVectorRow> = part.wreck.row(SectionKind::DeadVectors, row);
            match row.and_then(|row| Some((row.chunk, part.wreck.string(row.space)?.to_owned()))) {
                Some(place) => drop(self.vectors.insert(place, None)),
                None => unknown += 1,
            }
        }
        if unknown > 0 {
            lost.push(part.lost("deletions", format!("{unknown} replacements of vectors; older vectors may be back")));
        }
    }

    fn gather_vectors(&mut self, part: &Part, position: usize, lost: &mut Vec<Lost>) {
        let mut unknown = 0_u64;
        for space in 0..part.wreck.count(SectionKind::Spaces) {
            let row = part.wreck.row::<SpaceRow>(SectionKind::Spaces, space);
            let named = row.and_then(|row| {
                let strings = (part.wreck.string(row.name)?, part.wreck.string(row.model)?);
                Some((row, strings.0.to_owned(), strings.1.to_owned()))
            });
            let Some((row, name, model)) = named else {
                lost.push(part.lost("vectors", "all vectors of one space: its row or its name cannot be read"));
                self.doubtful.insert(part.wreck.name().to_string());
                continue;
            };
            let dimensions = index(row.dimensions);
            let known = self.spaces.entry(name.clone()).or_insert_with(|| (model.clone(), dimensions));
            let fits = (1..=limits::DIMENSIONS).contains(&dimensions) && *known == (model.clone(), dimensions);
            for number in 0..index(row.vectors) {
                let at = index(row.first_vector).saturating_add(number);
                let Some(chunk) = part.wreck.number(SectionKind::VectorChunks, at) else {
                    unknown += 1;
                    continue;
                };
                let place = VectorPlace { part: position, space, number };
                self.vectors.insert((chunk, name.clone()), fits.then_some(place));
            }
        }
        if unknown > 0 {
            lost.push(part.lost("vectors", format!("{unknown} vectors: their chunks cannot be read")));
            self.doubtful.insert(part.wreck.name().to_string());
        }
    }

    /// The relations that a segment's own documents are sources of.
    pub fn relations_of(&mut self, part: &Part, lost: &mut Vec<Lost>) -> HashMap<DocumentId, Vec<Sourced>> {
        let mut own: HashMap<DocumentId, Vec<Sourced>> = HashMap::new();
        let first = part.first_document();
        let unknown = for_each_source(part, |document, sourced| {
            if document.0 >= first && sourced.extraction.is_none() {
                own.entry(document).or_default().push(sourced);
            }
        });
        if unknown > 0 {
            lost.push(part.lost("relations", format!("{unknown} relations or sources of relations cannot be read")));
            self.doubtful.insert(part.wreck.name().to_string());
        }
        own
    }

    /// The edge lists of a segment's documents.
    pub fn lists_of(&mut self, part: &Part, lost: &mut Vec<Lost>) -> Lists {
        let (lists, is_doubtful) = Lists::of(part, lost);
        if is_doubtful {
            self.doubtful.insert(part.wreck.name().to_string());
        }
        lists
    }

    /// Whether something of a file's documents is lost, and nothing tells of which.
    pub fn is_doubtful(&self, file: &str) -> bool {
        self.doubtful.contains(file)
    }

    /// Adds what a document is a source of; says how many of that are lost.
    pub fn add_relations(ids: &[Option<u32>], own: Vec<Sourced>, document: &mut StagedDocument) -> usize {
        let mut lost = 0;
        for Sourced { chunk, relation, .. } in own {
            let position = ids.iter().position(|id| *id == Some(chunk));
            let list = match position.and_then(|position| document.chunks.get_mut(position)) {
                Some(chunk) => &mut chunk.relations,
                None => &mut document.relations,
            };
            match relation.filter(|_| chunk == NO_CHUNK || position.is_some()) {
                Some(relation) => list.push(relation),
                None => lost += 1,
            }
        }
        lost
    }

    /// What later segments added to a document.
    pub fn added_to(&mut self, document: DocumentId) -> Vec<Sourced> {
        self.added.remove(&document).unwrap_or_default()
    }

    /// Adds the newest vectors of a document's chunks; says how many are lost.
    pub fn add_vectors(&self, parts: &[Part], ids: &[Option<u32>], document: &mut StagedDocument) -> usize {
        let mut lost = 0;
        for (id, chunk) in ids.iter().zip(&mut document.chunks) {
            let Some(id) = id else { continue };
            for ((_, space), place) in self.vectors.range((*id, String::new())..(id.saturating_add(1), String::new())) {
                match place.and_then(|place| self.vector(parts, space, place)) {
                    Some(vector) => chunk.vectors.push(vector),
                    None => lost += 1,
                }
            }
        }
        lost
    }

    fn vector(&self, parts: &[Part], space: &str, place: VectorPlace) -> Option<StagedVector> {
        let part = parts.get(place.part)?;
        let row = part.wreck.row(SectionKind::Spaces, place.space)?;
        let components = components(part, &row, place.number)?;
        let vector = StagedVector { space: space.to_owned(), model: self.spaces.get(space)?.0.clone(), components };
        vector.check().is_ok().then_some(vector)
    }
}

fn components(part: &Part, row: &SpaceRow, number: usize) -> Option<Vec<f32>> {
    let dimensions = index(row.dimensions);
    let first =
        usize::try_from(row.first_component).ok()?.checked_add(number.checked_mul(dimensions)?)?.checked_mul(4)?;
    let bytes = part.wreck.bytes(SectionKind::Vectors, first..first.checked_add(dimensions.checked_mul(4)?)?)?;
    Some(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

/// Calls `visit` with every source whose document can be read; says how many cannot.
pub(super) fn for_each_source(part: &Part, mut visit: impl FnMut(DocumentId, Sourced)) -> usize {
    let mut unknown = 0;
    for row in 0..part.wreck.count(SectionKind::Relations) {
        let Some(row) = part.wreck.row::<RelationRow>(SectionKind::Relations, row) else {
            unknown += 1;
            continue;
        };
        let first = index(row.first_evidence);
        for source in first..first.saturating_add(index(row.evidence)) {
            match part.wreck.row::<EvidenceRow>(SectionKind::Evidence, source) {
                Some(source) => {
                    let relation = relation(part, &row, &source);
                    let extraction = (source.extraction != NO_EXTRACTION).then_some(source.extraction);
                    visit(DocumentId(source.document), Sourced { chunk: source.chunk, extraction, relation });
                }
                None => unknown += 1,
            }
        }
    }
    unknown
}

fn relation(part: &Part, row: &RelationRow, source: &EvidenceRow) -> Option<StagedRelation> {
    let end = |row| spelling(part, row).map(|(key, name, kind)| StagedEnd { key, name, kind });
    let relation = StagedRelation {
        subject: end(source.subject_spelling)?,
        predicate: part.wreck.string(row.predicate)?.to_owned(),
        object: end(source.object_spelling)?,
        weight: source.weight,
        range: source.start..source.end,
    };
    relation.check().is_ok().then_some(relation)
}
