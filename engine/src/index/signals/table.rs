//! The columns of a table, as the text of its chunk tells them: a header, and rows below it.
//!
//! The header says how cells are parted: by `|` where it begins with one or a rule of dashes follows it, as Markdown has it, then
//! by ` | `, then by tabs.

use crate::index::signals::COLUMNS_MAX;

/// What stands between cells where bars have spaces.
const SEPARATOR: &str = " | ";

/// The text of each column: its heading, and its cells below it, one a line. The first line with cells is the header; what stands before it is
/// no part of the table, and cells behind those that the header names don't count. A row may end early. Rules of dashes are
/// no rows. None where no line has cells. At most the first [`COLUMNS_MAX`] columns.
pub fn columns_of(text: &str) -> Vec<String> {
    let mut lines = text.lines().peekable();
    let mut found = None;
    while found.is_none() {
        let Some(line) = lines.next() else { break };
        found = form(line, lines.peek().copied()).map(|form| (line, form));
    }
    let Some((header, form)) = found else { return Vec::new() };
    let mut columns: Vec<String> = form.cells(header).take(COLUMNS_MAX).map(str::to_owned).collect();
    for line in lines.filter(|line| !is_rule(line)) {
        for (column, cell) in columns.iter_mut().zip(form.cells(line)) {
            column.push('\n');
            column.push_str(cell);
        }
    }
    columns
}

/// How the cells of a line are parted.
#[derive(Clone, Copy)]
enum Form {
    /// By bars, with others around them perhaps.
    Bars,
    /// By bars with spaces.
    Spaced,
    Tabs,
}

/// How the cells of a header are parted, if it is one.
fn form(line: &str, next: Option<&str>) -> Option<Form> {
    if line.trim_start().starts_with('|') || (line.contains('|') && next.is_some_and(is_rule)) {
        return Some(Form::Bars);
    }
    let spaced = line.contains(SEPARATOR).then_some(Form::Spaced);
    spaced.or_else(|| line.contains('\t').then_some(Form::Tabs))
}

impl Form {
    fn cells(self, line: &str) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Bars => {
                let line = line.trim();
                let inside = line.strip_prefix('|').unwrap_or(line);
                Box::new(inside.strip_suffix('|').unwrap_or(inside).split('|'))
            }
            Self::Spaced => Box::new(line.split(SEPARATOR)),
            Self::Tabs => Box::new(line.split('\t')),
        }
    }
}

/// Whether a line is the rule below the header of a Markdown table.
fn is_rule(line: &str) -> bool {
    line.contains('|') && line.contains('-') && line.chars().all(|letter| matches!(letter, '|' | '-' | ':' | ' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(text: &str) -> Vec<String> {
        let words = |column: &String| column.split_whitespace().collect::<Vec<_>>().join(" ");
        columns_of(text).iter().map(words).collect()
    }

    #[test]
    fn columns_hold_their_heading_and_cells() {
        let text = "Table with 3 rows. Columns: Film; Year.\n\nFilm | Director | Year\nBlade Runner | Ridley Scott | 1982\n\
                    Gate\n |  | 1979 | spare";
        assert_eq!(joined(text), ["Film Blade Runner Gate", "Director Ridley Scott", "Year 1982 1979"]);
    }

    #[test]
    fn columns_of_markdown_are_columns_too() {
        let text = "Piers\n| Name | Length |\n|:---|---|\n| pier 1 | 7 m |\n|pier 2|\n||9 m|";
        assert_eq!(joined(text), ["Name pier 1 pier 2", "Length 7 m 9 m"]);
        assert_eq!(joined("Name|Length\n---|---\npier 1 | 7 m"), ["Name pier 1", "Length 7 m"]);
        assert_eq!(joined("Piers\nName\tLength\npier | 1\t7 m\n"), ["Name pier | 1", "Length 7 m"]);
    }

    #[test]
    fn a_text_without_separators_has_no_columns() {
        assert!(columns_of("").is_empty());
        assert!(columns_of("One|two\nthree |four").is_empty());
    }
}
