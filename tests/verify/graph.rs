//! What `verify` finds in relations and communities: every invariant by its number, and members that are no live entities.

use crate::stores::{Letters, Place};
use crate::verify::{Parts, filled, forge, section, verified};
use hedgerow::{CommunityRules, Extractive, Quiet};
use hedgerow_format::file::FileKind;
use hedgerow_format::section::SectionKind;

fn grouped() -> Place {
    let place = filled();
    let store = place.open_unmerged();
    let built = store.build_communities(&CommunityRules::default(), &Extractive, Some(&Letters), &Quiet);
    assert!(built.expect("communities can be found").made > 1);
    drop(store);
    drop(place.open());
    assert_eq!(verified(&place).problems, Vec::<String>::new());
    place
}

/// A problem names the rule and the file.
#[track_caller]
fn check(kind: FileKind, said: &str, change: impl FnOnce(&mut Parts)) {
    let place = grouped();
    let file = forge(&place, kind, 0, change);
    let name = file.file_name().expect("it has a name").to_string_lossy().into_owned();
    let problems = verified(&place).problems;
    assert!(problems.iter().any(|problem| problem.contains(said) && problem.contains(&name)), "{said}: {problems:?}");
}

/// Puts a number into a section.
fn put(parts: &mut Parts, kind: SectionKind, at: usize, number: u32) {
    section(parts, kind)[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

#[test]
fn communities_that_do_not_fit_together_are_found() {
    let communities = |said, kind, at, number| check(FileKind::Communities, said, |parts| put(parts, kind, at, number));
    communities("S-COM-1", SectionKind::CommunitySettings, 4, 0);
    communities("S-COM-1", SectionKind::CommunitySettings, 32, 2);
    communities("S-COM-2", SectionKind::CommunityLevels, 0, 1);
    communities("S-COM-2", SectionKind::CommunityLevels, 4, 0);
    communities("S-COM-3", SectionKind::Communities, 16, 0);
    communities("S-COM-3", SectionKind::Communities, 20, 1);
    communities("S-COM-3", SectionKind::Communities, 24, 1);
    communities("S-COM-3", SectionKind::Communities, 28, 1);
    communities("S-COM-3", SectionKind::Communities, 32, 2.0_f32.to_bits());
    communities("S-COM-4", SectionKind::CommunityOrder, 0, 9999);
    communities("S-COM-5", SectionKind::CommunityReports, 24, 1);
    communities("S-COM-6", SectionKind::ReportVectors, 0, f32::NAN.to_bits());
    check(FileKind::Communities, "S-COM-4", |parts| {
        let order = section(parts, SectionKind::CommunityOrder);
        order.rotate_left(4);
    });
    check(FileKind::Communities, "S-COM-6", |parts| {
        parts.retain(|(kind, _)| *kind != SectionKind::ReportVectors);
    });
}

#[test]
fn a_member_that_is_no_live_entity_is_found() {
    check(FileKind::Communities, "no live entity", |parts| {
        let order = section(parts, SectionKind::CommunityOrder).clone();
        let last = order.last_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes)).expect("there are members");
        let place = 16 * usize::try_from(last).expect("it fits");
        section(parts, SectionKind::CommunityMembers)[place..place + 16].fill(0xff);
    });
}

#[test]
fn relations_that_do_not_fit_together_are_found() {
    let links = |said, kind, at, number| check(FileKind::Links, said, |parts| put(parts, kind, at, number));
    // A label without a letter.
    links("S-LNK-4", SectionKind::LinkPredicates, 4, 0);
    links("S-LNK-5", SectionKind::LinkRelationOffsets, 0, 1);
    links("S-LNK-5", SectionKind::LinkRelations, 0, 9999);
    check(FileKind::Links, "S-LNK-5", |parts| {
        parts.retain(|(kind, _)| *kind != SectionKind::LinkPredicates);
    });
    check(FileKind::Links, "S-LNK-6", |parts| {
        let bytes = section(parts, SectionKind::LinkRelations).len();
        parts.push((SectionKind::LinkRelationWeights, vec![0; bytes]));
        parts.sort_by_key(|(kind, _)| *kind);
    });
    check(FileKind::Links, "S-LNK-7", |parts| {
        let relating = section(parts, SectionKind::LinkRelating);
        let first = relating.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes)).expect("there are relations");
        put(parts, SectionKind::LinkRelating, 0, u32::from(first == 0));
    });
}
