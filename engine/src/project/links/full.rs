//! Links made from all live text.

use crate::error::Damage;
use crate::index::control::{Cancelled, Control};
use crate::index::names::{CaseCounts, Gazetteer, leads};
use crate::project::Fault;
use crate::project::links::candidates::Candidates;
use crate::project::links::{Found, case_flags, finish};
use crate::projection::{LinksData, WordList};
use crate::snapshot::{Snapshot, TextRun};
use hedgerow_format::{ChunkId, Key};
use rayon::prelude::*;
use roaring::RoaringBitmap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of words, and the phrases that chunks begin with.
type Read = (CaseCounts, Vec<(Key, u32)>);

/// Reads all live text twice, in pieces, on all threads.
pub(super) fn build(snapshot: &Snapshot, control: &dyn Control) -> Result<LinksData, Fault> {
    let tasks = tasks(snapshot)?;
    let total = 2 * tasks.iter().map(|(_, task)| task.documents.len() as u64).sum::<u64>();
    let done = AtomicU64::new(0);
    let advance = |task: &TextRun<'_>| -> Result<(), Cancelled> {
        let count = task.documents.len() as u64;
        control.advance(done.fetch_add(count, Ordering::Relaxed) + count, total);
        if control.cancelled() { Err(Cancelled) } else { Ok(()) }
    };
    let read: Result<Vec<Read>, Fault> = tasks
        .par_iter()
        .map(|(_, task)| {
            let (mut counts, mut begun) = (CaseCounts::default(), Vec::new());
            for_each_chunk(task, |id, text| {
                counts.add(text);
                leads(text, |phrase| begun.push((Key::of_entity(phrase), id.0)));
                Ok(())
            })?;
            advance(task)?;
            Ok((counts, begun))
        })
        .collect();
    let (mut counts, mut found) = (CaseCounts::default(), Found::default());
    for (counted, begun) in read? {
        counts.merge(&counted);
        found.leads.extend(begun);
    }
    found.leads.par_sort_unstable();
    found.leads.dedup();
    found.words = listed(&counts);
    let candidates = Candidates::of(snapshot)?;
    let numbers: Vec<u32> =
        candidates.gazetteer().filter(|(_, candidate)| candidate.gazetteer).map(|(number, _)| number).collect();
    let gazetteer = candidates.gazetteer_of(&numbers);
    let mentions: Result<Vec<Vec<(u32, u32)>>, Fault> = tasks
        .par_iter()
        .map(|(position, task)| {
            let found = search(*position, task, &candidates, &gazetteer, &counts)?;
            advance(task)?;
            Ok(found)
        })
        .collect();
    found.mentions.clone_from(&candidates.related);
    mentions?.into_iter().for_each(|mentions| found.mentions.extend(mentions));
    found.mentions.par_sort_unstable();
    found.mentions.dedup();
    finish(snapshot, candidates, found, |_, candidate| case_flags(candidate.name, &counts))
}

/// The live chunks whose text meets a condition. Reads all live text.
pub(super) fn chunks_where(
    snapshot: &Snapshot,
    meets: impl Fn(ChunkId, &str) -> bool + Sync,
) -> Result<RoaringBitmap, Damage> {
    let chunks = |(_, task): &(usize, TextRun<'_>)| {
        let mut chunks = Vec::new();
        for_each_chunk(task, |id, text| {
            chunks.extend(meets(id, text).then_some(id.0));
            Ok(())
        })?;
        Ok(chunks)
    };
    let found: Vec<Vec<u32>> = tasks(snapshot)?.par_iter().map(chunks).collect::<Result<_, Damage>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// The live documents of all segments, as many together as one task reads at once; with positions of segments.
fn tasks(snapshot: &Snapshot) -> Result<Vec<(usize, TextRun<'_>)>, Damage> {
    let mut tasks = Vec::new();
    for (position, segment) in snapshot.segments().iter().enumerate() {
        tasks.extend(snapshot.text_runs(segment)?.into_iter().map(|task| (position, task)));
    }
    Ok(tasks)
}

fn for_each_chunk(
    task: &TextRun<'_>,
    mut visit: impl FnMut(ChunkId, &str) -> Result<(), Damage>,
) -> Result<(), Damage> {
    task.for_each(|_, row, text| {
        for id in task.segment.chunks_of(row).map(ChunkId) {
            let chunk = task.segment.chunk(id)?;
            let range = usize::try_from(chunk.start).ok().zip(usize::try_from(chunk.end).ok());
            visit(id, range.and_then(|(start, end)| text.get(start..end)).unwrap_or_default())?;
        }
        Ok(())
    })
}

/// Chunk and candidate of the mentions in the documents of a task.
fn search(
    position: usize,
    task: &TextRun<'_>,
    candidates: &Candidates<'_>,
    gazetteer: &Gazetteer,
    counts: &CaseCounts,
) -> Result<Vec<(u32, u32)>, Damage> {
    let (mut found, mut hits, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for_each_chunk(task, |id, text| {
        hits.clear();
        numbers.clear();
        gazetteer.find(text, counts, &mut hits);
        numbers.extend(hits.iter().map(|hit| hit.id));
        candidates.mentions(position, id, counts, &mut numbers)?;
        found.extend(numbers.iter().map(|number| (id.0, *number)));
        Ok(())
    })?;
    Ok(found)
}

fn listed(counts: &CaseCounts) -> WordList {
    let mut words = WordList::default();
    for (word, case) in counts.sorted() {
        words.push(word.as_bytes(), case.lower, case.capital);
    }
    words
}
