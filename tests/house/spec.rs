//! `SPEC.md` and the `format` crate say the same; `UPDATE_SPEC=1` writes the tables of the code into `SPEC.md`.

use crate::house::source::{expect_none, line_of, root, rust_files};
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::RECORDS;
use std::collections::BTreeSet;
use std::fs;

const END: &str = "<!-- end -->";

/// What stands above the rows of a table that has none yet.
const RECORD_HEAD: &str = "| Offset | Size | Field | Meaning |\n|---:|---:|---|---|\n";
const SECTION_HEAD: &str = "| Number | Name | Bytes | Meaning |\n|---:|---|---:|---|\n";

#[test]
fn the_tables_of_the_specification_are_those_of_the_code() {
    let path = root().join("SPEC.md");
    let mut spec = fs::read_to_string(&path).expect("the project has a SPEC.md");
    let before = spec.clone();
    let mut broken = Vec::new();
    for (name, head, rows) in tables() {
        match rewritten(&spec, &name, head, &rows) {
            None => broken.push(format!("SPEC.md has no table marked <!-- table: {name} -->")),
            Some(other) if other != spec => {
                broken.push(format!("the table {name} of SPEC.md differs from the code; expected\n{rows}"));
                spec = other;
            }
            Some(_) => {}
        }
    }
    if std::env::var_os("UPDATE_SPEC").is_some() && spec != before {
        fs::write(&path, spec).expect("SPEC.md can be written");
        return;
    }
    expect_none(&broken);
}

/// Every table of the code: its name, its head and its rows.
fn tables() -> Vec<(String, &'static str, String)> {
    let records = RECORDS.iter().map(|(name, fields)| {
        let row = |field: &hedgerow_format::Field| {
            format!("| {} | {} | `{}` | {} |\n", field.offset, field.size, field.name, field.meaning)
        };
        ((*name).to_owned(), RECORD_HEAD, fields.iter().map(row).collect())
    });
    let section = |(kind, meaning): &(SectionKind, &str)| {
        format!("| {} | {} | {} | {meaning} |\n", kind.number(), kind.name(), kind.element_bytes())
    };
    let sections = SectionKind::ALL.iter().map(section).collect();
    records.chain([("SectionKind".to_owned(), SECTION_HEAD, sections)]).collect()
}

/// The specification with these rows in the table of this name, whose head stays as it is.
fn rewritten(spec: &str, name: &str, head: &str, rows: &str) -> Option<String> {
    let start = spec.find(&format!("<!-- table: {name} -->\n"))?;
    let start = start + spec[start..].find('\n')? + 1;
    let end = start + spec[start..].find(END)?;
    let written: String = spec[start..end].split_inclusive('\n').take_while(|line| !is_row(line)).collect();
    let head = if written.contains("|--") || written.contains("| --") { written.as_str() } else { head };
    Some(format!("{}{head}{rows}{}", &spec[..start], &spec[end..]))
}

/// Whether a line of a table is one of its rows: they begin with a number.
fn is_row(line: &str) -> bool {
    line.trim_start_matches(['|', ' ']).starts_with(|letter: char| letter.is_ascii_digit())
}

#[test]
fn every_rule_that_the_code_names_is_a_sentence_of_the_specification() {
    let spec = fs::read_to_string(root().join("SPEC.md")).expect("the project has a SPEC.md");
    let known: BTreeSet<&str> = rules(&spec).into_iter().map(|(_, rule)| rule).collect();
    let mut broken = Vec::new();
    for (file, text) in rust_files("format/src").into_iter().chain(rust_files("engine/src")) {
        for (at, rule) in rules(&text) {
            if !known.contains(rule) {
                broken.push(format!("{file}:{} names {rule}, which SPEC.md does not have", line_of(&text, at)));
            }
        }
    }
    expect_none(&broken);
}

/// Rule numbers such as `S-DOC-1`, with their places.
fn rules(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("S-") {
        let rest = &text[at + 2..];
        let letters = rest.bytes().take_while(u8::is_ascii_uppercase).count();
        let Some(number) = rest[letters..].strip_prefix('-').filter(|_| letters == 3) else { continue };
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            found.push((at, &text[at..at + 2 + letters + 1 + digits]));
        }
    }
    found
}

#[test]
fn rows_are_replaced_and_heads_stay() {
    let spec = "a\n<!-- table: T -->\n| N | M |\n|--:|---|\n| 1 | old |\n<!-- end -->\nb";
    let expected = "a\n<!-- table: T -->\n| N | M |\n|--:|---|\n| 2 | new |\n<!-- end -->\nb";
    assert_eq!(rewritten(spec, "T", "", "| 2 | new |\n").as_deref(), Some(expected));
    assert_eq!(rules("S-DOC-12, US-1, S-AB-1"), [(0, "S-DOC-12")]);
}
