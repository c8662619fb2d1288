//! Which room may know which: the engine's architecture, as a table that a test enforces.

use crate::house::source::{code, expect_none, is_word, line_of, root, rust_files, without_tests};
use std::collections::BTreeSet;
use std::fs;

/// Rooms of the engine, lowest first; each lists every room that it may name. The façade may name them all.
const ROOMS: &[(&str, &[&str])] = &[
    ("planted", &[]),
    ("model", &[]),
    ("error", &["model"]),
    ("storage", &["error", "planted"]),
    ("distance", &[]),
    ("index", &["distance", "error"]),
    ("segment", &["planted", "index", "distance", "storage", "error"]),
    ("projection", &["segment", "index", "storage", "error"]),
    ("manifest", &["storage", "error"]),
    ("catalog", &["planted", "storage", "error"]),
    ("snapshot", &["planted", "manifest", "projection", "segment", "index", "storage", "error"]),
    ("writer", &["planted", "snapshot", "catalog", "manifest", "projection", "segment", "index", "storage", "error"]),
    ("ingest", &["writer", "snapshot", "segment", "index", "distance", "model", "error"]),
    ("project", &["planted", "writer", "snapshot", "projection", "segment", "index", "distance", "model", "error"]),
    ("query", &["planted", "snapshot", "projection", "segment", "index", "distance", "model", "error"]),
    (
        "maintain",
        &[
            "writer",
            "snapshot",
            "catalog",
            "manifest",
            "projection",
            "segment",
            "index",
            "distance",
            "storage",
            "error",
        ],
    ),
];

/// The rooms that do what a caller asks for; none of them knows another.
const VERBS: [&str; 4] = ["ingest", "project", "query", "maintain"];

#[test]
fn the_table_of_rooms_points_downwards_and_verbs_never_meet() {
    for (position, (room, allowed)) in ROOMS.iter().enumerate() {
        for name in *allowed {
            let below = ROOMS[..position].iter().any(|(below, _)| below == name);
            assert!(below, "{room} may name {name}, which is not below it");
            assert!(!VERBS.contains(name), "{room} may name {name}, which is a verb");
        }
    }
}

#[test]
fn every_room_names_only_the_rooms_that_the_table_allows() {
    let mut broken = Vec::new();
    for (file, text) in rust_files("engine/src") {
        let Some((room, allowed)) = ROOMS.iter().find(|(room, _)| Some(*room) == room_of(&file)) else { continue };
        let code = code(&text);
        for (line, name) in names_after_crate(&code) {
            if name != *room && !allowed.contains(&name.as_str()) {
                broken.push(format!("{file}:{line} is in {room}, which may not name {name}"));
            }
        }
        // Paths begin at the crate, so that this test sees every one of them.
        let outside = without_tests(&code);
        let upward = outside.match_indices("super::").map(|(at, _)| line_of(&outside, at));
        broken.extend(upward.map(|line| format!("{file}:{line} says super::")));
    }
    expect_none(&broken);
}

#[test]
fn every_module_of_the_engine_is_a_room() {
    let lib = code(&fs::read_to_string(root().join("engine/src/lib.rs")).expect("the engine has a façade"));
    let modules = lib.lines().filter_map(|line| {
        let line = line.trim_start_matches("pub ").trim_start_matches("pub(crate) ");
        line.strip_prefix("mod ")?.trim().strip_suffix(';')
    });
    let rooms: BTreeSet<&str> = ROOMS.iter().map(|(name, _)| *name).collect();
    assert_eq!(modules.collect::<BTreeSet<_>>(), rooms);
    for (file, _) in rust_files("engine/src") {
        let placed = file == "engine/src/lib.rs" || room_of(&file).is_some_and(|room| rooms.contains(room));
        assert!(placed, "{file} is in no room");
    }
}

/// The room that a file is in: the first part of its path below `engine/src`.
fn room_of(file: &str) -> Option<&str> {
    let inside = file.strip_prefix("engine/src/")?;
    Some(inside.split_once('/').map_or_else(|| inside.trim_end_matches(".rs"), |(room, _)| room))
}

/// Every name that stands right after `crate::`, alone or first in a group, with its line.
fn names_after_crate(code: &str) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    let paths = code.match_indices("crate::").filter(|(at, _)| *at == 0 || !is_word(code.as_bytes()[at - 1]));
    for (at, path) in paths {
        let start = at + path.len();
        let line = line_of(code, at);
        names.extend(first_names(&code[start..]).into_iter().map(|name| (line, name)));
    }
    names
}

/// The first name of a path, or of every path in a group.
fn first_names(path: &str) -> Vec<String> {
    let path = path.trim_start();
    let Some(group) = path.strip_prefix('{') else { return vec![first_name(path)] };
    let (mut depth, mut names, mut start) = (1, Vec::new(), 0);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && letter == ',') {
            names.push(first_name(group[start..at].trim_start()));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn first_name(path: &str) -> String {
    path.bytes().take_while(|byte| is_word(*byte)).map(char::from).collect()
}

#[test]
fn names_in_groups_and_in_the_middle_of_code_are_seen() {
    let text = "use crate::{error::{Damage, Error}, storage::Env, index};\npub use crate::query::ask;\n\
                fn f() -> crate::writer::Store { $crate::catalog::x() }\npub(in crate::segment) fn g() {}";
    let names: Vec<String> = names_after_crate(&code(text)).into_iter().map(|(_, name)| name).collect();
    assert_eq!(names, ["error", "storage", "index", "query", "writer", "catalog", "segment"]);
}
