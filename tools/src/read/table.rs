//! Tables: cells in rows, written as segments that repeat the header, after a sentence that tells the columns.

/// Rows of a segment at most.
const SEGMENT_ROWS: usize = 10;

/// Bytes of a segment at most, but for a row that is longer by itself: what an embedder and a reader take in at once.
const SEGMENT_BYTES: usize = 4000;

/// Columns that the description tells one by one.
const COLUMNS_TOLD: usize = 40;

/// Examples of a column's values in the description.
const EXAMPLES: usize = 3;

/// Characters of an example.
const EXAMPLE_CHARACTERS: usize = 40;

/// Which row names the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// The first row, as the document says.
    First,
    /// The first row where it holds words only, else none.
    Likely,
}

/// A table with at least two columns and a row below its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these cells; `None` where they are none: a frame around text, a single row or column. Columns and
    /// rows without words are left out, and so is white space that only shapes a cell.
    #[must_use]
    pub fn new(mut rows: Vec<Vec<String>>, header: Header) -> Option<Table> {
        let width = rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut is_told = vec![false; width];
        for row in &mut rows {
            for (cell, is_told) in row.iter_mut().zip(&mut is_told) {
                *cell = cell_text(cell);
                *is_told |= !cell.is_empty();
            }
        }
        rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
        let columns = is_told.iter().filter(|is_told| **is_told).count();
        if columns < 2 || rows.len() < 2 {
            return None;
        }
        for row in &mut rows {
            let mut place = 0;
            row.retain(|_| {
                place += 1;
                is_told.get(place - 1).copied().unwrap_or(false)
            });
        }
        let is_header = header == Header::First || rows.first().is_some_and(|row| is_header(row));
        let header = if is_header { rows.remove(0) } else { Vec::new() };
        let header = (0..columns).map(|column| match header.get(column) {
            Some(name) if !name.is_empty() => name.clone(),
            _ => format!("column {}", column + 1),
        });
        Some(Table { header: header.collect(), rows })
    }

    /// The sentence that tells the columns: the range of numbers, else examples.
    #[must_use]
    pub fn description(&self) -> String {
        let rows = self.rows.len();
        let columns: Vec<String> =
            self.header.iter().enumerate().take(COLUMNS_TOLD).map(|(column, name)| self.told(column, name)).collect();
        let more = match self.header.len().saturating_sub(COLUMNS_TOLD) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let noun = if rows == 1 { "row" } else { "rows" };
        format!("Table with {rows} {noun}. Columns: {}{more}.", columns.join("; "))
    }

    /// The rows, some at a time, below the header; cells are separated by ` | `.
    pub fn segments(&self) -> impl Iterator<Item = String> {
        let mut rows = self.rows.iter().peekable();
        std::iter::from_fn(move || {
            rows.peek()?;
            let mut segment = self.header.join(" | ");
            for number in 0..SEGMENT_ROWS {
                let bytes = segment.len();
                let fits = |row: &Vec<String>| row.iter().map(|cell| cell.len() + 3).sum::<usize>() + bytes;
                let Some(row) = rows.next_if(|row| number == 0 || fits(row) <= SEGMENT_BYTES) else { break };
                segment.push('\n');
                segment.push_str(row.join(" | ").trim_end_matches([' ', '|']));
            }
            Some(segment)
        })
    }

    fn told(&self, column: usize, name: &str) -> String {
        let cells = || self.rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.is_empty());
        if cells().next().is_none() {
            return name.to_owned();
        }
        if let Some(range) = number_range(cells()) {
            return format!("{name} ({range})");
        }
        let mut examples: Vec<String> = Vec::new();
        for cell in cells() {
            let example = shortened(cell);
            if !examples.contains(&example) {
                examples.push(example);
            }
            if examples.len() == EXAMPLES {
                break;
            }
        }
        format!("{name} (such as {})", examples.join(", "))
    }
}

/// The smallest and the largest of cells that are all numbers, as they are written.
fn number_range<'c>(cells: impl Iterator<Item = &'c String>) -> Option<String> {
    let mut range: Option<[(f64, &str); 2]> = None;
    for cell in cells {
        let cell = (number(cell)?, cell.as_str());
        let [least, most] = range.unwrap_or([cell, cell]);
        range = Some([if cell.0 < least.0 { cell } else { least }, if cell.0 > most.0 { cell } else { most }]);
    }
    let [(_, least), (_, most)] = range?;
    Some(if least == most { least.to_owned() } else { format!("{least} to {most}") })
}

/// A number as tables write it: with commas between thousands, a percent sign, a currency, or parentheses for a loss.
fn number(cell: &str) -> Option<f64> {
    let is_loss = cell.starts_with('(') && cell.ends_with(')');
    let plain = cell.trim_matches(['(', ')', '%', '$', '€', '£', ' ']).replace(',', "");
    let is_digits = plain.bytes().any(|byte| byte.is_ascii_digit())
        && plain.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E'));
    let value: f64 = plain.parse().ok().filter(|_| is_digits)?;
    Some(if is_loss { -value } else { value })
}

/// Whether a first row names columns: it has words in most places and no numbers but years, which name columns too.
fn is_header(row: &[String]) -> bool {
    let is_year = |value: f64| value.fract() == 0.0 && (1900.0..2100.0).contains(&value);
    let filled = row.iter().filter(|cell| !cell.is_empty()).count();
    let words = row.iter().filter(|cell| !cell.is_empty() && number(cell).is_none()).count();
    2 * filled >= row.len() && words > 0 && row.iter().filter_map(|cell| number(cell)).all(is_year)
}

fn cell_text(cell: &str) -> String {
    crate::read::composer::one_line(cell).replace(" | ", " / ")
}

fn shortened(cell: &str) -> String {
    if cell.chars().count() <= EXAMPLE_CHARACTERS {
        return cell.to_owned();
    }
    let start: String = cell.chars().take(EXAMPLE_CHARACTERS - 1).collect();
    format!("{}…", start.trim_end())
}

#[cfg(test)]
mod tests {
    use crate::read::table::{Header, Table};

    fn table(rows: &[&[&str]], header: Header) -> Option<Table> {
        Table::new(rows.iter().map(|row| row.iter().map(|&cell| cell.to_owned()).collect()).collect(), header)
    }

    #[test]
    fn every_segment_of_ten_rows_repeats_the_header() {
        let mut rows = vec![vec!["Number".to_owned(), "Square".to_owned()]];
        rows.extend((1..=23).map(|number| vec![number.to_string(), (number * number).to_string()]));
        let table = Table::new(rows, Header::Likely).unwrap();
        assert_eq!(table.description(), "Table with 23 rows. Columns: Number (1 to 23); Square (1 to 529).");
        let segments: Vec<String> = table.segments().collect();
        assert_eq!(segments.iter().map(|segment| segment.lines().count()).collect::<Vec<_>>(), [11, 11, 4]);
        assert!(segments.iter().all(|segment| segment.starts_with("Number | Square\n")));
        assert!(segments[2].ends_with("\n23 | 529"));
    }

    #[test]
    fn columns_are_told_by_range_or_by_examples() {
        let long = "A name that is longer than forty characters are, by far";
        let rows: &[&[&str]] = &[
            &["Name", "", "Profit", "Note"],
            &["Gate", "", "(1,200)", ""],
            &[long, "", "$ 30.5", " "],
            &["Gate", "", "7 %", ""],
        ];
        let table = table(rows, Header::Likely).unwrap();
        let told = "Name (such as Gate, A name that is longer than forty charac…); Profit ((1,200) to $ 30.5); Note";
        assert_eq!(table.description(), format!("Table with 3 rows. Columns: {told}."));
        assert_eq!(table.segments().next().unwrap().lines().nth(1), Some("Gate | (1,200)"));
    }

    #[test]
    fn a_first_row_of_numbers_is_no_header() {
        let found = table(&[&["1", "x"], &["2", "y"]], Header::Likely).unwrap();
        assert_eq!(found.segments().next().unwrap(), "column 1 | column 2\n1 | x\n2 | y");
        let years = table(&[&["", "2019", "2020", "Sum"], &["Gate", "5", "6", "11"]], Header::Likely).unwrap();
        assert_eq!(years.segments().next().unwrap(), "column 1 | 2019 | 2020 | Sum\nGate | 5 | 6 | 11");
        let told = table(&[&["1", "x"], &["2", "y"]], Header::First).unwrap();
        assert_eq!(told.segments().next().unwrap(), "1 | x\n2 | y");
    }

    #[test]
    fn frames_around_text_are_no_tables_and_long_rows_stand_alone() {
        let frames: [&[&[&str]]; 4] = [&[], &[&["a", "b"]], &[&["a", ""], &["b", " "]], &[&["", ""], &["a", "b"]]];
        for rows in frames {
            assert_eq!(table(rows, Header::First), None, "{rows:?}");
        }
        let long = "x".repeat(3000);
        let rows: &[&[&str]] = &[&["a", "b"], &["1", &long], &["2", &long], &["3", "short"]];
        assert_eq!(table(rows, Header::First).unwrap().segments().count(), 2);
    }
}
