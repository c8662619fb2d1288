//! Reports of communities, as far as they can be read: each by the hash of what it is made of.

use crate::error::StorageError;
use crate::index::graph::rules::CommunityRules;
use crate::maintain::salvage::Lost;
use crate::maintain::salvage::part::index;
use crate::projection::{CommunityReport, FormerCommunities};
use crate::storage::{Env, FileFault, FileName, Wreck};
use hedgerow_format::file::FileKind;
use hedgerow_format::projection::{CommunityReportRow, CommunityRow, CommunitySettingsRow, ReportCitationRow};
use hedgerow_format::section::SectionKind;
use hedgerow_format::{Key, TextRef, limits};
use std::io;

/// Bytes of all titles and texts that are read of a file, beyond those that its strings have: reports may say the same.
const REPEATED_BYTES: usize = 64 << 20;

/// What the files tell, the newest first; none where there is none. A report is what it is made of says, so that it counts in whatever
/// file it stands.
pub(super) fn former(
    env: &Env,
    names: &[FileName],
    lost: &mut Vec<Lost>,
) -> Result<Option<FormerCommunities>, StorageError> {
    let mut all: Option<FormerCommunities> = None;
    for name in names {
        let loss = |reason| Lost { file: name.to_string(), document: None, what: "reports", reason };
        let found = match Wreck::open(&*env.disk, FileKind::Communities, *name) {
            Ok(wreck) => read(&wreck, &mut |reason| lost.push(loss(reason))),
            Err(FileFault::Storage(error)) if error.source.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(FileFault::Storage(error)) => {
                lost.push(loss(format!("its reports of communities: {error}")));
                FormerCommunities::default()
            }
            Err(FileFault::Damage(damage)) => {
                lost.push(loss(format!("its reports of communities: {damage}")));
                FormerCommunities::default()
            }
        };
        match &mut all {
            None => all = Some(found),
            Some(all) => add(all, found),
        }
    }
    Ok(all)
}

/// Adds the reports of an older file; their vectors count where they are of the same model.
fn add(all: &mut FormerCommunities, older: FormerCommunities) {
    if all.space.is_none() {
        (all.rules, all.space, all.dimensions) = (older.rules, older.space.clone(), older.dimensions);
    }
    let is_same = all.space == older.space;
    for (hash, mut report) in older.reports {
        if !is_same {
            report.vector.clear();
        }
        all.reports.entry(hash).or_insert(report);
    }
}

fn read(wreck: &Wreck, lose: &mut dyn FnMut(String)) -> FormerCommunities {
    let mut former = FormerCommunities::default();
    match wreck.row::<CommunitySettingsRow>(SectionKind::CommunitySettings, 0) {
        Some(row) if row.resolution > 0 => {
            former.rules = CommunityRules::of(&row);
            let named = wreck.string(row.space).zip(wreck.string(row.model));
            if let Some((space, model)) = named.filter(|_| index(row.dimensions) <= limits::DIMENSIONS) {
                former.space = Some((space.to_owned(), model.to_owned()));
                former.dimensions = index(row.dimensions);
            }
        }
        _ => lose("how communities were found cannot be read; they are found as where nobody chose".into()),
    }
    let mut reader = Reader { wreck, dimensions: former.dimensions, next_citation: 0, left: room(wreck) };
    let count = wreck.count(SectionKind::CommunityReports);
    let (mut unknown, mut without) = (0, 0);
    for row in 0..count {
        match reader.report(row) {
            Some((hash, report, has_vector)) => {
                without += usize::from(!has_vector);
                former.reports.insert(hash, report);
            }
            None => unknown += 1,
        }
    }
    if unknown > 0 {
        lose(format!("{unknown} of {count} reports of communities cannot be read"));
    }
    if without > 0 {
        lose(format!("the vectors of {without} of {count} reports of communities cannot be read"));
    }
    former
}

/// Bytes of titles and texts that reports of a file may have.
fn room(wreck: &Wreck) -> usize {
    wreck.count(SectionKind::Strings).saturating_add(REPEATED_BYTES)
}

/// Reads reports one after the other.
struct Reader<'w> {
    wreck: &'w Wreck,
    dimensions: usize,
    /// Citations before it belong to reports that were read.
    next_citation: u32,
    left: usize,
}

impl Reader<'_> {
    /// The hash of what a report is made of, the report, and whether its vector can be read.
    fn report(&mut self, row: usize) -> Option<([u8; 16], CommunityReport, bool)> {
        let told: CommunityReportRow = self.wreck.row(SectionKind::CommunityReports, row)?;
        // Reports that share citations are none, and could be as many as one likes.
        let first = Some(told.first_citation).filter(|first| *first >= self.next_citation)?;
        let end = first.checked_add(told.citations)?;
        let community: CommunityRow = self.wreck.row(SectionKind::Communities, row)?;
        let (title, text, model) = (self.text(told.title)?, self.text(told.text)?, self.text(told.model)?);
        let citation = |row| self.wreck.row::<ReportCitationRow>(SectionKind::ReportCitations, index(row));
        let citations = (first..end).map(|row| citation(row).map(|row| (Key(row.document), row.ordinal)));
        let citations = citations.collect::<Option<Vec<_>>>()?;
        self.next_citation = end;
        let vector = self.vector(row);
        let has_vector = vector.is_some();
        let vector = vector.unwrap_or_default();
        Some((community.hash, CommunityReport { title, text, model, citations, vector }, has_vector))
    }

    fn text(&mut self, place: TextRef) -> Option<String> {
        self.left = self.left.checked_sub(index(place.length))?;
        self.wreck.string(place).map(str::to_owned)
    }

    /// The vector of a report, empty where it has none.
    fn vector(&self, row: usize) -> Option<Vec<f32>> {
        let start = row.checked_mul(self.dimensions)?.checked_mul(4)?;
        let end = start.checked_add(self.dimensions.checked_mul(4)?)?;
        let bytes = self.wreck.bytes(SectionKind::ReportVectors, start..end)?;
        let vector: Vec<f32> = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let is_none = vector.iter().all(|component| *component == 0.0);
        let is_sound = vector.iter().all(|component| component.is_finite());
        is_sound.then(|| if is_none { Vec::new() } else { vector })
    }
}
