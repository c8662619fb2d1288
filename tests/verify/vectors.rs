//! What `verify` finds in a vector index: every invariant by its number.

use crate::stores::Place;
use crate::verify::{Parts, check_forged, filled, forge, section, verified};
use hedgerow::{Env, Quiet, Store};
use hedgerow_format::file::FileKind;
use hedgerow_format::section::SectionKind;

/// A store whose space has an index.
fn indexed() -> Place {
    let place = filled();
    let mut env = Env::folder(&place.path()).expect("it is a folder");
    env.index_from = 1;
    Store::open_in(env).expect("the store opens").refresh(&Quiet).expect("it is sound");
    assert_eq!(verified(&place).problems, Vec::<String>::new());
    place
}

/// A problem names the rule and the file.
#[track_caller]
fn check(said: &str, change: impl FnOnce(&mut Parts)) {
    let place = indexed();
    let file = forge(&place, FileKind::Vectors, 0, change);
    let name = file.file_name().expect("it has a name").to_string_lossy().into_owned();
    let problems = verified(&place).problems;
    assert!(problems.iter().any(|problem| problem.contains(said) && problem.contains(&name)), "{said}: {problems:?}");
}

#[test]
fn an_index_that_does_not_fit_together_is_found() {
    let put = |said, kind, at, number: u32| {
        check(said, |parts| section(parts, kind)[at..at + 4].copy_from_slice(&number.to_le_bytes()));
    };
    put("S-VIX-1", SectionKind::VectorIndex, 16, 0);
    put("S-VIX-1", SectionKind::VectorIndex, 24, 257);
    put("S-VIX-1", SectionKind::VectorIndex, 36, 0x7ff0_0000);
    put("S-VIX-2", SectionKind::IndexedChunks, 0, 9999);
    put("S-VIX-3", SectionKind::IndexCodes, 0, 0);
    put("S-VIX-3", SectionKind::IndexErrors, 0, f32::NAN.to_bits());
    put("S-VIX-4", SectionKind::IndexNeighbours, 0, 9999);
    put("S-VIX-4", SectionKind::IndexEntries, 0, 9999);
    put("S-VIX-5", SectionKind::IndexWalks, 0, 0);
    put("S-VIX-5", SectionKind::IndexWalks, 4, 10_001);
    check("S-VIX-3", |parts| parts.retain(|(kind, _)| *kind != SectionKind::IndexErrors));
    check("S-VIX-4", |parts| {
        // A list that goes on after it ended.
        let lists = section(parts, SectionKind::IndexNeighbours);
        lists[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        lists[4..8].copy_from_slice(&0_u32.to_le_bytes());
    });
}

#[test]
fn vector_spaces_that_do_not_fit_together_are_found() {
    let put = |said: &str, kind, at: usize, bytes: &[u8]| {
        check_forged(FileKind::Segment, 1, &[said], |parts| {
            section(parts, kind)[at..at + bytes.len()].copy_from_slice(bytes);
        });
    };
    put("S-VEC-2", SectionKind::Spaces, 16, &4097_u32.to_le_bytes());
    put("S-VEC-2", SectionKind::Spaces, 20, &3_u16.to_le_bytes());
    put("S-VEC-2", SectionKind::Spaces, 22, &3_u16.to_le_bytes());
    put("S-VEC-3", SectionKind::Spaces, 22, &1_u16.to_le_bytes());
    put("S-VEC-3", SectionKind::Spaces, 32, &1_u64.to_le_bytes());
    put("S-VEC-5", SectionKind::Vectors, 0, &f32::NAN.to_le_bytes());
    put("S-VEC-5", SectionKind::Vectors, 0, &1e17_f32.to_le_bytes());
    put("not of length one", SectionKind::Vectors, 0, &3.0_f32.to_le_bytes());
    put("another model or kind", SectionKind::Spaces, 20, &1_u16.to_le_bytes());
    // Halves that are none, and codes without the greatest one.
    for (element, row_bytes, first) in [(1_u16, 2, 0x7c00_u16), (2, 1, 0)] {
        check_forged(FileKind::Segment, 1, &["S-VEC-5"], |parts| {
            let spaces = section(parts, SectionKind::Spaces);
            spaces[22..24].copy_from_slice(&element.to_le_bytes());
            let count = |at: usize| u32::from_le_bytes(*spaces[at..].first_chunk().expect("it is a row")) as usize;
            let scale = if element == 2 { 4 } else { 0 };
            let bytes = count(28) * (count(16) * row_bytes + scale);
            let vectors = section(parts, SectionKind::Vectors);
            *vectors = vec![1; bytes];
            vectors[..2].copy_from_slice(&first.to_le_bytes());
        });
    }
}
