//! Where on its page the title of each bookmark stands.

use unicode_normalization::UnicodeNormalization;

use crate::read::pdf::layout::Page;
use crate::read::pdf::outline::Bookmark;

/// Lines that a title takes at most.
const LINES_MAX: usize = 3;

/// Lines that are looked at for the bookmarks of one page; bookmarks beyond them stand where they lead to.
const LOOKS_MAX: usize = 1 << 20;

/// Words that may stand before the number of a heading.
const DIVISIONS: [&str; 6] = ["chapter", "appendix", "section", "annex", "part", "article"];

/// A heading that the outline gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its level, from 1.
    pub level: u8,
    /// Its words.
    pub title: String,
    /// How many lines of the page show them; none where they are not in the text.
    pub lines: usize,
}

/// The headings with page and line, in reading order.
pub fn of(pages: &[Page], mut bookmarks: Vec<Bookmark>) -> Vec<((usize, usize), Mark)> {
    bookmarks.sort_by_key(|bookmark| bookmark.page);
    let mut placed = Vec::with_capacity(bookmarks.len());
    for of_page in bookmarks.chunk_by(|a, b| a.page == b.page) {
        let Some((page, number)) = of_page.first().and_then(|first| Some((pages.get(first.page)?, first.page))) else {
            continue;
        };
        let keys: Vec<String> = page.lines.iter().map(|line| key(&line.text)).collect();
        for (count, bookmark) in of_page.iter().enumerate() {
            let found = if count * keys.len() < LOOKS_MAX { shown(page, &keys, bookmark) } else { None };
            let (line, lines) = found.unwrap_or_else(|| (below(page, bookmark.y), 0));
            let words =
                page.lines.iter().skip(line).take(lines).map(|line| line.text.as_str()).collect::<Vec<_>>().join(" ");
            // The number that the page shows before a title is worth citing.
            let is_numbered =
                words.starts_with(|letter: char| letter.is_ascii_digit()) && key(&words) != key(&bookmark.title);
            let title = if is_numbered { words } else { bookmark.title.clone() };
            placed.push(((number, line), Mark { level: bookmark.level, title, lines }));
        }
    }
    placed.sort_by_key(|(place, _)| *place);
    placed
}

/// The lines that are the words of a bookmark: of several the nearest to the place that it leads to, else the first.
fn shown(page: &Page, keys: &[String], bookmark: &Bookmark) -> Option<(usize, usize)> {
    let title = key(&bookmark.title);
    let mut found: Option<(f64, usize, usize)> = None;
    for (first, line) in page.lines.iter().enumerate() {
        let mut joined = String::new();
        for (place, key) in keys.iter().enumerate().skip(first).take(LINES_MAX) {
            joined.push_str(key);
            if joined.len() > title.len() + 24 || line.is_turned {
                break;
            }
            let away = bookmark.y.map_or(0.0, |y| (line.y - y).abs());
            if is_title(&joined, &title) && found.is_none_or(|(least, ..)| away < least) {
                found = Some((away, first, place + 1 - first));
            }
        }
    }
    found.map(|(_, first, lines)| (first, lines))
}

/// The first line that stands at this height or below it.
fn below(page: &Page, y: Option<f64>) -> usize {
    let Some(y) = y else { return 0 };
    page.lines.iter().position(|line| !line.is_turned && line.y >= y).unwrap_or(page.lines.len())
}

/// Letters and digits of a title, which programs write with other spaces, dots and ligatures.
fn key(text: &str) -> String {
    text.nfkc().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a line shows a title; one of them may have a number before it.
fn is_title(line: &str, title: &str) -> bool {
    let Some(before) = line.strip_suffix(title).or_else(|| title.strip_suffix(line)) else { return false };
    let number = DIVISIONS.iter().find_map(|word| before.strip_prefix(word)).unwrap_or(before);
    let digits = number.strip_prefix(|letter: char| letter.is_ascii_lowercase()).unwrap_or(number);
    let is_roman = number.bytes().all(|letter| b"ivxlc".contains(&letter));
    !title.is_empty()
        && !line.is_empty()
        && number.len() <= 6
        && (is_roman || digits.bytes().all(|byte| byte.is_ascii_digit()))
}
