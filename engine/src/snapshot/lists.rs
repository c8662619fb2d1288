//! Which edge lists of a generation count.

use crate::error::Damage;
use crate::segment::Segment;
use crate::snapshot::Snapshot;
use hedgerow_format::DocumentId;
use hedgerow_format::segment::EdgeListView;

impl Snapshot {
    /// The edge lists of a segment whose documents are live, each with its document. Entity slots are those of the segment.
    pub(crate) fn edge_lists<'s>(
        &'s self,
        segment: &'s Segment,
    ) -> Result<impl Iterator<Item = Result<(DocumentId, EdgeListView<'s>), Damage>>, Damage> {
        let is_live = |found: &Result<(DocumentId, EdgeListView<'s>), Damage>| match found {
            Ok((document, _)) => self.is_live_document(*document),
            Err(_) => true,
        };
        Ok(segment.edge_lists()?.filter(is_live))
    }
}
