//! The reports of communities: kept where nothing has changed that they are made of, else made.

use crate::distance;
use crate::index::control::{Cancelled, Control};
use crate::model::{Embed, Summarize};
use crate::project::Fault;
use crate::project::communities::Extractive;
use crate::project::communities::content::{At, Contents};
use crate::project::communities::material::Material;
use crate::projection::{CommunityReport, FormerCommunities};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

/// Texts that are embedded at once.
const EMBEDDED_TOGETHER: usize = 64;

/// What makes reports.
#[derive(Clone, Copy)]
pub(super) struct Reporting<'r> {
    pub summarize: &'r dyn Summarize,
    pub embedder: Option<&'r dyn Embed>,
    /// Whether reports by something else are kept while nothing has changed that they are made of.
    pub keep_others: bool,
    pub control: &'r dyn Control,
}

/// A community's hash and report.
pub(super) type Reported = ([u8; 16], CommunityReport);

/// All reports, level by level.
#[derive(Default)]
pub(super) struct Reports {
    pub levels: Vec<Vec<Reported>>,
    pub kept: u64,
    pub made: u64,
    pub by_models: u64,
    pub failed: Vec<String>,
}

/// Makes the reports that can't be kept, on all threads, and the vectors of those that have none.
pub(super) fn reports(
    contents: &Contents<'_>,
    former: &FormerCommunities,
    reporting: Reporting<'_>,
) -> Result<Reports, Fault> {
    let all: Vec<At> = contents.all().collect();
    let done = AtomicU64::new(0);
    let one = |at: &At| -> Result<(Reported, Option<Option<String>>), Fault> {
        let control = reporting.control;
        if control.cancelled() {
            return Err(Fault::Cancelled);
        }
        let material = contents.material(*at)?;
        let hash = material.hash();
        let made = reporting.summarize.model();
        let known = former.reports.get(&hash).filter(|report| reporting.keep_others || report.model == made);
        let result = if let Some(report) = known {
            ((hash, report.clone()), None)
        } else {
            let (report, failed) = made_anew(material, reporting.summarize);
            ((hash, report), Some(failed))
        };
        control.advance(done.fetch_add(1, Ordering::Relaxed) + 1, all.len() as u64);
        Ok(result)
    };
    let found: Vec<_> = all.par_iter().map(one).collect::<Result<_, Fault>>()?;
    let mut reports =
        Reports { levels: contents.tree.levels.iter().map(|_| Vec::new()).collect(), ..Reports::default() };
    for ((level, _), (reported, made)) in all.iter().zip(found) {
        reports.by_models += u64::from(!reported.1.model.is_empty());
        reports.levels[*level].push(reported);
        match made {
            None => reports.kept += 1,
            Some(failed) => {
                reports.made += 1;
                reports.failed.extend(failed);
            }
        }
    }
    reports.embed(former, reporting)?;
    Ok(reports)
}

/// A report of a community, and why the model could not make it, if so.
fn made_anew(material: Material, summarize: &dyn Summarize) -> (CommunityReport, Option<String>) {
    let Material { content, citations, .. } = material;
    let (summary, model, failed) = match summarize.summarize(&content) {
        Ok(summary) => (summary, summarize.model().to_owned(), None),
        Err(error) => (Extractive.drawn(&content), String::new(), Some(error.to_string())),
    };
    let (title, text) = (summary.title, summary.text);
    (CommunityReport { title, text, model, citations, vector: Vec::new() }, failed)
}

impl Reports {
    /// Embeds the reports that have no vector of the embedder's space and model; without an embedder, vectors stay as they are.
    fn embed(&mut self, former: &FormerCommunities, reporting: Reporting<'_>) -> Result<(), Fault> {
        let Some(embedder) = reporting.embedder else { return Ok(()) };
        let same =
            former.space.as_ref().is_some_and(|(space, model)| space == embedder.space() && model == embedder.model());
        let reports = self.levels.iter_mut().flatten().map(|(_, report)| report);
        let mut without: Vec<&mut CommunityReport> =
            reports.filter(|report| !same || report.vector.is_empty()).collect();
        let embed = |reports: &mut [&mut CommunityReport]| -> Result<Option<String>, Cancelled> {
            if reporting.control.cancelled() {
                return Err(Cancelled);
            }
            let texts: Vec<String> =
                reports.iter().map(|report| format!("{}\n{}", report.title, report.text)).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let vectors = match embedder.embed(&texts) {
                Ok(vectors) => vectors,
                Err(error) => return Ok(Some(error.to_string())),
            };
            for (report, vector) in reports.iter_mut().zip(vectors) {
                report.vector = vector.filter(|vector| vector.len() == embedder.dimensions()).unwrap_or_default();
                // One without a direction is no vector.
                if distance::normalise(&mut report.vector).is_err() {
                    report.vector.clear();
                }
            }
            Ok(None)
        };
        let failed = without.par_chunks_mut(EMBEDDED_TOGETHER).map(embed).collect::<Result<Vec<_>, Cancelled>>()?;
        self.failed.extend(failed.into_iter().flatten());
        Ok(())
    }
}
