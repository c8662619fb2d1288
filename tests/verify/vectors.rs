//! What `verify` finds in a vector index: every invariant by its number.

use crate::stores::Place;
use crate::verify::{Parts, filled, forge, section, verified};
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
