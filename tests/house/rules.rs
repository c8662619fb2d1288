//! The rules of the house that a machine can check.

use crate::house::source::{
    closing, code, expect_none, files_under, inside, is_word, line_of, root, rust_files, without_tests, words,
};
use std::fs;

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 70;
/// All folders that hold Rust.
const FOLDERS: [&str; 6] = ["format", "engine", "tools", "tests", "benches", "fuzz"];
/// The files that may say `unsafe`.
const UNSAFE: [&str; 8] = [
    "engine/src/distance/fine.rs",
    "engine/src/distance/kernel.rs",
    "engine/src/distance/near.rs",
    "engine/src/distance/neon.rs",
    "engine/src/distance/peak.rs",
    "engine/src/distance/tile.rs",
    "engine/src/distance/x86.rs",
    "engine/src/storage/mapping.rs",
];

fn all_rust_files() -> Vec<(String, String)> {
    FOLDERS.into_iter().flat_map(rust_files).collect()
}

#[test]
fn files_have_at_most_five_hundred_lines_without_their_tests() {
    let mut broken = Vec::new();
    for (file, text) in all_rust_files() {
        let code = code(&text);
        let kept = without_tests(&code);
        let tests = code.lines().zip(kept.lines()).filter(|(before, after)| before != after).count();
        let lines = text.lines().count() - tests;
        if lines > FILE_LINES {
            broken.push(format!("{file} has {lines} lines"));
        }
    }
    expect_none(&broken);
}

#[test]
fn functions_have_at_most_seventy_lines() {
    let mut broken = Vec::new();
    for (file, text) in all_rust_files() {
        for (name, first, lines) in functions(&code(&text)) {
            if lines > FUNCTION_LINES {
                broken.push(format!("{file}:{first} {name} has {lines} lines"));
            }
        }
    }
    expect_none(&broken);
}

/// Name, first line and number of lines of every function with a body.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    for at in words(code, "fn") {
        let rest = code[at + 2..].trim_start();
        let name: String = rest.bytes().take_while(|byte| is_word(*byte)).map(char::from).collect();
        let Some(open) = body(code, at).filter(|_| !name.is_empty()) else { continue };
        let (first, last) = (line_of(code, at), line_of(code, closing(code, open) - 1));
        found.push((name, first, last - first + 1));
    }
    found
}

/// Where the body of the function at `at` opens, if it has one.
fn body(code: &str, at: usize) -> Option<usize> {
    let mut depth = 0;
    for (place, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some(place),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

#[test]
fn every_file_opens_with_a_sentence() {
    let mut broken = Vec::new();
    for (file, text) in all_rust_files() {
        let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        let sentence = lines.split(|line| line.trim().is_empty()).next().unwrap_or_default().concat();
        if !sentence.starts_with(' ') || !sentence.ends_with('.') {
            broken.push(format!("{file} does not open with a sentence in //!"));
        }
    }
    expect_none(&broken);
}

#[test]
fn unsafe_stands_in_named_files_and_each_block_says_why_it_is_sound() {
    let mut broken = Vec::new();
    for (file, text) in all_rust_files() {
        let (code, lines) = (code(&text), text.lines().collect::<Vec<_>>());
        for at in words(&code, "unsafe") {
            let line = line_of(&code, at);
            if !UNSAFE.contains(&file.as_str()) {
                broken.push(format!("{file}:{line} says unsafe"));
            }
            let opens = code[at + "unsafe".len()..].trim_start();
            if (opens.starts_with('{') || opens.starts_with("impl")) && !is_explained(&lines[..line - 1]) {
                broken.push(format!("{file}:{line} has no // SAFETY: before it"));
            }
        }
    }
    expect_none(&broken);
}

/// Whether the lines end in a comment that says SAFETY; attributes and the first lines of the statement may follow it.
fn is_explained(before: &[&str]) -> bool {
    let mut rest = before.iter().rev().map(|line| line.trim()).peekable();
    while rest.next_if(|line| line.starts_with("#[") || line.ends_with('=') || line.ends_with('(')).is_some() {}
    rest.take_while(|line| line.starts_with("//")).any(|line| line.starts_with("// SAFETY:"))
}

#[test]
fn only_the_room_storage_knows_the_file_system() {
    let mut broken = Vec::new();
    for (file, text) in rust_files("engine/src").into_iter().chain(rust_files("format/src")) {
        if file.starts_with("engine/src/storage/") {
            continue;
        }
        let code = code(&text);
        for forbidden in ["std::fs", "fs::", "File::", "OpenOptions"] {
            for (at, _) in code.match_indices(forbidden).filter(|(at, _)| !is_word(code.as_bytes()[at.max(&1) - 1])) {
                broken.push(format!("{file}:{} says {forbidden}", line_of(&code, at)));
            }
        }
    }
    expect_none(&broken);
}

#[test]
fn nothing_is_left_to_be_done_in_code() {
    let mut broken = Vec::new();
    for (file, text) in all_rust_files() {
        let code = code(&text);
        for forbidden in ["todo!", "unimplemented!", "dbg!"] {
            let places = code.match_indices(forbidden).map(|(at, _)| line_of(&code, at));
            broken.extend(places.map(|line| format!("{file}:{line} says {forbidden}")));
        }
    }
    expect_none(&broken);
}

#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    let root = root();
    let places = ["work", "tmp", "root", "home"].map(|folder| format!("/{folder}/"));
    let mut broken = Vec::new();
    for path in files_under(&root) {
        let file = inside(&root, &path);
        // Texts of other people speak of what they like.
        if file.starts_with("tests/data/") {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for place in &places {
            let found = text.match_indices(place.as_str()).map(|(at, _)| line_of(&text, at));
            broken.extend(found.map(|line| format!("{file}:{line} says {place}")));
        }
    }
    expect_none(&broken);
}

#[test]
fn functions_are_measured_from_their_first_line_to_their_last() {
    let text = "fn a(x: [u8; 2]) -> u8 {\n  1\n}\ntrait T { fn b(); }\nlet f: fn(u8);";
    assert_eq!(functions(text), [("a".to_owned(), 1, 3)]);
}

/// What `format` may allocate by a number: lengths of texts that it was given.
const MEASURED: [&str; 3] =
    ["String::with_capacity(text.len())", "Vec::with_capacity(text.len() / 4)", "String::with_capacity(name.len())"];

#[test]
fn the_format_allocates_nothing_by_a_number_that_stands_in_a_file() {
    let mut broken = Vec::new();
    for (file, text) in rust_files("format/src") {
        let code = without_tests(&code(&text));
        for sized in ["with_capacity(", "reserve(", "reserve_exact(", "resize(", "repeat(", "zeroed(", "from_elem("] {
            for (at, _) in code.match_indices(sized) {
                let line = code[code[..at].rfind('\n').map_or(0, |end| end + 1)..].lines().next().unwrap_or_default();
                if !MEASURED.iter().any(|measured| line.contains(measured)) {
                    broken.push(format!("{file}:{} says {sized}", line_of(&code, at)));
                }
            }
        }
        for (at, _) in code.match_indices("vec![") {
            let inside = &code[at..closing(&code, at + "vec!".len())];
            if inside.contains(';') {
                broken.push(format!("{file}:{} makes a vector by a number", line_of(&code, at)));
            }
        }
    }
    expect_none(&broken);
}
