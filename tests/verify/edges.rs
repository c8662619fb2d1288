//! What `verify` finds in edges: kinds, counts, settings and origins that are not those that they must be.

use crate::stores::Place;
use crate::verify::{Parts, check_forged, filled, forge, section, verified};
use hedgerow::{Batch, EdgeRules, Node, Quiet, StagedChunk, StagedDocument, StagedVector};
use hedgerow_format::file::FileKind;
use hedgerow_format::projection::{EdgeReportRow, EdgeSignalRow};
use hedgerow_format::section::SectionKind;
use hedgerow_format::{Record, TextRef};

#[test]
fn origins_that_are_none_or_differ_are_found() {
    let set = |parts: &mut Parts, origins: Vec<u8>| {
        parts.retain(|(kind, _)| *kind != SectionKind::EdgeOrigins);
        parts.push((SectionKind::EdgeOrigins, origins));
        parts.sort_by_key(|(kind, _)| *kind);
    };
    let targets = |parts: &mut Parts| section(parts, SectionKind::EdgeTargets).len() / 4;
    check_forged(FileKind::Edges, 0, &["two origins"], |parts| {
        let mut origins = vec![1; targets(parts)];
        origins[0] = 3;
        set(parts, origins);
    });
    for origin in [0, 4, 255] {
        check_forged(FileKind::Edges, 0, &["S-EDG-6"], |parts| {
            let origins = vec![origin; targets(parts)];
            set(parts, origins);
        });
    }
    check_forged(FileKind::Edges, 0, &["S-EDG-6"], |parts| {
        let origins = vec![1; targets(parts) + 1];
        set(parts, origins);
    });
    let place = filled();
    forge(&place, FileKind::Edges, 0, |parts| {
        let origins = vec![2; targets(parts)];
        set(parts, origins);
    });
    assert_eq!(verified(&place).problems, Vec::<String>::new(), "that is for the facts to say");
}

#[test]
fn settings_in_a_report_that_are_not_those_of_the_manifest_are_found() {
    for change in [
        (|row| EdgeReportRow { cap: 1, ..row }) as fn(EdgeReportRow) -> EdgeReportRow,
        |row| EdgeReportRow { nearest: 7, ..row },
        |row| EdgeReportRow { nearest_by: 1, ..row },
        |row| EdgeReportRow { least: 7, ..row },
        |row| EdgeReportRow { shared_chunks: 7, ..row },
        |row| EdgeReportRow { shared_top_m: 7, ..row },
        |row| EdgeReportRow { weighted: 1, ..row },
    ] {
        check_forged(FileKind::Edges, 0, &["another report"], |parts| {
            let report = section(parts, SectionKind::EdgeReport);
            let row = EdgeReportRow::decode(report).expect("there is a row");
            report.clear();
            change(row).encode(report);
        });
    }
    check_forged(FileKind::Edges, 0, &["another report"], |parts| {
        let mut signals = Vec::new();
        EdgeSignalRow { what: 5, percentile: 0, weight: 0, space: TextRef::default(), threshold: 0.0 }
            .encode(&mut signals);
        parts.push((SectionKind::EdgeSignals, signals));
    });
}

#[test]
fn an_edge_between_chunks_of_another_kind_is_found() {
    let place = Place::new();
    let store = place.open();
    let mut batch = Batch::default();
    for (number, kind) in [(0, 0), (1, 0), (2, 1)] {
        let vector = StagedVector { space: "v".into(), model: "m".into(), components: vec![1.0] };
        let chunk = StagedChunk { range: 0..1, kind, vectors: vec![vector], ..StagedChunk::default() };
        let name = format!("d{number}");
        batch.put(StagedDocument { name, text: "x".into(), chunks: vec![chunk], ..StagedDocument::default() });
    }
    store.commit(batch).expect("the batch is sound");
    store.build_edges("v", &EdgeRules::new(0, 4), &Quiet).expect("edges can be built");
    drop(store);
    let chunk = |name: &str| match place.read().find(name).expect("it is there") {
        Node::Chunk(chunk) => chunk.0,
        _ => panic!("{name} is a chunk"),
    };
    // Two that are no tables, of which one has an edge to the other in the place of that to the table.
    let mut ends = ["chunk:d0#0", "chunk:d1#0"].map(chunk);
    ends.sort_unstable();
    let file = forge(&place, FileKind::Edges, 1, |parts| {
        let offsets = section(parts, SectionKind::EdgeOffsets);
        for (row, offset) in (0_u32..).zip(offsets.chunks_mut(4)) {
            let before = ends.iter().filter(|end| **end < row).count();
            offset.copy_from_slice(&u32::try_from(before).expect("they are two").to_le_bytes());
        }
        let targets = [ends[1], ends[0]];
        *section(parts, SectionKind::EdgeTargets) = targets.iter().flat_map(|chunk| chunk.to_le_bytes()).collect();
        *section(parts, SectionKind::EdgeWeights) = 1_f32.to_le_bytes().repeat(2);
    });
    let problems = verified(&place).problems;
    let name = file.file_name().expect("it has a name").to_string_lossy().into_owned();
    assert!(problems.len() == 1 && problems[0].contains(&name), "{problems:?}");
    assert!(problems[0].contains("chunks of another kind"), "{problems:?}");
}

#[test]
fn a_report_that_counts_other_pairs_than_there_are_is_found() {
    for change in [
        (|row| EdgeReportRow { kind: 3, ..row }) as fn(EdgeReportRow) -> EdgeReportRow,
        |row| EdgeReportRow { kind: 1, ..row },
        |row| EdgeReportRow { pairs: row.pairs + 1, ..row },
        |row| EdgeReportRow { rows: row.rows + 1, ..row },
        |row| EdgeReportRow { rows: u64::MAX, tables: u64::MAX, kind: 1, ..row },
        |row| EdgeReportRow { tables: 1, ..row },
    ] {
        check_forged(FileKind::Edges, 0, &["S-EDG-2"], |parts| {
            let report = section(parts, SectionKind::EdgeReport);
            let row = EdgeReportRow::decode(report).expect("there is a row");
            report.clear();
            change(row).encode(report);
        });
    }
}
