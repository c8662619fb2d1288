//! Manifests: of any bytes, and of any values.

use crate::checks::image::Image;
use crate::checks::input::Input;
use hedgerow_format::manifest::{EdgeSettings, EdgeSignal, FileEntry, Manifest, ProjectionEntry, SegmentEntry};

/// What is read is written so that it reads the same; what can be written can be read or breaks a numbered rule.
pub fn check(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::from_bytes(bytes) {
        let again = manifest.to_bytes().and_then(|bytes| Manifest::from_bytes(&bytes));
        assert_eq!(again.as_ref(), Ok(&manifest), "a manifest that is read is written the same");
    }
    let made = made(bytes);
    let bytes = made.to_bytes().expect("it is small");
    if let Ok(read) = Manifest::from_bytes(&bytes) {
        assert_eq!(read, made, "a manifest that is written is read the same");
        assert!(read.segments.is_sorted_by(|a, b| a.documents_end <= b.first_document));
        assert!(read.segments.is_sorted_by(|a, b| a.chunks_end <= b.first_chunk));
        let counted = read.segments.iter().map(|segment| u64::from(segment.chunks)).sum::<u64>();
        assert!(counted <= u64::from(read.chunks_end), "there are no more chunks than ids");
    }
}

fn made(bytes: &[u8]) -> Manifest {
    let mut input = Input(bytes);
    let mut manifest = Manifest {
        store: [input.byte(); 16],
        generation: u64::from(input.short()),
        facts: u64::from(input.short()),
        documents_end: input.word(),
        chunks_end: input.word(),
        ..Manifest::default()
    };
    let (segments, projections) = (input.byte() % 8, input.byte() % 8);
    let file = |input: &mut Input<'_>| FileEntry {
        number: u64::from(input.byte()),
        random: input.long(),
        file_bytes: input.long(),
        header_hash: [input.byte(); 32],
    };
    for _ in 0..segments {
        manifest.segments.push(SegmentEntry {
            file: file(&mut input),
            first_document: input.word(),
            documents_end: input.word(),
            documents: input.word(),
            first_chunk: input.word(),
            chunks_end: input.word(),
            chunks: input.word(),
        });
    }
    for _ in 0..projections {
        manifest.projections.push(ProjectionEntry {
            file: file(&mut input),
            kind: u32::from(input.byte() % 5),
            chunks_end: input.word(),
            facts: u64::from(input.short()),
            space: input.text(),
            pairs: u32::from(input.byte() % 5),
            settings: settings(&mut input),
        });
    }
    manifest
}

/// Settings that are mostly within their limits.
fn settings(input: &mut Input<'_>) -> EdgeSettings {
    EdgeSettings {
        percentiles: [(); 3].map(|()| u32::from(input.short()) * 2),
        top_m: u32::from(input.short() % 1100),
        cap: u32::from(input.byte() % 3),
        nearest: u32::from(input.short() % 1100),
        nearest_by: u32::from(input.byte() % 3),
        least: input.word(),
        shared_chunks: u32::from(input.short() % 1100),
        shared_top_m: u32::from(input.short() % 1100),
        weighted: u32::from(input.byte() % 3),
        signals: (0..input.byte() % 3)
            .map(|_| EdgeSignal {
                what: u32::from(input.byte() % 8),
                percentile: u32::from(input.short()) * 2,
                weight: input.word() >> 11,
                space: input.text(),
            })
            .collect(),
    }
}

/// Manifests of two small stores.
pub fn seeds() -> Vec<Vec<u8>> {
    [Image::settled(), Image::behind()].iter().map(|image| image.manifest.to_bytes().expect("it is small")).collect()
}
