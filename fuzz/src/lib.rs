//! What the fuzz targets check; plain functions, so that the corpus is replayed by the tests too.

use hedgerow_format::file::{FileBuilder, FileIdentity, FileKind, Whole};
use hedgerow_format::head::Head;
use hedgerow_format::manifest::Manifest;
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::segment::{self, DocumentRow, SegmentShape, Terms};
use hedgerow_format::text::TextView;
use hedgerow_format::{Record, projection};

/// Bytes as they are, then as the sections of a file whose checksums are right: no decoder may panic, hang or take
/// more memory than the file bears out, and what was made from decoded values must decode to the same.
pub fn files(bytes: &[u8]) {
    if let Ok(head) = Head::from_bytes(bytes) {
        assert_eq!(head.to_bytes(), bytes, "a head that is read is written the same");
    }
    if let Ok(manifest) = Manifest::from_bytes(bytes) {
        let again = manifest.to_bytes().and_then(|bytes| Manifest::from_bytes(&bytes));
        assert_eq!(again.as_ref(), Ok(&manifest), "a manifest that is read is written the same");
    }
    for kind in [FileKind::Segment, FileKind::Links, FileKind::Edges, FileKind::Manifest] {
        if let Ok(file) = Whole::open(kind, bytes) {
            read(
                kind,
                &file,
                SegmentShape { documents_end: 1, documents: 1, chunks_end: 1, chunks: 1, ..SegmentShape::default() },
            );
        }
    }
    wrapped(bytes);
}

/// The first bytes choose the kind and the shape; then come sections: kind, length in two bytes, bytes.
fn wrapped(bytes: &[u8]) {
    let Some((&[kind, documents, chunks, dead], mut rest)) = bytes.split_first_chunk::<4>() else { return };
    let kind = [FileKind::Segment, FileKind::Links, FileKind::Edges, FileKind::Manifest][usize::from(kind % 4)];
    let mut sections: Vec<Option<Vec<u8>>> = vec![None; SectionKind::ALL.len()];
    while let Some((&[section, low, high], after)) = rest.split_first_chunk::<3>() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(after.len());
        let (content, after) = after.split_at(length);
        let position = usize::from(section) % sections.len();
        sections[position] = Some(content.to_vec());
        rest = after;
    }
    let identity = FileIdentity { kind, store: [7; 16], number: 1, random: 2 };
    let Ok(mut file) = FileBuilder::new(Vec::new(), identity) else { return };
    for ((section, _), content) in SectionKind::ALL.iter().zip(sections) {
        let mut content = content.unwrap_or_default();
        content.truncate(content.len() - content.len() % section.element_bytes() as usize);
        if file.section(*section, &content).is_err() {
            return;
        }
    }
    let Ok((finished, mut whole)) = file.finish() else { return };
    whole[..256].copy_from_slice(&finished.header);
    let file = Whole::open(kind, &whole).expect("what the builder wrote is a whole file");
    let first = u32::from(dead);
    let (documents, chunks) = (u32::from(documents), u32::from(chunks));
    read(
        kind,
        &file,
        SegmentShape {
            first_document: first,
            documents_end: first.saturating_add(documents),
            documents,
            first_chunk: first,
            chunks_end: first.saturating_add(chunks),
            chunks,
        },
    );
}

/// Every view of a file, whether it is valid or not.
fn read(kind: FileKind, file: &Whole<'_>, shape: SegmentShape) {
    match kind {
        FileKind::Segment => {
            let _ = segment::validate(file, shape);
            let _ = segment::dead_documents(file);
            if let Ok(terms) = Terms::of(file) {
                let _ = terms.find("hedgerow");
            }
            texts(file);
        }
        FileKind::Links => drop(projection::validate_links(file, shape.chunks)),
        FileKind::Edges => drop(projection::validate_edges(file, shape.chunks)),
        FileKind::Manifest => {
            if let Ok(bytes) = file.section(SectionKind::Manifest) {
                let _ = Manifest::from_bytes(bytes);
            }
        }
    }
}

fn texts(file: &Whole<'_>) {
    let (Ok(documents), Ok(blocks)) =
        (file.rows::<DocumentRow>(SectionKind::Documents), file.rows(SectionKind::TextBlocks))
    else {
        return;
    };
    let Ok(bytes) = file.section(SectionKind::Text) else { return };
    let view = TextView { blocks, bytes };
    for row in documents.iter().take(16) {
        let mut encoded = Vec::new();
        row.encode(&mut encoded);
        assert_eq!(encoded.len(), DocumentRow::SIZE, "a record has one size");
        let _ = file.string(row.name);
        let end = row.text_offset.saturating_add(u64::from(row.text_bytes.min(1 << 20)));
        let _ = view.read(row.text_offset..end);
    }
}
