//! Tables cut into groups of rows that fit into a chunk, each with the table's header above it.

use std::ops::Range;

use crate::ingest::chunking::sections::{self, Section};
use crate::ingest::{Part, PartKind};

/// The text with the header repeated above every group of rows, and the parts of it; none where it has no tables.
///
/// A header longer than half a chunk is not repeated, so that the text grows at most threefold.
pub fn with_headers(text: &str, parts: &[Part], size: usize) -> Option<(String, Vec<Part>)> {
    let is_table = |section: &Section<'_>| section.kind == PartKind::Table;
    let mut pieces = sections::pieces(text, parts);
    if !pieces.iter().any(is_table) {
        pieces = pieces.into_iter().flat_map(|piece| found(text, &piece)).collect();
    }
    if !pieces.iter().any(is_table) {
        return None;
    }
    let mut made = Made { text: String::with_capacity(text.len()), parts: Vec::with_capacity(pieces.len()) };
    let mut done = 0;
    for piece in pieces {
        let body = text[piece.range.clone()].trim_end();
        made.text.push_str(&text[done..piece.range.start]);
        done = piece.range.start + body.len();
        match piece.kind {
            PartKind::Text => made.push(&piece, &[body]),
            PartKind::Table => made.push_table(&piece, body, size),
        }
    }
    Some((made.text, made.parts))
}

/// A text in the making.
struct Made {
    text: String,
    parts: Vec<Part>,
}

impl Made {
    /// Adds lines as a part.
    fn push(&mut self, piece: &Section<'_>, lines: &[&str]) {
        let start = self.text.len();
        self.text.push_str(&lines.join("\n"));
        let Section { heading, page, kind, .. } = *piece;
        self.parts.push(Part { range: start..self.text.len(), heading: heading.to_owned(), page, kind });
    }

    fn push_table(&mut self, piece: &Section<'_>, table: &str, size: usize) {
        let lines: Vec<&str> = table.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let header_lines = 1 + usize::from(lines.get(1).is_some_and(|line| is_rule(line)));
        let (header, rows) = lines.split_at(header_lines.min(lines.len()));
        let length = |lines: &[&str]| lines.iter().map(|line| line.chars().count() + 1).sum::<usize>();
        let header_length = length(header);
        let repeated = if header_length <= size / 2 { header } else { &[] };
        let (mut group, mut sum, mut has_rows) = (header.to_vec(), header_length, false);
        for row in rows {
            let own = length(&[row]);
            if has_rows && sum + own > size {
                self.push(piece, &group);
                self.text.push_str("\n\n");
                group = repeated.to_vec();
                sum = length(repeated);
            }
            group.push(row);
            sum += own;
            has_rows = true;
        }
        self.push(piece, &group);
    }
}

/// The tables in a section of running text, and what stands between them.
fn found<'p>(text: &str, section: &Section<'p>) -> Vec<Section<'p>> {
    let mut sections: Vec<Section<'p>> = Vec::new();
    let mut push = |range: Range<usize>, kind| {
        let is_same = |last: &Section<'_>| kind == PartKind::Text && last.kind == kind;
        match sections.last_mut() {
            _ if text[range.clone()].trim().is_empty() => {}
            Some(last) if is_same(last) => last.range.end = range.end,
            _ => sections.push(Section { range, kind, ..*section }),
        }
    };
    let (mut at, end) = (section.range.start, section.range.end);
    while at < end {
        let table = table_end(text, at, end);
        let next = table.unwrap_or_else(|| line_end(text, at, end));
        push(at..next, if table.is_some() { PartKind::Table } else { PartKind::Text });
        at = next;
    }
    sections
}

/// Where the table ends that begins with the line at `at`; none where none does.
///
/// It is lines that begin with `|`, or a line with `|` above a rule and the lines with `|` below, or lines with the same
/// number of tabs; at least two.
fn table_end(text: &str, at: usize, end: usize) -> Option<usize> {
    let line = |from: usize| &text[from..line_end(text, from, end)];
    let (first, second) = (line(at), line_end(text, at, end));
    // A line that begins with a tab is indented.
    let tabs = |line: &str| if line.starts_with('\t') { 0 } else { line.matches('\t').count() };
    let first_tabs = tabs(first);
    let is_row: &dyn Fn(&str) -> bool = if first.trim_start().starts_with('|') {
        &|line| line.trim_start().starts_with('|')
    } else if first.contains('|') && is_rule(line(second)) {
        &|line| line.contains('|')
    } else if first_tabs > 0 {
        &|line| tabs(line) == first_tabs
    } else {
        return None;
    };
    let mut next = second;
    while next < end && is_row(line(next)) {
        next = line_end(text, next, end);
    }
    (next > second).then_some(next)
}

/// The byte after the line that begins at `at`.
fn line_end(text: &str, at: usize, end: usize) -> usize {
    text[at..end].find('\n').map_or(end, |line| at + line + 1)
}

/// Whether a line is the rule below the header of a Markdown table.
fn is_rule(line: &str) -> bool {
    line.contains('|')
        && line.contains('-')
        && line.chars().all(|letter| matches!(letter, '|' | '-' | ':' | ' ' | '\r' | '\n'))
}
