//! The headings of a PDF, by its outline or by the size of letters, and its text under them.

use std::collections::BTreeMap;

use crate::read::composer::Composer;
use crate::read::document::Refusal;
use crate::read::pdf::layout::{self, Line, Page};
use crate::read::pdf::outline::Bookmark;
use crate::read::pdf::places::{self, Mark};
use crate::read::table::{Header, Table};

/// Characters of a heading at most.
const HEADING_CHARACTERS: usize = 160;

/// Headings that are no titles.
const CONTENTS: [&str; 4] = ["contents", "table of contents", "abstract", "index"];

/// The sizes of letters that make headings.
#[derive(Clone, Debug)]
pub struct Sizes {
    body: i64,
    /// From the largest.
    headings: Vec<i64>,
    /// Whether bold letters of the body's size stand out.
    is_bold_rare: bool,
}

impl Sizes {
    /// The sizes of the letters of these pages.
    pub fn of(pages: &[Page]) -> Sizes {
        let mut letters: BTreeMap<i64, (usize, usize)> = BTreeMap::new();
        for line in pages.iter().flat_map(|page| &page.lines) {
            let (all, bold) = letters.entry(half_points(line.size)).or_default();
            let count = line.text.chars().count();
            *all += count;
            *bold += if line.is_bold { count } else { 0 };
        }
        // Of sizes that are as common the smaller one, so that the same file always gives the same text.
        let body = letters.iter().max_by_key(|(size, (count, _))| (*count, -**size)).map_or(0, |(size, _)| *size);
        let is_bold_rare = letters.get(&body).is_some_and(|(all, bold)| 5 * bold <= *all);
        let mut headings: Vec<i64> = letters.into_keys().filter(|size| is_larger(*size, body)).collect();
        headings.reverse();
        Sizes { body, headings, is_bold_rare }
    }

    /// The words in the largest letters of the first page.
    pub fn title(&self, pages: &[Page]) -> Option<String> {
        let lines = &pages.first()?.lines;
        let rank = |line: &Line| self.rank(line).filter(|_| !CONTENTS.contains(&line.text.to_lowercase().as_str()));
        let largest = lines.iter().filter_map(rank).min();
        let is_largest = |line: &&Line| largest.is_some() && rank(line) == largest;
        let words: Vec<&str> = lines
            .iter()
            .skip_while(|line| !is_largest(line))
            .take_while(is_largest)
            .map(|line| line.text.as_str())
            .collect();
        Some(words.join(" ")).filter(|title| !title.is_empty() && title.chars().count() <= HEADING_CHARACTERS)
    }

    /// Which of the sizes of headings a line has that may be one, from the largest.
    fn rank(&self, line: &Line) -> Option<usize> {
        let size = half_points(line.size);
        let letters = line.text.chars().filter(|letter| letter.is_alphabetic()).count();
        let is_heading = letters > 1 && is_plain(line) && line.text.chars().count() <= HEADING_CHARACTERS;
        self.headings.binary_search_by(|heading| size.cmp(heading)).ok().filter(|_| is_heading)
    }

    /// How many numbers a heading in bold letters begins with, as in `2.1 Gates`.
    fn depth(&self, line: &Line) -> Option<usize> {
        let (number, words) = line.text.split_once(' ')?;
        let numbers: Vec<&str> = number.trim_end_matches('.').split('.').collect();
        let is_number = |part: &&str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        let is_heading = self.is_bold_rare
            && line.is_bold
            && line.is_paragraph
            && is_plain(line)
            && half_points(line.size) >= self.body
            && numbers.iter().all(is_number)
            && words.chars().any(char::is_alphabetic)
            && !words.ends_with(['.', ',', ';'])
            && line.text.chars().count() <= HEADING_CHARACTERS;
        is_heading.then_some(numbers.len())
    }
}

fn is_plain(line: &Line) -> bool {
    line.cells.is_empty() && !line.is_turned
}

/// Where the headings of a document stand.
#[derive(Debug)]
pub struct Headings {
    /// Headings by page and line, from the outline.
    marks: BTreeMap<(usize, usize), Vec<Mark>>,
    sizes: Sizes,
    /// The level that those by size stand below; none where they are all that there is.
    above: Option<u8>,
}

/// What a line begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Heading(u8),
    Table,
    Text,
}

impl Headings {
    /// Those of the outline, where it fits the pages, and smaller ones below them; else those that letters make.
    pub fn of(pages: &[Page], mut sizes: Sizes, bookmarks: Vec<Bookmark>) -> Headings {
        let above = bookmarks.iter().map(|bookmark| bookmark.level).max();
        let placed = places::of(pages, bookmarks);
        let shown = || placed.iter().filter(|(_, mark)| mark.lines > 0);
        // An outline whose words are nowhere on its pages is wrong, unless nothing else tells headings.
        if placed.is_empty() || (2 * shown().count() < placed.len() && !sizes.headings.is_empty()) {
            return Headings { marks: BTreeMap::new(), sizes, above: None };
        }
        let size = |((page, line), _): &((usize, usize), Mark)| Some(pages.get(*page)?.lines.get(*line)?.size);
        let least = shown().filter_map(size).map(half_points).min().unwrap_or(i64::MIN);
        sizes.headings.retain(|size| *size < least);
        let mut marks: BTreeMap<(usize, usize), Vec<Mark>> = BTreeMap::new();
        for (place, mark) in placed {
            marks.entry(place).or_default().push(mark);
        }
        Headings { marks, sizes, above }
    }

    fn kind(&self, line: &Line) -> Kind {
        if !line.cells.is_empty() {
            return Kind::Table;
        }
        let numbered =
            || Some(self.sizes.headings.len() + self.sizes.depth(line).filter(|_| self.above.is_none())? - 1);
        let Some(below) = self.sizes.rank(line).or_else(numbered) else { return Kind::Text };
        let level = usize::from(self.above.unwrap_or(0)) + below + 1;
        Kind::Heading(u8::try_from(level).unwrap_or(u8::MAX))
    }

    /// Writes the pages, each with its number.
    ///
    /// # Errors
    /// [`Refusal::TooLong`].
    pub fn write(&self, pages: &[Page], composer: &mut Composer) -> Result<(), Refusal> {
        let mut gap = None;
        for (number, page) in pages.iter().enumerate() {
            composer.page(u32::try_from(number + 1).unwrap_or(u32::MAX));
            let after = pages.get(number + 1).and_then(|next| self.continued(number + 1, next));
            gap = self.write_page(number, page, (gap, after), composer)?;
        }
        Ok(())
    }

    /// The first line of a page, where it may continue the page before.
    fn continued<'p>(&self, number: usize, page: &'p Page) -> Option<&'p str> {
        let line = page.lines.first()?;
        let is_text = self.kind(line) == Kind::Text && !line.is_turned && !self.marks.contains_key(&(number, 0));
        (is_text && line.text.starts_with(char::is_lowercase)).then_some(line.text.as_str())
    }

    /// Writes a page. `before` is what parts it from the paragraph that it continues, `after` the line that may continue
    /// it; what it gives is what parts that line from it.
    fn write_page(
        &self,
        number: usize,
        page: &Page,
        (mut before, after): (Option<&'static str>, Option<&str>),
        composer: &mut Composer,
    ) -> Result<Option<&'static str>, Refusal> {
        let mut gap = None;
        let mut first = 0;
        loop {
            let mut shown = 0;
            for mark in self.marks.get(&(number, first)).into_iter().flatten() {
                composer.under(mark.level, &mark.title);
                shown = shown.max(mark.lines);
            }
            let Some(line) = page.lines.get(first) else { return Ok(gap) };
            let kind = if shown > 0 { Kind::Text } else { self.kind(line) };
            let end = if shown > 0 { first + shown } else { self.end(number, page, first, kind) };
            let lines = page.lines.get(first..end).unwrap_or_default();
            let mut block = line.text.clone();
            lines.iter().skip(1).for_each(|line| layout::join(&mut block, &line.text));
            gap = None;
            match kind {
                Kind::Heading(level) if block.chars().count() <= HEADING_CHARACTERS => {
                    composer.heading(level, &block)?;
                }
                Kind::Table => write_table(lines, composer)?,
                _ => {
                    let is_last = end >= page.lines.len() && shown == 0 && kind == Kind::Text && !line.is_turned;
                    let next = after.filter(|_| is_last && !block.ends_with(['.', '!', '?', ':', ';', '…']));
                    gap = next.map(|next| layout::seam(&mut block, next));
                    match before {
                        Some(gap) if first == 0 => composer.continued(gap, &block)?,
                        _ => composer.block(&block)?,
                    }
                }
            }
            before = None;
            first = end;
        }
    }

    /// One past the last line of the block that begins with this one.
    fn end(&self, number: usize, page: &Page, first: usize, kind: Kind) -> usize {
        let is_next = |(place, line): &(usize, &Line)| {
            let is_same = self.kind(line) == kind && !self.marks.contains_key(&(number, *place));
            // A heading may go on in a line that looks like a paragraph, but one with a number begins another.
            let is_wrapped = matches!(kind, Kind::Heading(_)) && self.sizes.depth(line).is_none();
            is_same && (!line.is_paragraph || is_wrapped)
        };
        let more = page.lines.iter().enumerate().skip(first + 1).take_while(is_next).count();
        first + 1 + more
    }
}

fn write_table(lines: &[Line], composer: &mut Composer) -> Result<(), Refusal> {
    match Table::new(lines.iter().map(|line| line.cells.clone()).collect(), Header::Likely) {
        Some(table) => composer.table(&table),
        None => lines.iter().try_for_each(|line| composer.block(&line.text)),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the size of a letter is a small number")]
fn half_points(size: f64) -> i64 {
    (size * 2.0).round() as i64
}

fn is_larger(size: i64, body: i64) -> bool {
    size * 100 >= body * 108 && size > body
}

#[cfg(test)]
mod tests {
    use crate::read::composer::Composer;
    use crate::read::pdf::headings::{Headings, Sizes};
    use crate::read::pdf::layout::{Line, Page};

    /// A page of paragraphs, bold or not.
    fn page(lines: &[(&str, bool)]) -> Page {
        let line = |(text, is_bold): &(&str, bool)| Line {
            text: (*text).to_owned(),
            size: 10.0,
            is_paragraph: true,
            is_bold: *is_bold,
            ..Line::default()
        };
        Page { height: 800.0, lines: lines.iter().map(line).collect() }
    }

    fn headings(page: Page) -> Vec<String> {
        let pages = [page];
        let mut composer = Composer::default();
        Headings::of(&pages, Sizes::of(&pages), Vec::new()).write(&pages, &mut composer).unwrap();
        composer.finish().1.into_iter().map(|part| part.heading).collect()
    }

    #[test]
    fn bold_lines_that_begin_with_a_number_are_headings_where_bold_is_rare() {
        let body = "A paragraph of the body, which is in plain letters and much longer than its heading is.";
        let text =
            [("1 Gates", true), (body, false), ("1.2. Stands", true), (body, false), ("2 Night", true), (body, false)];
        assert_eq!(headings(page(&text)), ["1 Gates", "1 Gates > 1.2. Stands", "2 Night"]);
        let others = [
            ("Gates", true),
            (body, false),
            ("3 are open.", true),
            (body, false),
            ("1999 Gates", true),
            ("2 x", false),
        ];
        assert_eq!(headings(page(&others)), [""]);
        let bold = [("1 Gates", true), (body, true), ("2 Night", true)];
        assert_eq!(headings(page(&bold)), [""]);
    }

    #[test]
    fn a_paragraph_in_larger_letters_is_no_heading() {
        let body = [("Words of the body of a document, which are the most of it. ".repeat(20), 10.0)];
        let large = (0..4).map(|_| ("An opening in larger letters that runs over several lines".to_owned(), 13.0));
        let line = |(text, size)| Line { text, size, ..Line::default() };
        let lines = large.chain(body).map(line).collect();
        assert_eq!(headings(Page { height: 800.0, lines }), [""]);
    }
}
