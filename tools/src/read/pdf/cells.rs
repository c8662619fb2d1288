//! Tables among the rows of a page: rows whose words stand below one another in three or more columns.

use std::ops::Range;

use crate::read::pdf::layout::{Run, main, row_text};

/// Columns of a table at least; what has fewer is told from running text too seldom.
const COLUMNS_MIN: usize = 3;

/// Columns of a table at most.
const COLUMNS_MAX: usize = 40;

/// Rows of a table at least, header included.
const ROWS_MIN: usize = 3;

/// Rows that are taken as one table at most; a longer one becomes several.
const ROWS_MAX: usize = 128;

/// The least space between columns, as a share of the size of the letters.
const GUTTER: f64 = 0.5;

/// The most space between rows, from line to line, as a share of the size of the letters.
const PITCH: f64 = 3.0;

/// How far from the same place cells of a column may begin or end, as a share of the size of the letters.
const SLACK: f64 = 0.6;

/// Characters of a cell, on the average of a column; columns of running text have more.
const CELL_CHARACTERS: usize = 26;

/// Lines drawn across a table that tell it from lists side by side.
const RULES_MIN: usize = 3;

/// The share of a table's width that such a line takes at least, in one piece or several.
const RULE_WIDTH: f64 = 0.6;

/// A line that is drawn across the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// How far down it is.
    pub y: f64,
    /// Where it begins.
    pub left: f64,
    /// Where it ends.
    pub right: f64,
}

/// A table.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// The rows of the page that it takes.
    pub rows: Range<usize>,
    /// Its cells, each row as long as the others; lines of one row are put together.
    pub cells: Vec<Vec<String>>,
}

/// A span of rows with the columns that they have in common.
struct Span {
    end: usize,
    columns: Vec<(f64, f64)>,
}

/// The tables of these rows, from the top down.
pub fn tables(rows: &[Vec<Run>], rules: &[Rule]) -> Vec<Found> {
    let mut found = Vec::new();
    let mut first = 0;
    while first < rows.len() {
        let table = span(rows, first).and_then(|span| table(rows, rules, first, &span));
        first = table.as_ref().map_or(first + 1, |table| table.rows.end);
        found.extend(table);
    }
    found
}

/// The longest span from this row on in which no row reaches over the space between two columns.
fn span(rows: &[Vec<Run>], first: usize) -> Option<Span> {
    let row = rows.get(first)?;
    let mut columns = merged(&[], row);
    if !(COLUMNS_MIN..=COLUMNS_MAX).contains(&columns.len()) {
        return None;
    }
    let (mut end, mut before) = (first + 1, main(row)?);
    for row in rows.iter().skip(end).take(ROWS_MAX - 1) {
        let Some(next) = main(row) else { break };
        let wider = merged(&columns, row);
        if next.y - before.y > PITCH * before.size.max(next.size)
            || !(columns.len()..=COLUMNS_MAX).contains(&wider.len())
        {
            break;
        }
        (columns, before, end) = (wider, next, end + 1);
    }
    // What stands alone below a table is the line after it.
    while end > first && rows.get(end - 1).is_some_and(|row| row.len() < 2) {
        end -= 1;
    }
    Some(Span { end, columns })
}

/// Columns and the runs of a row as stretches of the line that do not touch, from left to right.
fn merged(columns: &[(f64, f64)], row: &[Run]) -> Vec<(f64, f64)> {
    let size = row.iter().map(|run| run.size).fold(f64::INFINITY, f64::min);
    let mut all: Vec<(f64, f64)> = columns.iter().copied().chain(row.iter().map(|run| (run.left, run.right))).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut merged: Vec<(f64, f64)> = Vec::with_capacity(all.len());
    for (left, right) in all {
        match merged.last_mut() {
            Some(last) if left < last.1 + GUTTER * size => last.1 = last.1.max(right),
            _ => merged.push((left, right)),
        }
    }
    merged
}

/// The table of a span, if it is one for certain.
fn table(rows: &[Vec<Run>], rules: &[Rule], first: usize, span: &Span) -> Option<Found> {
    let rows_of = rows.get(first..span.end)?;
    let width = span.columns.len();
    if rows_of.len() < ROWS_MIN {
        return None;
    }
    let mut placed: Vec<Vec<Vec<Run>>> = Vec::with_capacity(rows_of.len());
    for row in rows_of {
        let mut cells: Vec<Vec<Run>> = vec![Vec::new(); width];
        for run in row {
            let column = span.columns.partition_point(|column| column.0 <= run.left).checked_sub(1)?;
            cells.get_mut(column)?.push(run.clone());
        }
        placed.push(cells);
    }
    let is_sound = is_filled(&placed) && (0..width).all(|column| is_column(&placed, column));
    let cells: Vec<Vec<String>> = placed.iter().map(|row| row.iter().map(|cell| row_text(cell)).collect()).collect();
    let cells = joined(cells);
    let is_table = is_sound && cells.len() >= ROWS_MIN && is_told(&cells);
    (is_table && (has_numbers(&cells) || is_ruled(rows_of, rules, span)))
        .then_some(Found { rows: first..span.end, cells })
}

/// Whether enough of the cells hold something.
fn is_filled(rows: &[Vec<Vec<Run>>]) -> bool {
    let filled = |row: &Vec<Vec<Run>>| row.iter().filter(|cell| !cell.is_empty()).count();
    let whole = rows.iter().filter(|row| filled(row) >= COLUMNS_MIN).count();
    let all: usize = rows.iter().map(filled).sum();
    let width = rows.first().map_or(0, Vec::len);
    whole >= ROWS_MIN && 2 * whole >= rows.len() && 2 * all >= rows.len() * width
}

/// Whether the cells of a column are short, and most of them begin, end or have their middle at one place.
fn is_column(rows: &[Vec<Vec<Run>>], column: usize) -> bool {
    let cells: Vec<&[Run]> =
        rows.iter().filter_map(|row| row.get(column)).map(Vec::as_slice).filter(|cell| !cell.is_empty()).collect();
    let characters: usize = cells.iter().copied().flatten().map(|run| run.text.chars().count()).sum();
    if cells.len() < 2 || characters > CELL_CHARACTERS * cells.len() {
        return false;
    }
    let size = cells.iter().filter_map(|cell| Some(cell.first()?.size)).fold(f64::INFINITY, f64::min);
    let left = |cell: &[Run]| cell.first().map_or(0.0, |run| run.left);
    let right = |cell: &[Run]| cell.last().map_or(0.0, |run| run.right);
    let places: [Vec<f64>; 3] = [
        cells.iter().map(|cell| left(cell)).collect(),
        cells.iter().map(|cell| right(cell)).collect(),
        cells.iter().map(|cell| f64::midpoint(left(cell), right(cell))).collect(),
    ];
    places.into_iter().any(|mut places| {
        places.sort_by(f64::total_cmp);
        let middle = places.get(places.len() / 2).copied().unwrap_or(0.0);
        let near = places.iter().filter(|place| (*place - middle).abs() <= SLACK * size).count();
        5 * near >= 3 * places.len()
    })
}

/// Lines of a row put together: below a cell that is wrapped, the first column and most others are empty.
fn joined(cells: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::with_capacity(cells.len());
    for row in cells {
        let filled = row.iter().filter(|cell| !cell.is_empty()).count();
        let is_more = row.first().is_some_and(String::is_empty) && 2 * filled <= row.len();
        match rows.last_mut().filter(|_| is_more) {
            Some(last) => {
                for (cell, more) in last.iter_mut().zip(row).filter(|(_, more)| !more.is_empty()) {
                    if !cell.is_empty() {
                        cell.push(' ');
                    }
                    cell.push_str(&more);
                }
            }
            None => rows.push(row),
        }
    }
    rows
}

/// Whether the cells say something: tables of contents have rows of dots, and formulas have signs.
fn is_told(cells: &[Vec<String>]) -> bool {
    let filled = || cells.iter().flatten().filter(|cell| !cell.is_empty());
    let is_word = |cell: &&String| cell.chars().any(char::is_alphanumeric);
    let is_led = filled().any(|cell| cell.contains("....") || cell.contains(". . ."));
    let words = filled().filter(is_word).count();
    !is_led && 5 * words >= 4 * filled().count()
}

/// Whether a fifth of the cells has a number: words alone may be lists side by side.
fn has_numbers(cells: &[Vec<String>]) -> bool {
    let filled = || cells.iter().flatten().filter(|cell| !cell.is_empty());
    let numbers = filled().filter(|cell| cell.chars().any(char::is_numeric)).count();
    5 * numbers >= filled().count()
}

/// Whether lines are drawn across it, above, between or below its rows.
fn is_ruled(rows: &[Vec<Run>], rules: &[Rule], span: &Span) -> bool {
    let (Some(first), Some(last)) = (rows.first().and_then(|row| main(row)), rows.last().and_then(|row| main(row)))
    else {
        return false;
    };
    let (Some((left, _)), Some((_, right))) = (span.columns.first(), span.columns.last()) else { return false };
    let (top, bottom) = (first.y - PITCH * first.size, last.y + PITCH * last.size);
    let mut within: Vec<&Rule> = rules.iter().filter(|rule| rule.y >= top && rule.y <= bottom).collect();
    within.sort_by(|a, b| a.y.total_cmp(&b.y));
    // Both edges of a thin bar are one line.
    let lines = within.chunk_by(|a, b| b.y - a.y <= 2.0);
    let covered = |rule: &&Rule| (rule.right.min(*right) - rule.left.max(*left)).max(0.0);
    let is_across = |line: &&[&Rule]| line.iter().map(covered).sum::<f64>() >= RULE_WIDTH * (right - left);
    lines.filter(is_across).count() >= RULES_MIN
}
