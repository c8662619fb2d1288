//! Live documents whose texts lie together, so that a block of text that holds many of them is unpacked once.

use crate::error::Damage;
use crate::planted::{Planted, planted};
use crate::segment::Segment;
use crate::snapshot::Snapshot;
use hedgerow_format::DocumentId;
use hedgerow_format::segment::DocumentRow;

/// Bytes of text that are read at once, unless one document has more.
const RUN_BYTES: u64 = 1 << 20;

/// Some live documents of a segment, in the order of slots.
#[derive(Debug)]
pub(crate) struct TextRun<'s> {
    pub segment: &'s Segment,
    pub documents: Vec<(DocumentId, DocumentRow)>,
}

impl Snapshot {
    /// All live documents of a segment.
    pub(crate) fn text_runs<'s>(&self, segment: &'s Segment) -> Result<Vec<TextRun<'s>>, Damage> {
        let mut runs: Vec<TextRun<'s>> = Vec::new();
        let mut start = 0;
        for (id, row) in segment.document_ids().iter().map(DocumentId).zip(segment.documents()?.iter()) {
            if !self.is_live_document(id) && !planted(Planted::DeadKept) {
                continue;
            }
            let end = row.text_offset.saturating_add(u64::from(row.text_bytes));
            match runs.last_mut() {
                Some(run) if end.saturating_sub(start) <= RUN_BYTES => run.documents.push((id, row)),
                _ => {
                    start = row.text_offset;
                    runs.push(TextRun { segment, documents: vec![(id, row)] });
                }
            }
        }
        Ok(runs)
    }
}

impl TextRun<'_> {
    /// Calls `visit` with each document and its text.
    pub(crate) fn for_each<E: From<Damage>>(
        &self,
        mut visit: impl FnMut(DocumentId, &DocumentRow, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let (Some((_, first)), Some((_, last))) = (self.documents.first(), self.documents.last()) else {
            return Ok(());
        };
        let text = self.segment.texts(first, last)?;
        for (id, row) in &self.documents {
            let start = usize::try_from(row.text_offset.saturating_sub(first.text_offset)).unwrap_or(usize::MAX);
            let end = usize::try_from(row.text_bytes).ok().and_then(|bytes| start.checked_add(bytes));
            visit(*id, row, end.and_then(|end| text.get(start..end)).unwrap_or_default())?;
        }
        Ok(())
    }
}
