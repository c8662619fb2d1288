//! What stands together in a text: parts under one heading, tables, and small neighbours under the same outer heading.

use std::ops::Range;

use hedgerow_format::limits;

use crate::ingest::chunking::recursive;
use crate::ingest::{Part, PartKind};

/// A longer table, in sizes of a chunk, is cut between its rows.
const TABLE_SIZES: usize = 8;
/// A section of at most this share of the size is small.
const SMALL: usize = 4;
/// Bytes of one heading that are kept where headings are found in the text.
const HEADING_BYTES: usize = 120;
/// What joins a heading to the one that it stands under.
const UNDER: &str = " > ";

/// A stretch of text that no chunk leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'p> {
    /// Its bytes.
    pub range: Range<usize>,
    /// Its heading, under those that it stands under.
    pub heading: &'p str,
    /// The page that it begins on.
    pub page: Option<u32>,
    /// What it is.
    pub kind: PartKind,
}

impl Section<'_> {
    /// Its chunks.
    pub fn split(&self, text: &str, size: usize, overlap: usize) -> Vec<Range<usize>> {
        match self.kind {
            PartKind::Text => recursive::split(text, self.range.clone(), size, overlap),
            PartKind::Table => split_rows(text, self.range.clone(), size.saturating_mul(TABLE_SIZES)),
        }
    }
}

/// The parts of a text, which are ascending and in the text, and what stands outside of them, which goes with the part
/// before it. What is only white space is left out.
pub fn pieces<'p>(text: &str, parts: &'p [Part]) -> Vec<Section<'p>> {
    let mut pieces = Vec::with_capacity(parts.len() + 1);
    let mut push = |piece: Section<'p>| {
        if !text[piece.range.clone()].trim().is_empty() {
            pieces.push(piece);
        }
    };
    let mut outside = Section { range: 0..0, heading: "", page: None, kind: PartKind::Text };
    for Part { range, heading, page, kind } in parts {
        push(Section { range: outside.range.end..range.start, ..outside });
        push(Section { range: range.clone(), heading, page: *page, kind: *kind });
        outside = Section { range: range.clone(), heading, page: *page, ..outside };
    }
    push(Section { range: outside.range.end..text.len(), ..outside });
    pieces
}

/// The sections that a text's parts make up: neighbouring pieces of running text under one heading are one.
pub fn of_parts<'p>(text: &str, parts: &'p [Part]) -> Vec<Section<'p>> {
    let mut sections: Vec<Section<'p>> = Vec::new();
    for piece in pieces(text, parts) {
        match sections.last_mut() {
            Some(last) if piece.kind == PartKind::Text && (last.kind, last.heading) == (piece.kind, piece.heading) => {
                last.range.end = piece.range.end;
            }
            _ => sections.push(piece),
        }
    }
    sections
}

/// The sections with small neighbours made one, up to the size, as long as they stand under the heading that the first
/// of them stands under.
pub fn joined<'p>(text: &str, sections: Vec<Section<'p>>, size: usize) -> Vec<Section<'p>> {
    let mut found: Vec<Section<'p>> = Vec::with_capacity(sections.len());
    // Characters of the last one, with all that joined it; none where it is not made of small ones.
    let mut length = None;
    for section in sections {
        let own = text[section.range.clone()].chars().count();
        let is_small = section.kind == PartKind::Text && own <= size / SMALL;
        match (found.last_mut(), length) {
            (Some(last), Some(sum)) if is_small && sum + own <= size && is_under(section.heading, last.heading) => {
                last.range.end = section.range.end;
                length = Some(sum + own);
            }
            _ => {
                found.push(section);
                length = is_small.then_some(own);
            }
        }
    }
    found
}

/// Whether a heading stands under the outer heading of another; all stand under the document.
fn is_under(heading: &str, other: &str) -> bool {
    let Some((outer, _)) = other.rsplit_once(UNDER) else { return true };
    heading.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(UNDER))
}

/// The rows of a table, in as few chunks as hold at most `size` characters each; a longer row is cut within.
fn split_rows(text: &str, within: Range<usize>, size: usize) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let (mut at, mut length) = (within.start, 0);
    for line in text[within].split_inclusive('\n') {
        let own = line.chars().count();
        match groups.last_mut() {
            Some(group) if length + own <= size => {
                group.end += line.len();
                length += own;
            }
            _ => {
                groups.push(at..at + line.len());
                length = own;
            }
        }
        at += line.len();
    }
    groups.into_iter().flat_map(|group| recursive::split(text, group, size, 0)).collect()
}

/// The parts that a text's headings make: lines that begin with one to six `#` and a space, outside of code between
/// fences. A heading that nothing but another heading follows is part of what that one begins.
pub fn of_headings(text: &str) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut open: Vec<(usize, &str)> = Vec::new();
    let (mut fence, mut at, mut is_bare) = (None, 0, false);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let mark = fence_of(line);
        if mark.is_some() && (fence.is_none() || fence == mark) {
            fence = if fence.is_some() { None } else { mark };
        }
        let heading = if fence.is_some() { None } else { heading_of(line) };
        if let Some((level, title)) = heading {
            open.retain(|(above, _)| *above < level);
            open.push((level, title));
            if is_bare && let Some(part) = parts.last_mut() {
                part.heading = path(&open);
            } else if parts.len() < limits::DOCUMENT_CHUNKS {
                parts.push(Part { range: start..at, heading: path(&open), ..Part::default() });
            }
            is_bare = true;
        } else {
            is_bare &= line.trim().is_empty();
        }
        if let Some(part) = parts.last_mut() {
            part.range.end = at;
        }
    }
    parts
}

fn path(open: &[(usize, &str)]) -> String {
    open.iter().map(|(_, title)| *title).filter(|title| !title.is_empty()).collect::<Vec<_>>().join(UNDER)
}

fn fence_of(line: &str) -> Option<&'static str> {
    ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark))
}

fn heading_of(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    if !(1..=6).contains(&level) || !title.starts_with([' ', '\t', '\n', '\r']) {
        return None;
    }
    let title = title.trim().trim_end_matches('#').trim_end();
    Some((level, &title[..title.floor_char_boundary(HEADING_BYTES)]))
}
