//! From letters and their places to lines in reading order: columns are told from tables and read one after the other.

use std::cmp::Ordering;

use crate::read::pdf::cells::{self, Rule};

/// A letter, or some that are drawn as one, on a page whose origin is its upper left corner.
#[derive(Clone, Debug)]
pub struct Glyph {
    text: String,
    /// Which way up it stands: 0 for upright, then quarters of a turn.
    turn: u8,
    x: f64,
    y: f64,
    width: f64,
    size: f64,
    /// Whether it is bold, where its font tells.
    pub is_bold: bool,
}

/// A page as it is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Its height, in the unit of its letters.
    pub height: f64,
    /// Its lines in reading order.
    pub lines: Vec<Line>,
}

/// A line of text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Its words.
    pub text: String,
    /// The cells of a row of a table; none in running text.
    pub cells: Vec<String>,
    /// How far down the page it stands.
    pub y: f64,
    /// The size of its letters.
    pub size: f64,
    /// Whether a paragraph, or a table, begins with it.
    pub is_paragraph: bool,
    /// Whether all of it is bold.
    pub is_bold: bool,
    /// Whether it stands on its side or its head, as stamps in the margin do.
    pub is_turned: bool,
}

/// Letters that follow one another on a line without a wide gap.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its words.
    pub text: String,
    /// Where it begins.
    pub left: f64,
    /// Where it ends.
    pub right: f64,
    /// How far down it stands.
    pub y: f64,
    /// The size of its letters.
    pub size: f64,
    is_bold: bool,
}

/// A gap that is a space, as a share of the size of the letters.
const SPACE: f64 = 0.17;

/// A gap that parts runs: between columns, between the cells of a table.
const GAP: f64 = 1.1;

/// The least width of the space between columns, as a share of the size of the letters.
const GUTTER: f64 = 0.8;

/// Rows with text on both sides that make columns.
const COLUMN_ROWS: usize = 4;

/// Characters of a row on each side, on the average, that make columns; the cells of a table have fewer.
const COLUMN_CHARACTERS: usize = 16;

/// From line to line of a paragraph at most, as a share of the size of the letters.
const PITCH_MAX: f64 = 3.0;

/// Columns in columns: a page has few, and each level looks at all of its rows.
const DEPTH_MAX: usize = 8;

impl Glyph {
    /// A letter at `at`, whose line runs `along`; `advance` is its width in thousandths of its size.
    #[must_use]
    pub fn new(text: String, at: (f64, f64), along: (f64, f64), size: f64, advance: f64) -> Glyph {
        let width = advance * along.0.hypot(along.1);
        // Turned so that all lines run to the right.
        let (turn, x, y) = if along.0.abs() >= along.1.abs() {
            if along.0 >= 0.0 { (0, at.0, at.1) } else { (2, -at.0, -at.1) }
        } else if along.1 < 0.0 {
            (1, -at.1, at.0)
        } else {
            (3, at.1, -at.0)
        };
        Glyph { text, turn, x, y, width, size, is_bold: false }
    }
}

/// The lines of a page: upright text first, then what is turned. `rules` are drawn between rows.
#[must_use]
pub fn lines(glyphs: Vec<Glyph>, rules: &[Rule]) -> Vec<Line> {
    let mut by_turn: [Vec<Glyph>; 4] = Default::default();
    for glyph in glyphs {
        if let Some(turned) = by_turn.get_mut(usize::from(glyph.turn)) {
            turned.push(glyph);
        }
    }
    by_turn.sort_by_key(|glyphs| std::cmp::Reverse(glyphs.len()));
    let mut lines = Vec::new();
    for glyphs in by_turn {
        let is_turned = glyphs.first().is_some_and(|glyph| glyph.turn != 0);
        let first = lines.len();
        let rules = if is_turned { &[] } else { rules };
        order(rows(runs(glyphs)), rules, 0, &mut lines);
        lines.iter_mut().skip(first).for_each(|line| line.is_turned = is_turned);
    }
    lines
}

/// Joins letters that were written one after the other.
fn runs(glyphs: Vec<Glyph>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut is_spaced = false;
    for glyph in glyphs {
        let is_blank = glyph.text.trim().is_empty();
        if let Some(run) = runs.last_mut() {
            let (gap, size) = (glyph.x - run.right, run.size.max(glyph.size));
            let is_same_size = (run.size - glyph.size).abs() <= 0.6 * size;
            let is_near = (glyph.y - run.y).abs() <= 0.35 * size && gap > -0.4 * size && gap < GAP * size;
            if is_near && is_same_size {
                if is_blank {
                    is_spaced = true;
                    continue;
                }
                if is_spaced || gap > SPACE * size {
                    run.text.push(' ');
                }
                is_spaced = false;
                run.text.push_str(&glyph.text);
                run.right = run.right.max(glyph.x + glyph.width);
                run.is_bold &= glyph.is_bold;
                continue;
            }
        }
        is_spaced = false;
        if !is_blank {
            let Glyph { text, x, y, width, size, is_bold, .. } = glyph;
            runs.push(Run { text, left: x, right: x + width, y, size, is_bold });
        }
    }
    runs
}

/// Runs on the same height, from the top down, each row from left to right.
fn rows(mut runs: Vec<Run>) -> Vec<Vec<Run>> {
    runs.sort_by(|a, b| a.y.total_cmp(&b.y).then(a.left.total_cmp(&b.left)));
    let mut rows: Vec<Vec<Run>> = Vec::new();
    for run in runs {
        let is_same = rows.last().and_then(|row| main(row)).is_some_and(|main| is_beside(main, &run));
        match rows.last_mut().filter(|_| is_same) {
            Some(row) => row.push(run),
            None => rows.push(vec![run]),
        }
    }
    for row in &mut rows {
        row.sort_by(|a, b| a.left.total_cmp(&b.left));
    }
    rows
}

/// The run that gives a row its height: indices, exponents and marks of notes belong to the line that they stand at.
pub fn main(row: &[Run]) -> Option<&Run> {
    row.iter().max_by(|a, b| a.size.total_cmp(&b.size).then(a.text.len().cmp(&b.text.len())))
}

/// Whether most of the lower of two letters is at the height of the other.
fn is_beside(a: &Run, b: &Run) -> bool {
    let top = |run: &Run| run.y - 0.75 * run.size;
    let shared = a.y.min(b.y) - top(a).max(top(b));
    shared > 0.5 * 0.75 * a.size.min(b.size)
}

/// A span of rows that have the same free space from top to bottom.
#[derive(Clone, Copy, Debug)]
struct Band {
    first: usize,
    end: usize,
    x: f64,
    both: usize,
}

/// Writes rows in reading order: tables, and what stands between them.
fn order(rows: Vec<Vec<Run>>, rules: &[Rule], depth: usize, lines: &mut Vec<Line>) {
    let found = if depth < DEPTH_MAX { cells::tables(&rows, rules) } else { Vec::new() };
    let mut rows = rows.into_iter();
    let mut end = 0;
    for table in found {
        flow(rows.by_ref().take(table.rows.start - end).collect(), rules, depth, lines);
        end = table.rows.end;
        let of_table: Vec<Vec<Run>> = rows.by_ref().take(table.rows.len()).collect();
        let (y, size) = of_table.first().and_then(|row| main(row)).map_or((0.0, 0.0), |main| (main.y, main.size));
        let mut is_paragraph = true;
        for cells in table.cells {
            lines.push(Line { text: cells.join(" "), cells, y, size, is_paragraph, ..Line::default() });
            is_paragraph = false;
        }
    }
    flow(rows.collect(), rules, depth, lines);
}

/// Writes rows without tables: what stands above columns, the columns one by one, what stands below.
fn flow(rows: Vec<Vec<Run>>, rules: &[Rule], depth: usize, lines: &mut Vec<Line>) {
    let band = if depth < DEPTH_MAX { band(&rows) } else { None };
    let Some(Band { first, end, x, .. }) = band else {
        return write(&rows, lines);
    };
    let mut rows = rows.into_iter();
    let above: Vec<Vec<Run>> = rows.by_ref().take(first).collect();
    let beside: Vec<Vec<Run>> = rows.by_ref().take(end - first).collect();
    order(above, rules, depth + 1, lines);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for row in beside {
        let (before, after): (Vec<Run>, Vec<Run>) = row.into_iter().partition(|run| run.right <= x);
        left.extend(Some(before).filter(|row| !row.is_empty()));
        right.extend(Some(after).filter(|row| !row.is_empty()));
    }
    order(left, rules, depth + 1, lines);
    order(right, rules, depth + 1, lines);
    order(rows.collect(), rules, depth + 1, lines);
}

/// The band with the most rows that have text on both sides.
fn band(rows: &[Vec<Run>]) -> Option<Band> {
    let mut candidates: Vec<(f64, f64)> = Vec::new();
    for row in rows {
        for pair in row.windows(2) {
            let [before, after] = pair else { continue };
            let gap = (before.right, after.left);
            let is_known = |known: &(f64, f64)| (known.0 - gap.0).abs() < 2.0 && (known.1 - gap.1).abs() < 2.0;
            if gap.1 - gap.0 >= GUTTER * before.size.min(after.size) && !candidates.iter().any(is_known) {
                candidates.push(gap);
            }
        }
        if candidates.len() > CANDIDATES_MAX {
            break;
        }
    }
    let bands = candidates.into_iter().filter_map(|gap| grown(rows, gap));
    bands.max_by(|a, b| a.both.cmp(&b.both).then_with(|| b.x.partial_cmp(&a.x).unwrap_or(Ordering::Equal)))
}

/// Gaps that are tried on a page.
const CANDIDATES_MAX: usize = 400;

/// The longest span of rows in which the middle of this gap is free, if it parts columns.
fn grown(rows: &[Vec<Run>], gap: (f64, f64)) -> Option<Band> {
    let middle = f64::midpoint(gap.0, gap.1);
    let mut best: Option<Band> = None;
    let mut first = 0;
    while first < rows.len() {
        let is_free = |row: &Vec<Run>| {
            let size = row.first().map_or(0.0, |run| run.size);
            row.iter().all(|run| run.right <= middle - 0.2 * size || run.left >= middle + 0.2 * size)
        };
        let length = rows.iter().skip(first).take_while(|row| is_free(row)).count();
        if let Some(band) = columns(rows, first, first + length, middle)
            && best.is_none_or(|best| band.both > best.both)
        {
            best = Some(band);
        }
        first += length + 1;
    }
    best
}

/// Whether rows are columns left and right of `x`: enough of them have text on both sides, and enough of it.
fn columns(rows: &[Vec<Run>], first: usize, end: usize, x: f64) -> Option<Band> {
    let side = |row: &[Run], is_left: bool| -> usize {
        row.iter().filter(|run| (run.right <= x) == is_left).map(|run| run.text.chars().count()).sum()
    };
    let sides: Vec<(usize, usize)> =
        rows.get(first..end)?.iter().map(|row| (side(row, true), side(row, false))).collect();
    let both = sides.iter().filter(|(left, right)| *left > 0 && *right > 0).count();
    let average = |letters: usize, rows: usize| letters.checked_div(rows).unwrap_or(0);
    let left = average(sides.iter().map(|side| side.0).sum(), sides.iter().filter(|side| side.0 > 0).count());
    let right = average(sides.iter().map(|side| side.1).sum(), sides.iter().filter(|side| side.1 > 0).count());
    if both < COLUMN_ROWS || left.min(right) < COLUMN_CHARACTERS {
        return None;
    }
    // What stands above or below the columns on one side only is a title or a foot of the page.
    let size = |row: &[Run]| row.first().map_or(0.0, |run| run.size);
    let middle = size(rows.get(first + (end - first) / 2)?);
    let is_other = |row: &Vec<Run>| (size(row) - middle).abs() > 0.1 * middle;
    let is_one_sided = |index: usize| sides.get(index - first).is_some_and(|(left, right)| *left == 0 || *right == 0);
    let (mut top, mut bottom) = (first, end);
    while top < bottom && is_one_sided(top) && is_other(rows.get(top)?) {
        top += 1;
    }
    while bottom > top && is_one_sided(bottom - 1) && is_other(rows.get(bottom - 1)?) {
        bottom -= 1;
    }
    Some(Band { first: top, end: bottom, x, both })
}

/// Writes the rows of one column as lines.
fn write(rows: &[Vec<Run>], lines: &mut Vec<Line>) {
    let left = rows.iter().flatten().map(|run| run.left).fold(f64::INFINITY, f64::min);
    let right = rows.iter().flatten().map(|run| run.right).fold(f64::NEG_INFINITY, f64::max);
    let heights: Vec<f64> = rows.iter().filter_map(|row| Some(main(row)?.y)).collect();
    let mut pitches: Vec<f64> = heights.windows(2).filter_map(|pair| Some(pair.get(1)? - pair.first()?)).collect();
    pitches.sort_by(f64::total_cmp);
    let pitch = pitches.get(pitches.len().saturating_sub(1) / 2).copied().unwrap_or(0.0);
    let mut before: Option<Row> = None;
    for row in rows {
        let (Some(main), Some(first), Some(last)) = (main(row), row.first(), row.last()) else { continue };
        let (y, size) = (main.y, main.size);
        let mut next = Row { y, size, left: first.left, right: last.right, is_paragraph: true };
        next.is_paragraph = before.is_none_or(|before| {
            let is_apart = y - before.y > 1.35 * pitch.min(PITCH_MAX * size).max(size);
            let is_other = (size - before.size).abs() > 0.08 * size;
            let is_short = right - before.right > 0.25 * (right - left);
            // The line after the first may stand further in, or further out, than that one.
            let is_shifted = (next.left - before.left).abs() > 0.9 * size && !before.is_paragraph;
            is_apart || is_other || is_short || is_shifted
        });
        before = Some(next);
        let is_bold = row.iter().all(|run| run.is_bold);
        lines.push(Line { text: row_text(row), y, size, is_paragraph: next.is_paragraph, is_bold, ..Line::default() });
    }
}

/// Where a row of a column stands.
#[derive(Clone, Copy)]
struct Row {
    y: f64,
    size: f64,
    left: f64,
    right: f64,
    is_paragraph: bool,
}

/// The words of a row. Scripts that run to the left are drawn in the order in which they are seen, and turned around.
pub fn row_text(row: &[Run]) -> String {
    let mut text = String::new();
    let mut end = f64::INFINITY;
    for run in row {
        if run.left - end > SPACE * run.size {
            text.push(' ');
        }
        text.push_str(&run.text);
        end = run.right;
    }
    let leftward =
        text.chars().filter(|letter| matches!(letter, '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FEFC}')).count();
    if 2 * leftward > text.chars().filter(|letter| letter.is_alphabetic()).count() {
        return text.chars().rev().collect();
    }
    text
}

/// Appends a line to a paragraph.
pub fn join(block: &mut String, line: &str) {
    let gap = seam(block, line);
    block.push_str(gap);
    block.push_str(line);
}

/// What stands between a paragraph and the line that continues it: a word that a hyphen cuts is put together, and scripts
/// without spaces get none.
pub fn seam(block: &mut String, line: &str) -> &'static str {
    let mut ends = block.chars().rev();
    let hyphen = ends.next().filter(|letter| matches!(letter, '-' | '\u{AD}' | '\u{2010}'));
    let is_cut = hyphen.is_some() && ends.next().is_some_and(char::is_alphabetic);
    let next = line.chars().next();
    if is_cut && next.is_some_and(char::is_lowercase) {
        block.pop();
        return "";
    }
    let is_spaceless = block.chars().next_back().is_some_and(is_spaceless) && next.is_some_and(is_spaceless);
    if is_cut || is_spaceless { "" } else { " " }
}

/// Chinese and Japanese, which are written without spaces.
fn is_spaceless(letter: char) -> bool {
    matches!(letter, '\u{3000}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{FF00}'..='\u{FFEF}')
}
