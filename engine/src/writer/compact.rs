//! Compaction: rewrites neighbouring segments as one, without what is dead, and keeps all ids.

use crate::error::{CommitError, Damage};
use crate::index::control::Control;
use crate::planted::{Planted, planted};
use crate::segment::{Content, Numbered, Overlay};
use crate::snapshot::Snapshot;
use crate::storage::{Env, FileName, Merging};
use crate::writer::{Store, Writer};
use hedgerow_format::file::FileKind;
use hedgerow_format::manifest::SegmentEntry;
use hedgerow_format::segment::SegmentShape;
use hedgerow_format::{ChunkId, DocumentId};
use serde::Serialize;
use std::ops::Range;

/// Segments of up to this many bytes are on the lowest level; those of each level above may be eight times as large.
const LEVEL_BYTES: u64 = 64 << 10;
const LEVEL_FACTOR: u64 = 8;
/// A segment is rewritten when one of this many of its rows is dead.
const DEAD_ROWS: u64 = 3;

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Compacted {
    /// Segments that were read.
    pub segments_read: u64,
    /// Bytes of them.
    pub bytes_read: u64,
    /// Segments that were written.
    pub segments_written: u64,
    /// Bytes of them.
    pub bytes_written: u64,
}

impl Compacted {
    fn add(&mut self, read: &[SegmentEntry], written: Option<SegmentEntry>) {
        self.segments_read += read.len() as u64;
        self.bytes_read += read.iter().map(|entry| entry.file.file_bytes).sum::<u64>();
        self.segments_written += u64::from(written.is_some());
        self.bytes_written += written.map_or(0, |entry| entry.file.file_bytes);
    }
}

impl Store {
    /// Rewrites every segment that holds something dead, and merges neighbours up to the size that [`Merging::bytes`]
    /// says. Every step is a commit of its own.
    pub(crate) fn compact_segments(&self, control: &dyn Control) -> Result<Compacted, CommitError> {
        let (mut done, mut position) = (Compacted::default(), 0);
        loop {
            let mut writer = self.lock()?;
            let before = self.snapshot();
            let entries = &before.manifest().segments;
            control.advance(position as u64, entries.len() as u64);
            if control.cancelled() {
                return Err(CommitError::Cancelled);
            }
            if position >= entries.len() {
                writer.forget_dropped(&self.env)?;
                return Ok(done);
            }
            let run = neighbours(entries, position, self.env.merging.bytes);
            if run.len() == 1 && !before.holds_dead(position)? {
                position += 1;
                continue;
            }
            let (after, written) = writer.compact(&self.env, &before, run.clone())?;
            done.add(&entries[run], written);
            position += usize::from(written.is_some());
            self.swap(after);
        }
    }

    /// Merges what is left to merge, and removes the files that nothing needs any more.
    pub(crate) fn merge_all(&self) -> Result<(), CommitError> {
        let mut writer = self.lock()?;
        while self.merge(&mut writer)?.segments_read > 0 {}
        writer.forget_dropped(&self.env)
    }

    /// One step of merging, bounded by [`Merging::bytes`]. Says what it did.
    pub(super) fn merge(&self, writer: &mut Writer) -> Result<Compacted, CommitError> {
        let (before, mut done) = (self.snapshot(), Compacted::default());
        if let Some(run) = choose(&before, self.env.merging)? {
            let (after, written) = writer.compact(&self.env, &before, run.clone())?;
            done.add(&before.manifest().segments[run], written);
            self.swap(after);
        }
        Ok(done)
    }
}

impl Writer {
    /// Rewrites a run of segments as one, or as none where nothing is left of them.
    fn compact(
        &mut self,
        env: &Env,
        before: &Snapshot,
        run: Range<usize>,
    ) -> Result<(Snapshot, Option<SegmentEntry>), CommitError> {
        let mut draft = self.draft(before)?;
        let content = Content { codec: env.codec, ..merged(before, run.clone())? };
        let mut written = None;
        if !content.is_empty() {
            let entry = self.write_segment(env, before, &content)?;
            draft.written.push(FileName::of(FileKind::Segment, &entry.file));
            written = Some(entry);
        }
        let dropped = draft.manifest.segments.splice(run, written);
        draft.dropped.extend(dropped.map(|entry| FileName::of(FileKind::Segment, &entry.file)));
        Ok((self.make_true(env, before, draft)?, written))
    }
}

/// The live rows of a run, with the ids that they have.
fn merged(snapshot: &Snapshot, run: Range<usize>) -> Result<Content, Damage> {
    let restage = snapshot.restage(run.clone())?;
    let mut documents = Vec::new();
    for position in run.clone() {
        documents.extend(restage.segment(position)?);
    }
    let mut overlay = restage.overlay()?;
    sabotage(&mut documents, &mut overlay);
    let entries = &snapshot.manifest().segments[run];
    let (first, last) = (entries.first().copied().unwrap_or_default(), entries.last().copied().unwrap_or_default());
    let chunks: usize = documents.iter().map(|numbered| numbered.document.chunks.len()).sum();
    let count = |rows: usize| u32::try_from(rows).unwrap_or(u32::MAX);
    let shape = SegmentShape {
        first_document: first.first_document,
        documents_end: last.documents_end,
        documents: count(documents.len()),
        first_chunk: first.first_chunk,
        chunks_end: last.chunks_end,
        chunks: count(chunks),
    };
    Ok(Content { shape, documents, overlay, ..Content::default() })
}

/// The faults that can be put in here.
fn sabotage(documents: &mut Vec<Numbered>, overlay: &mut Overlay) {
    if planted(Planted::OverlayForgotten) {
        overlay.vectors.clear();
        overlay.relations.clear();
        overlay.extractions.clear();
    }
    if planted(Planted::DocumentDropped) {
        documents.pop();
    }
    if planted(Planted::Renumbered) {
        let (mut id, mut chunk) = documents.first().map_or((0, 0), |first| (first.id.0, first.first_chunk.0));
        for numbered in documents {
            (numbered.id, numbered.first_chunk) = (DocumentId(id), ChunkId(chunk));
            id += 1;
            chunk += u32::try_from(numbered.document.chunks.len()).unwrap_or(u32::MAX);
        }
    }
}

/// The segment at a position, and as many after it as are not larger together than `bytes`.
fn neighbours(entries: &[SegmentEntry], position: usize, bytes: u64) -> Range<usize> {
    let mut end = position + 1;
    let mut sum = entries[position].file.file_bytes;
    while let Some(next) = entries.get(end).map(|entry| entry.file.file_bytes).filter(|next| sum + next <= bytes) {
        sum += next;
        end += 1;
    }
    position..end
}

/// What is best rewritten now: a segment of which a third is dead; else a run of `fanout` neighbours of one level, with
/// the smaller ones between them, on the highest level where there is one.
fn choose(snapshot: &Snapshot, merging: Merging) -> Result<Option<Range<usize>>, Damage> {
    if merging.bytes == 0 {
        return Ok(None);
    }
    let entries = &snapshot.manifest().segments;
    for position in 0..entries.len() {
        let (dead, rows) = snapshot.dead_rows(position)?;
        if dead > 0 && dead.saturating_mul(DEAD_ROWS) >= rows {
            return Ok(Some(position..position + 1));
        }
    }
    let levels: Vec<u32> = entries.iter().map(|entry| level(entry.file.file_bytes)).collect();
    for wanted in (0..=levels.iter().copied().max().unwrap_or(0)).rev() {
        let mut start = 0;
        for run in levels.chunk_by(|a, b| (*a <= wanted) == (*b <= wanted)) {
            let here = start;
            start += run.len();
            if run.iter().filter(|level| **level == wanted).count() < merging.fanout.max(2) {
                continue;
            }
            let within = neighbours(entries, here, merging.bytes);
            let run = here..within.end.min(start);
            if run.len() > 1 {
                return Ok(Some(run));
            }
        }
    }
    Ok(None)
}

fn level(bytes: u64) -> u32 {
    let mut level = 0;
    let mut limit = LEVEL_BYTES;
    while bytes > limit {
        level += 1;
        limit = limit.saturating_mul(LEVEL_FACTOR);
    }
    level
}
