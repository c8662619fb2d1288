//! What every strategy keeps to, whatever the text.

use crate::index::control::Quiet;
use crate::ingest::PartKind::{Table, Text};
use crate::ingest::chunking::{ChunkStrategy, Chunking};
use crate::ingest::{Document, Part, PartKind};
use crate::model::{Embed, ModelError};

/// A vector that tells which of the letters that a text begins its words with are the most.
struct Initials;

impl Embed for Initials {
    fn space(&self) -> &'static str {
        "initials"
    }
    fn model(&self) -> &'static str {
        "initials-1"
    }
    fn dimensions(&self) -> usize {
        4
    }
    fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        let vector = |text: &&str| {
            let mut counts = vec![0.0; 4];
            for word in text.split_whitespace() {
                counts[usize::from(word.as_bytes()[0] % 4)] += 1.0;
            }
            counts.iter().any(|count| *count > 0.0).then_some(counts)
        };
        Ok(texts.iter().map(vector).collect())
    }
}

const STRATEGIES: [ChunkStrategy; 4] =
    [ChunkStrategy::Recursive, ChunkStrategy::Headings, ChunkStrategy::Semantic, ChunkStrategy::Tables];

/// Cuts a document and checks what holds for all: order, ends without white space, sizes, nothing lost.
fn check(strategy: ChunkStrategy, text: &str, parts: &[Part], size: usize, overlap: usize) -> Vec<String> {
    let document = Document { parts: parts.to_vec(), ..Document::new("d").text(text) };
    let cut = Chunking { strategy, size, overlap }.cut(&document, Some(&Initials), &Quiet).unwrap();
    let mut covered = vec![false; cut.text.len()];
    for range in &cut.ranges {
        let chunk = &cut.text[range.clone()];
        assert!(!chunk.is_empty() && chunk.trim() == chunk, "{strategy:?} {chunk:?}");
        let is_table = cut
            .parts
            .iter()
            .any(|part| part.kind == PartKind::Table && part.range.start <= range.start && range.end <= part.range.end);
        let most = if is_table { size.max(1) * 8 } else { size.max(1) };
        assert!(chunk.chars().count() <= most, "{strategy:?} {size} {chunk:?}");
        covered[range.clone()].fill(true);
    }
    for pair in cut.ranges.windows(2) {
        assert!(pair[0].start < pair[1].start && pair[0].end < pair[1].end, "{strategy:?} {pair:?}");
    }
    for (at, letter) in cut.text.char_indices() {
        assert!(covered[at] || letter.is_whitespace(), "{strategy:?}: {letter} at {at} is lost");
    }
    let mut letters = cut.text.split_whitespace().flat_map(str::chars);
    // A header that is repeated comes on top of what the text has.
    assert!(text.split_whitespace().flat_map(str::chars).all(|letter| letters.any(|other| other == letter)));
    cut.ranges.into_iter().map(|range| cut.text[range].to_owned()).collect()
}

/// A text of parts, each with its heading, and those parts.
fn text_of(parts: &[(&str, PartKind, &str)]) -> (String, Vec<Part>) {
    let (mut text, mut found) = (String::new(), Vec::new());
    for (heading, kind, body) in parts {
        let start = text.len();
        text.push_str(body);
        found.push(Part { range: start..text.len(), heading: (*heading).to_owned(), page: None, kind: *kind });
        text.push('\n');
    }
    (text, found)
}

#[test]
fn a_chunk_keeps_to_its_section_and_a_table_is_one_by_itself() {
    let (text, parts) = text_of(&[
        ("A", Text, "One two three four."),
        ("A", Text, "Five six."),
        ("B", Text, "Seven eight nine ten."),
        ("B", Table, "a | b\n1 | 2\n3 | 4\n5 | 6\n7 | 8\n9 | 10"),
        ("B", Text, "Eleven twelve thirteen."),
    ]);
    let sections =
        ["One two three four.\nFive six.", "Seven eight nine ten.", "a | b\n1 | 2\n3 | 4\n5 | 6\n7 | 8\n9 | 10"];
    let expected = [&sections[..], &["Eleven twelve thirteen."]].concat();
    for strategy in [ChunkStrategy::Recursive, ChunkStrategy::Headings] {
        assert_eq!(check(strategy, &text, &parts, 32, 8), expected);
    }
    // A table of more than eight sizes is cut between rows.
    let found = check(ChunkStrategy::Recursive, &text, &parts[3..4], 3, 0);
    assert!(found.contains(&"a | b\n1 | 2\n3 | 4\n5 | 6".to_owned()), "{found:?}");
}

#[test]
fn small_neighbours_under_one_outer_heading_share_a_chunk() {
    let (text, parts) = text_of(&[
        ("T", Text, "Intro."),
        ("T > A", Text, "One."),
        ("T > B", Text, "Two."),
        ("T > B > C", Text, "Three."),
        ("U > D", Text, "Four."),
        ("U > E", Text, "This section is long enough to stand alone."),
        ("U > F", Text, "Five."),
        ("V > G", Text, "Six."),
    ]);
    let alone = "This section is long enough to stand alone.";
    let expected = ["Intro.\nOne.\nTwo.\nThree.\nFour.", alone, "Five.", "Six."];
    assert_eq!(check(ChunkStrategy::Recursive, &text, &parts, 44, 0), expected);
    assert_eq!(check(ChunkStrategy::Headings, &text, &parts, 44, 0).len(), 8);
    let (text, parts) = text_of(&[("T > A", Text, "One."), ("T > B > C", Text, "Two."), ("U", Text, "Three.")]);
    assert_eq!(check(ChunkStrategy::Recursive, &text, &parts, 44, 0), ["One.\nTwo.", "Three."]);
}

#[test]
fn headings_are_found_in_a_text_without_parts() {
    let text = "Preface.\n\n# One\n\n## Two ##\nText of two.\n```\n# no heading\n```\n#hashtag\n\n## Three\nText.\n# Four\nEnd";
    let expected = [
        "Preface.",
        "# One\n\n## Two ##\nText of two.\n```\n# no heading\n```\n#hashtag",
        "## Three\nText.",
        "# Four\nEnd",
    ];
    assert_eq!(check(ChunkStrategy::Headings, text, &[], 1000, 100), expected);
    let document = Document::new("d").text(text);
    let chunking = Chunking { strategy: ChunkStrategy::Headings, ..Chunking::default() };
    let cut = chunking.cut(&document, None, &Quiet).unwrap();
    let headings: Vec<&str> = cut.parts.iter().map(|part| part.heading.as_str()).collect();
    assert_eq!(headings, ["One > Two", "One > Three", "Four"]);
}

#[test]
fn a_text_is_cut_where_its_subject_changes() {
    let expected = ["Aa.".to_owned() + &" Aa.".repeat(7), "Bbbb.".to_owned() + &" Bbbb.".repeat(7)];
    let text = &expected.join(" ");
    let found = check(ChunkStrategy::Semantic, text, &[], 100, 0);
    assert_eq!(found, expected);
    assert_eq!(check(ChunkStrategy::Semantic, "Aa. bb. cc.", &[], 100, 0), ["Aa. bb. cc."]);
    assert!(check(ChunkStrategy::Semantic, text, &[], 12, 0).len() > 6);
    let document = Document::new("d").text(text);
    let chunking = Chunking { strategy: ChunkStrategy::Semantic, ..Chunking::default() };
    let refused = chunking.cut(&document, None, &Quiet).unwrap_err();
    assert!(refused.contains("needs an embedder"), "{refused}");
}

#[test]
fn rows_are_grouped_below_their_header() {
    let text = "Before.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n| 5 | 6 |\n\nAfter.\nx\ty\n1\t2\n3\t4\n";
    let expected = [
        "Before.",
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
        "| a | b |\n|---|---|\n| 5 | 6 |",
        "After.",
        "x\ty\n1\t2\n3\t4",
    ];
    assert_eq!(check(ChunkStrategy::Tables, text, &[], 42, 0), expected);
    let (text, parts) = text_of(&[("A", Text, "One."), ("A > B", Table, "h,i\n1,2\n3,4\n5,6"), ("A", Text, "Two.")]);
    assert_eq!(check(ChunkStrategy::Tables, &text, &parts, 12, 0), ["One.", "h,i\n1,2\n3,4", "h,i\n5,6", "Two."]);
    // Indented code is no table, nor is one line.
    assert_eq!(check(ChunkStrategy::Tables, "\ta\n\tb\n\nc\td\n\n| e |\n", &[], 100, 0).len(), 1);
    let wide = format!("{}\n{}", "h|".repeat(600), "r|\n".repeat(100));
    let (_, mut parts) = text_of(&[("", Table, &wide)]);
    let document = Document { parts: std::mem::take(&mut parts), ..Document::new("d").text(wide.clone()) };
    let chunking = Chunking { strategy: ChunkStrategy::Tables, ..Chunking::default() };
    assert!(chunking.cut(&document, None, &Quiet).unwrap().text.len() < wide.len() + 10);
}

#[test]
fn any_text_with_any_parts_is_covered_by_every_strategy_in_any_size() {
    let pieces = [
        "ab",
        ".",
        " ",
        "\n",
        "\n\n",
        "東京。",
        "\u{301}",
        "ก็ไป",
        "é!",
        "\"",
        "\u{2029}",
        "👍🏽",
        "\r\n",
        "\t",
        "|",
        "|-|",
        "שלום",
        "مرحبا؟ ",
        "한국",
        "# ",
        "```",
        "\u{200f}",
    ];
    let mut seed = 7_u32;
    let mut next = move |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as usize % below
    };
    for round in 0..300 {
        let (mut text, mut parts) = (String::new(), Vec::new());
        for _ in 0..round / 10 {
            let start = text.len();
            (0..next(12)).for_each(|_| text.push_str(pieces[next(pieces.len())]));
            let heading = ["", "A", "A > B", "A > C", "D"][next(5)].to_owned();
            let kind = if next(4) == 0 { Table } else { Text };
            if next(5) > 0 {
                parts.push(Part { range: start..text.len(), heading, page: None, kind });
            }
        }
        for strategy in STRATEGIES {
            let (size, overlap) = (round % 37, round % 11);
            check(strategy, &text, &parts, size, overlap);
            check(strategy, &text, &[], size, overlap);
        }
    }
}

#[test]
fn long_runs_of_anything_take_every_strategy_no_longer_than_text() {
    for run in
        ["\u{301}", " ", "a", "東", "\n", "🇫", "ก\u{e34}", ". ", "| ", "|\n", "a\tb\n", "# a\n", "#\n", "```\n", "x. "]
    {
        let text = format!("x{}y", run.repeat(1 << 15));
        for strategy in STRATEGIES {
            let document = Document::new("d").text(text.as_str());
            for size in [1000, 1 << 30] {
                let cut = Chunking { strategy, size, overlap: 100 }.cut(&document, Some(&Initials), &Quiet).unwrap();
                assert!(!cut.ranges.is_empty() && cut.text.len() < 3 * text.len(), "{strategy:?} {run:?}");
            }
        }
    }
}

#[test]
fn the_identity_names_the_settings() {
    assert_eq!(Chunking::default().id(), "recursive-1000-100");
    assert_eq!(Chunking { strategy: ChunkStrategy::Tables, size: 5, overlap: 1 }.id(), "tables-5-1");
}
