//! What extractors found in chunks, as far as it can be read.

use crate::maintain::salvage::Lost;
use crate::maintain::salvage::document::spelling;
use crate::maintain::salvage::extras::for_each_source;
use crate::maintain::salvage::part::{Part, index};
use crate::segment::{StagedDocument, StagedEntity, StagedExtraction};
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::{DeadExtractionRow, ExtractedRow, ExtractionRow};
use std::collections::BTreeMap;

/// The newest extraction of each chunk and extractor, by the chunk's id; none where it no longer counts or is lost.
#[derive(Debug, Default)]
pub(super) struct Extractions(BTreeMap<(u32, String), Option<StagedExtraction>>);

impl Extractions {
    /// Reads all extractions.
    pub fn gather(parts: &[Part], lost: &mut Vec<Lost>) -> Self {
        let mut all = Self::default();
        for part in parts {
            all.bury(part, lost);
            let (mut rows, mut unknown) = rows(part);
            unknown += add_entities(part, &mut rows) + add_relations(part, &mut rows);
            for (chunk, mut extraction) in rows.into_values() {
                let place = (chunk, extraction.extractor.clone());
                // Of what is lost nothing tells which extraction lacks it, so all of the file are to be made anew: no
                // extractor that is asked again has a model without a name.
                if unknown > 0 {
                    extraction.model.clear();
                }
                let sound = extraction.check().is_ok();
                unknown += usize::from(!sound);
                all.0.insert(place, sound.then_some(extraction));
            }
            if unknown > 0 {
                lost.push(part.lost("extractions", format!("{unknown} rows of extractions cannot be read")));
            }
        }
        all
    }

    /// Extractions of earlier segments that were replaced.
    fn bury(&mut self, part: &Part, lost: &mut Vec<Lost>) {
        let mut unknown = 0;
        for row in 0..part.wreck.count(SectionKind::DeadExtractions) {
            let row: Option<DeadExtractionRow> = part.wreck.row(SectionKind::DeadExtractions, row);
            match row.and_then(|row| Some((row.chunk, part.wreck.string(row.extractor)?.to_owned()))) {
                Some(place) => drop(self.0.insert(place, None)),
                None => unknown += 1,
            }
        }
        if unknown > 0 {
            let reason = format!("{unknown} replacements of extractions; older extractions may be back");
            lost.push(part.lost("deletions", reason));
        }
    }

    /// Gives the chunks of a document what was found in them.
    pub fn add_to(&self, ids: &[Option<u32>], document: &mut StagedDocument) {
        for (id, chunk) in ids.iter().zip(&mut document.chunks) {
            let Some(id) = id else { continue };
            let found = self.0.range((*id, String::new())..(id.saturating_add(1), String::new()));
            chunk.extractions.extend(found.filter_map(|(_, extraction)| extraction.clone()));
        }
    }
}

/// Chunk and extraction by row.
type ByRow = BTreeMap<usize, (u32, StagedExtraction)>;

fn rows(part: &Part) -> (ByRow, usize) {
    let (mut rows, mut unknown) = (ByRow::new(), 0);
    for row in 0..part.wreck.count(SectionKind::Extractions) {
        let found = part.wreck.row::<ExtractionRow>(SectionKind::Extractions, row).and_then(|found| {
            let (extractor, model) = (part.wreck.string(found.extractor)?, part.wreck.string(found.model)?);
            let (extractor, model) = (extractor.to_owned(), model.to_owned());
            Some((found.chunk, StagedExtraction { extractor, model, ..StagedExtraction::default() }))
        });
        match found {
            Some(found) => drop(rows.insert(row, found)),
            None => unknown += 1,
        }
    }
    (rows, unknown)
}

/// Says how many entities cannot be read.
fn add_entities(part: &Part, rows: &mut ByRow) -> usize {
    let mut unknown = 0;
    for row in 0..part.wreck.count(SectionKind::Extracted) {
        let found = part.wreck.row::<ExtractedRow>(SectionKind::Extracted, row).and_then(|found| {
            let (key, name, kind) = spelling(part, found.spelling)?;
            let description = part.wreck.string(found.description)?.to_owned();
            let entity = StagedEntity { key, name, kind, description, range: found.start..found.end };
            rows.get_mut(&index(found.extraction))?.1.entities.push(entity);
            Some(())
        });
        unknown += usize::from(found.is_none());
    }
    unknown
}

/// Says how many relations cannot be read.
fn add_relations(part: &Part, rows: &mut ByRow) -> usize {
    let mut unknown = 0;
    for_each_source(part, |_, sourced| {
        let Some(row) = sourced.extraction else { return };
        match rows.get_mut(&index(row)).zip(sourced.relation) {
            Some(((_, extraction), relation)) => extraction.relations.push(relation),
            None => unknown += 1,
        }
    });
    unknown
}
