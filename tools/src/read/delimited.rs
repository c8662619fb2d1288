//! CSV and TSV: a table with its description.

use crate::read::composer::Composer;
use crate::read::document::{Parsed, Refusal};
use crate::read::table::{Header, Table};

/// Cells of a table at most: each takes some 24 bytes and as few as one in the file.
const CELLS_MAX: usize = 1 << 22;

/// Lines that tell the separator.
const LINES_TOLD: usize = 20;

/// Reads a table; `name` is its title. The separator is a tab where the name of the file says so, else the one of `,`,
/// `;`, tab and `|` that parts the first lines most often and most evenly.
///
/// # Errors
/// [`Refusal`].
pub fn read(text: &str, name: &str, is_tabbed: bool) -> Result<Parsed, Refusal> {
    let separator = if is_tabbed { b'\t' } else { separator(text) };
    let mut reader =
        csv::ReaderBuilder::new().delimiter(separator).has_headers(false).flexible(true).from_reader(text.as_bytes());
    let (mut rows, mut cells) = (Vec::new(), 0);
    for record in reader.records() {
        let record = record.map_err(|error| Refusal::Broken { format: "CSV", what: error.to_string() })?;
        cells += record.len();
        if cells > CELLS_MAX {
            let what = format!("it has more than {CELLS_MAX} cells; split it");
            return Err(Refusal::Broken { format: "CSV", what });
        }
        rows.push(record.iter().map(str::to_owned).collect());
    }
    let mut composer = Composer::default();
    match Table::new(rows, Header::Likely) {
        Some(table) => composer.table(&table)?,
        None => composer.block(text)?,
    }
    let (text, parts) = composer.finish();
    let media_type = if is_tabbed { "text/tab-separated-values" } else { "text/csv" };
    Ok(Parsed { title: name.to_owned(), text, parts, media_type: media_type.to_owned(), ..Parsed::default() })
}

/// The sign with the highest least number in a line, which quotes do not hide; a comma where there is none.
fn separator(text: &str) -> u8 {
    let counts = |sign: u8| {
        let mut is_quoted = false;
        let mut counts = vec![0_usize];
        for byte in text.bytes() {
            match byte {
                b'"' => is_quoted = !is_quoted,
                b'\n' if !is_quoted => {
                    if counts.len() == LINES_TOLD {
                        break;
                    }
                    counts.push(0);
                }
                byte if byte == sign && !is_quoted => counts.last_mut().map_or((), |count| *count += 1),
                _ => {}
            }
        }
        if text.ends_with('\n') && counts.len() > 1 && counts.last() == Some(&0) {
            counts.pop();
        }
        counts.into_iter().min().unwrap_or(0)
    };
    let signs = [b'|', b'\t', b';', b','];
    signs.into_iter().max_by_key(|sign| counts(*sign)).unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use hedgerow::PartKind;

    use crate::read::delimited::read;

    #[test]
    fn a_table_is_described_and_its_segments_repeat_the_header() {
        for (text, is_tabbed) in [
            ("Name,Born\n\"Gilmour, David\",1946\nWaters,1943\n", false),
            ("Name;Born\nGilmour, David;1946\nWaters;1943", false),
            ("Name\tBorn\nGilmour, David\t1946\nWaters\t1943", true),
            ("Name|Born\nGilmour, David|1946\nWaters|1943", false),
        ] {
            let parsed = read(text, "people", is_tabbed).unwrap();
            assert_eq!(
                parsed.text,
                "Table with 2 rows. Columns: Name (such as Gilmour, David, Waters); Born (1943 to 1946).\n\n\
                 Name | Born\nGilmour, David | 1946\nWaters | 1943"
            );
            assert_eq!((parsed.title.as_str(), parsed.parts[1].kind), ("people", PartKind::Table));
        }
    }

    #[test]
    fn a_list_without_columns_is_text_and_too_many_cells_are_refused() {
        assert_eq!(read("one\ntwo\n", "list", false).unwrap().text, "one\ntwo");
        let commas = ",".repeat(1 << 22);
        assert!(read(&commas, "bomb", false).unwrap_err().to_string().contains("cells"));
    }
}
