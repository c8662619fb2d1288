//! Extractions of a batch: put into its own documents, or laid over those of the store.

use crate::error::{CommitError, Damage};
use crate::segment::{OverlayExtraction, StagedDocument, StagedExtraction};
use crate::snapshot::Snapshot;
use crate::writer::Target;
use crate::writer::resolve::{Resolved, one_chunk, unknown};
use hedgerow_format::{ChunkId, Key};
use std::collections::{BTreeMap, BTreeSet};

impl Resolved {
    /// Of two extractions of a chunk by one extractor the later counts. What the store has just so is left out.
    pub(super) fn set_extractions(
        &mut self,
        snapshot: &Snapshot,
        staged: &mut BTreeMap<Key, StagedDocument>,
        extractions: Vec<(Target, StagedExtraction)>,
    ) -> Result<(), CommitError> {
        let mut older: BTreeMap<(ChunkId, String), OverlayExtraction> = BTreeMap::new();
        for (target, extraction) in extractions {
            let malformed = |reason| CommitError::Malformed { key: target.document.clone(), reason };
            extraction.check().map_err(malformed)?;
            let extraction = extraction.in_order();
            if let Some(document) = staged.get_mut(&Key::of_document(&target.document)) {
                let chunk = one_chunk(&target, document.chunks.len())?;
                let Some(chunk) = document.chunks.get_mut(chunk) else { return Err(unknown(&target)) };
                chunk.extractions.retain(|known| known.extractor != extraction.extractor);
                chunk.extractions.push(extraction);
                self.counts.extractions += 1;
                continue;
            }
            let document = self.kept(snapshot, &target)?;
            let position = one_chunk(&target, document.chunks().count())?;
            let chunk = document.chunks().nth(position).ok_or_else(|| unknown(&target))?;
            let found = OverlayExtraction { document: document.id(), chunk, extraction };
            older.insert((chunk, found.extraction.extractor.clone()), found);
        }
        let known = known(snapshot, &older)?;
        for (place, found) in older {
            match known.get(&place) {
                Some(before) if *before == found.extraction => continue,
                Some(_) => self.overlay.dead_extractions.push((place.1, place.0)),
                None => {}
            }
            self.overlay.extractions.push(found);
            self.counts.extractions += 1;
        }
        Ok(())
    }
}

type Placed<T> = BTreeMap<(ChunkId, String), T>;

/// The extractions that the store has in these places.
fn known(snapshot: &Snapshot, places: &Placed<OverlayExtraction>) -> Result<Placed<StagedExtraction>, Damage> {
    let mut there = BTreeSet::new();
    for (chunk, extractor) in places.keys() {
        if snapshot.extractions(*chunk)?.iter().any(|view| view.extractor == extractor) {
            there.insert(*chunk);
        }
    }
    let mut known = BTreeMap::new();
    if there.is_empty() {
        return Ok(known);
    }
    for segment in snapshot.segments() {
        for found in snapshot.staged_extractions(segment, |chunk| there.contains(&chunk))? {
            known.insert((found.chunk, found.extraction.extractor.clone()), found.extraction.in_order());
        }
    }
    Ok(known)
}
