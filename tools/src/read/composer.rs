//! Puts a document together block by block: its text, and the parts that say heading, page and table of every byte.

use hedgerow::{Part, PartKind};
use hedgerow_format::limits;

use crate::read::document::Refusal;
use crate::read::table::Table;

/// Characters of a heading that go into the heading path.
const HEADING_CHARACTERS_MAX: usize = 200;

/// Headings of a path: more of them are of no use to a reader and would exceed what a name may have.
const HEADINGS_MAX: usize = 6;

/// A document in the making. Blocks are separated by blank lines.
#[derive(Debug, Default)]
pub struct Composer {
    text: String,
    parts: Vec<Part>,
    headings: Vec<(u8, String)>,
    page: Option<u32>,
    bytes_max: Option<usize>,
}

impl Composer {
    /// What follows is on this page, from 1.
    pub fn page(&mut self, number: u32) {
        self.page = Some(number);
    }

    /// A heading of a level from 1, which the next one of its level or above ends; its words stand in the text.
    ///
    /// # Errors
    /// [`Refusal::TooLong`].
    pub fn heading(&mut self, level: u8, words: &str) -> Result<(), Refusal> {
        let words = one_line(words);
        if words.is_empty() {
            return Ok(());
        }
        self.under(level, &words);
        self.block(&words)
    }

    /// What follows stands under a heading whose words are in the text already, or in the title.
    pub fn under(&mut self, level: u8, words: &str) {
        self.headings.retain(|(above, _)| *above < level);
        if !words.is_empty() && self.headings.len() < HEADINGS_MAX {
            self.headings.push((level, words.chars().take(HEADING_CHARACTERS_MAX).collect()));
        }
    }

    /// A paragraph, or anything else that stands by itself; white space at its ends does not count.
    ///
    /// # Errors
    /// [`Refusal::TooLong`].
    pub fn block(&mut self, block: &str) -> Result<(), Refusal> {
        self.add(block.trim_end().trim_start_matches(['\n', '\r']), PartKind::Text)
    }

    /// A table: what its columns are, then its rows, in parts that repeat the header.
    ///
    /// # Errors
    /// [`Refusal::TooLong`].
    pub fn table(&mut self, table: &Table) -> Result<(), Refusal> {
        self.add(&table.description(), PartKind::Text)?;
        table.segments().try_for_each(|segment| self.add(&segment, PartKind::Table))
    }

    /// Words that continue the last block, with this between them.
    ///
    /// # Errors
    /// [`Refusal::TooLong`].
    pub fn continued(&mut self, gap: &str, words: &str) -> Result<(), Refusal> {
        self.put(gap, words, PartKind::Text)
    }

    /// Text that stands as it is, without blank lines around it: that of a file which is text itself.
    ///
    /// # Errors
    /// [`Refusal::TooLong`].
    pub fn verbatim(&mut self, text: &str) -> Result<(), Refusal> {
        self.put("", text, PartKind::Text)
    }

    /// Bytes of text until now.
    pub fn bytes(&self) -> usize {
        self.text.len()
    }

    /// The text and its parts.
    pub fn finish(self) -> (String, Vec<Part>) {
        (self.text, self.parts)
    }

    fn add(&mut self, block: &str, kind: PartKind) -> Result<(), Refusal> {
        if block.trim().is_empty() {
            return Ok(());
        }
        let gap = match self.text.as_bytes() {
            [] | [.., b'\n', b'\n'] => "",
            [.., b'\n'] => "\n",
            _ => "\n\n",
        };
        self.put(gap, block, kind)
    }

    fn put(&mut self, gap: &str, text: &str, kind: PartKind) -> Result<(), Refusal> {
        let most = self.bytes_max.unwrap_or(limits::DOCUMENT_BYTES);
        if self.text.len() + gap.len() + text.len() > most {
            return Err(Refusal::TooLong);
        }
        self.text.push_str(gap);
        let start = self.text.len();
        self.text.push_str(text);
        let heading = self.headings.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>().join(" > ");
        match self.parts.last_mut() {
            Some(last)
                if kind == PartKind::Text && last.kind == kind && last.page == self.page && last.heading == heading =>
            {
                last.range.end = self.text.len();
            }
            _ => self.parts.push(Part { range: start..self.text.len(), heading, page: self.page, kind }),
        }
        Ok(())
    }
}

/// The words with single spaces between them.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

#[cfg(test)]
mod tests {
    use hedgerow::PartKind;

    use crate::read::composer::Composer;
    use crate::read::document::Refusal;
    use crate::read::table::{Header, Table};

    #[test]
    fn parts_say_heading_page_and_table_of_every_byte() {
        let mut composer = Composer::default();
        composer.page(1);
        composer.block("Opening.").unwrap();
        composer.heading(1, "One").unwrap();
        composer.block("Text.\n").unwrap();
        composer.page(2);
        composer.heading(2, "One\n point two").unwrap();
        composer.block("More.").unwrap();
        let rows = [["Year", "Name"], ["1965", "Pink Floyd"]];
        let table = Table::new(rows.map(|row| row.map(str::to_owned).to_vec()).to_vec(), Header::First);
        composer.table(&table.unwrap()).unwrap();
        composer.heading(1, "Two").unwrap();
        let (text, parts) = composer.finish();
        let told: Vec<(&str, &str, Option<u32>, PartKind)> =
            parts.iter().map(|part| (&text[part.range.clone()], part.heading.as_str(), part.page, part.kind)).collect();
        let description = "Table with 1 row. Columns: Year (1965); Name (such as Pink Floyd).";
        let more = format!("One point two\n\nMore.\n\n{description}");
        assert_eq!(
            told,
            [
                ("Opening.", "", Some(1), PartKind::Text),
                ("One\n\nText.", "One", Some(1), PartKind::Text),
                (more.as_str(), "One > One point two", Some(2), PartKind::Text),
                ("Year | Name\n1965 | Pink Floyd", "One > One point two", Some(2), PartKind::Table),
                ("Two", "Two", Some(2), PartKind::Text),
            ]
        );
    }

    #[test]
    fn a_text_above_the_limit_is_refused() {
        let mut composer = Composer { bytes_max: Some(10), ..Composer::default() };
        composer.block("12345").unwrap();
        assert_eq!(composer.block("1234"), Err(Refusal::TooLong));
        composer.block("123").unwrap();
    }
}
