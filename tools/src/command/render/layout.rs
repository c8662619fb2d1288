//! Words and numbers in columns: wrapped text, short decimals, aligned rows; what a store holds cannot steer the terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use terminal_size::{Width, terminal_size};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Columns of everything that is printed for people: those of the terminal within bounds in which lines read well, 92 where
/// there is none.
#[must_use]
pub fn width() -> usize {
    static WIDTH: OnceLock<usize> = OnceLock::new();
    *WIDTH.get_or_init(|| {
        let size = if io::stdout().is_terminal() { terminal_size() } else { None };
        size.map_or(92, |(Width(columns), _)| usize::from(columns).clamp(60, 100))
    })
}

/// Text on one line, as a terminal may show it: control characters and changes of direction become spaces.
#[must_use]
pub fn plain(text: &str) -> String {
    let steers = |c: char| c.is_control() || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if steers(c) { ' ' } else { c }).collect()
}

/// Text in lines of at most `width` columns; line ends and single blank lines between paragraphs stay.
#[must_use]
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        if !line.trim().is_empty() {
            wrap_line(&plain(line), width, &mut lines);
        } else if lines.last().is_some_and(|last| !last.is_empty()) {
            lines.push(String::new());
        }
    }
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Text on one line of at most `width` columns, with an ellipsis where it was cut.
#[must_use]
pub fn cut(text: &str, width: usize) -> String {
    let text = plain(text);
    if columns(&text) <= width {
        return text;
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += columns_of(*c);
        used < width
    };
    let kept: String = text.chars().take_while(fits).collect();
    format!("{}…", kept.trim_end())
}

/// Text with spaces behind it up to `width` columns.
#[must_use]
pub fn padded(text: &str, width: usize) -> String {
    let mut text = text.to_owned();
    let missing = width.saturating_sub(columns(&text));
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// Columns that a terminal needs for text on one line.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// A number with so many digits behind the point, and no zero before it.
#[must_use]
pub fn decimal(value: impl Into<f64>, digits: usize) -> String {
    let text = format!("{:.digits$}", value.into());
    match (text.strip_prefix("0."), text.strip_prefix("-0.")) {
        (Some(rest), _) => format!(".{rest}"),
        (None, Some(rest)) if rest.bytes().all(|digit| digit == b'0') => format!(".{rest}"),
        (None, Some(rest)) => format!("-.{rest}"),
        (None, None) => text,
    }
}

/// A count with commas between thousands.
#[must_use]
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with the word for what is counted.
#[must_use]
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// Bytes in the largest unit that leaves a number above one.
#[must_use]
pub fn byte_size(bytes: u64) -> String {
    let (mut whole, mut tenths, mut unit) = (bytes, 0, "bytes");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if whole < 1024 {
            break;
        }
        (tenths, whole, unit) = (whole % 1024 * 10 / 1024, whole / 1024, larger);
    }
    if unit == "bytes" {
        return counted(whole, "byte", "bytes");
    }
    format!("{}.{tenths} {unit}", grouped(whole))
}

/// Which side of its column a cell keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows under a heading; columns are as wide as their widest cell, and the widest give way where the line is full.
#[derive(Debug)]
pub struct Table {
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with its heading.
    #[must_use]
    pub fn new(heading: &[(&str, Side)]) -> Self {
        let sides = heading.iter().map(|(_, side)| *side).collect();
        let names = heading.iter().map(|(name, _)| (*name).to_owned()).collect();
        Table { sides, rows: vec![names] }
    }

    /// Adds a row with a cell a column.
    pub fn add(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().map(|cell| plain(&cell)).collect());
    }

    /// Number of rows below the heading.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len() - 1
    }

    /// Prints the rows, `indent` columns from the left.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn print(&self, out: &mut dyn Write, indent: usize) -> io::Result<()> {
        let widths = self.widths(width().saturating_sub(indent));
        for row in &self.rows {
            let mut line = " ".repeat(indent);
            for ((cell, width), side) in row.iter().zip(&widths).zip(&self.sides) {
                let cell = cut(cell, *width);
                if *side == Side::Right {
                    line.extend(std::iter::repeat_n(' ', width - columns(&cell)));
                    line.push_str(&cell);
                } else {
                    line.push_str(&padded(&cell, *width));
                }
                line.push_str(GAP);
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    fn widths(&self, available: usize) -> Vec<usize> {
        let mut widths = vec![0; self.sides.len()];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = columns(cell).max(*width);
            }
        }
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > available {
            match widths.iter_mut().max() {
                Some(widest) if *widest > 1 => *widest -= 1,
                _ => break,
            }
        }
        widths
    }
}

const GAP: &str = "  ";

fn wrap_line(line: &str, width: usize, lines: &mut Vec<String>) {
    let (mut current, mut used) = (String::new(), 0);
    for word in line.split_whitespace() {
        if used > 0 && used + 1 + columns(word) > width {
            lines.push(std::mem::take(&mut current));
            used = 0;
        }
        if used > 0 {
            current.push(' ');
            used += 1;
        }
        // A word wider than the line, as in scripts without spaces, breaks anywhere.
        for c in word.chars() {
            if used > 0 && used + columns_of(c) > width {
                lines.push(std::mem::take(&mut current));
                used = 0;
            }
            current.push(c);
            used += columns_of(c);
        }
    }
    if !current.is_empty() {
        lines.push(current);
    }
}

/// Columns of one character: combining marks need none, ideographs and the like two.
fn columns_of(c: char) -> usize {
    if c.is_ascii() {
        return 1;
    }
    let is_mark = matches!(
        c.general_category(),
        GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark | GeneralCategory::Format
    );
    match c {
        _ if is_mark => 0,
        '\u{1100}'..='\u{115F}'
        | '\u{2E80}'..='\u{A4CF}'
        | '\u{AC00}'..='\u{D7A3}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{FE30}'..='\u{FE6F}'
        | '\u{FF00}'..='\u{FF60}'
        | '\u{FFE0}'..='\u{FFE6}'
        | '\u{1F300}'..='\u{1FAFF}'
        | '\u{20000}'..='\u{3FFFD}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use crate::command::render::layout::{Side, Table, byte_size, columns, cut, decimal, grouped, plain, width, wrap};

    #[test]
    fn text_is_wrapped_at_words_and_keeps_its_paragraphs() {
        let text = "one two three\n\n\nfour\u{1b}[31m\tfive\nabcdefghijkl\n\n";
        assert_eq!(wrap(text, 8), ["one two", "three", "", "four", "[31m", "five", "abcdefgh", "ijkl"]);
        assert_eq!(wrap("知識の庭", 5), ["知識", "の庭"]);
        assert!(wrap(" \n\n", 8).is_empty());
    }

    #[test]
    fn lines_are_cut_by_columns() {
        assert_eq!(cut("hedgerow", 8), "hedgerow");
        assert_eq!(cut("hedgerows", 8), "hedgero…");
        assert_eq!(cut("知識の庭", 6), "知識…");
        assert_eq!((columns("Zoe\u{308}"), columns("庭")), (3, 2));
        assert_eq!(plain("a\u{7}b\u{202E}c"), "a b c");
    }

    #[test]
    fn numbers_are_short() {
        let decimals = [0.9823, 1.0, 0.0, -0.25, -0.0001].map(|value| decimal(value, 2));
        assert_eq!(decimals, [".98", "1.00", ".00", "-.25", ".00"]);
        let counts = [0, 999, 1000, 1_234_567].map(grouped);
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
        let sizes = [1, 1023, 1024, 1_600_000].map(byte_size);
        assert_eq!(sizes, ["1 byte", "1,023 bytes", "1.0 KiB", "1.5 MiB"]);
    }

    #[test]
    fn columns_of_a_table_are_aligned_and_the_widest_gives_way() {
        let mut table = Table::new(&[("name", Side::Left), ("count", Side::Right)]);
        table.add(["a".repeat(200), "7".to_owned()]);
        table.add(["b".to_owned(), "1,234".to_owned()]);
        let mut out = Vec::new();
        table.print(&mut out, 2).unwrap();
        let printed = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = printed.lines().collect();
        assert!(lines.iter().all(|line| columns(line) == width()), "{printed}");
        assert!(lines[0].starts_with("  name ") && lines[1].ends_with("…      7"));
    }
}
