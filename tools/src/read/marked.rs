//! RST and Org: their text as it stands, in parts under its headings.

use serde_json::Map;

use crate::read::composer::{Composer, one_line};
use crate::read::document::{Parsed, Refusal};
use crate::read::plain::{first_with_words, without_blank_lines};

/// A heading of a text: its level from 1, its words, and the bytes of its lines.
struct Heading {
    level: u8,
    words: String,
    start: usize,
    end: usize,
}

/// Reads RST: a line of words with a line of one sign below it, and perhaps one above it, is a heading; its level is that
/// of its sign, counted as the signs come.
///
/// # Errors
/// [`Refusal::TooLong`].
pub fn rst(text: &str, name: &str) -> Result<Parsed, Refusal> {
    let lines: Vec<(usize, &str)> = lines(text).collect();
    let mut styles: Vec<(u8, bool)> = Vec::new();
    let mut headings: Vec<Heading> = Vec::new();
    for (position, (start, line)) in lines.iter().enumerate() {
        let Some((below, sign)) =
            lines.get(position + 1).and_then(|(at, line)| Some((at + line.len(), adorned(line)?)))
        else {
            continue;
        };
        let words = line.trim();
        let mark = lines.get(position + 1).map_or(0, |(_, line)| line.trim_end().len());
        // A line of words may be a little longer than its mark, as some letters are wide.
        if words.is_empty() || adorned(line).is_some() || mark < words.chars().count().min(4) {
            continue;
        }
        let above = position.checked_sub(1).and_then(|above| lines.get(above));
        let over = above.filter(|(_, line)| adorned(line) == Some(sign)).map(|(at, _)| *at);
        // The mark below a heading is not the one above the next.
        let over = over.filter(|at| headings.last().is_none_or(|last| *at >= last.end));
        if line.starts_with([' ', '\t']) && over.is_none() {
            continue;
        }
        let style = (sign, over.is_some());
        let level = styles.iter().position(|known| *known == style).unwrap_or_else(|| {
            styles.push(style);
            styles.len() - 1
        });
        let level = u8::try_from(level + 1).unwrap_or(u8::MAX);
        headings.push(Heading { level, words: one_line(words), start: over.unwrap_or(*start), end: below });
    }
    parsed(text, name, headings, None, "text/x-rst")
}

/// Reads Org: a line that begins with stars is a heading, and has a level for each star.
///
/// # Errors
/// [`Refusal::TooLong`].
pub fn org(text: &str, name: &str) -> Result<Parsed, Refusal> {
    let mut headings = Vec::new();
    let mut is_block = false;
    let mut title = None;
    for (start, line) in lines(text) {
        let lower = line.trim().to_ascii_lowercase();
        if lower.starts_with("#+begin") || lower.starts_with("#+end") {
            is_block = lower.starts_with("#+begin");
        }
        if let Some(words) = lower.starts_with("#+title:").then(|| line.trim().get("#+title:".len()..)).flatten() {
            title.get_or_insert_with(|| one_line(words));
        }
        let words = line.trim_start_matches('*');
        let stars = line.len() - words.len();
        if stars > 0 && words.starts_with(' ') && !is_block {
            let level = u8::try_from(stars).unwrap_or(u8::MAX);
            headings.push(Heading { level, words: one_line(words), start, end: start + line.len() });
        }
    }
    parsed(text, name, headings, title.filter(|title| !title.is_empty()), "text/org")
}

/// A heading that opens the text is its title, and is taken out of it, as it counts by itself.
fn parsed(
    text: &str,
    name: &str,
    headings: Vec<Heading>,
    title: Option<String>,
    media_type: &str,
) -> Result<Parsed, Refusal> {
    let mut composer = Composer::default();
    let mut headings = headings.into_iter().peekable();
    let mut written = 0;
    let mut found = title;
    if found.is_none()
        && let Some(first) =
            headings.next_if(|first| text.get(..first.start).is_some_and(|text| text.trim().is_empty()))
    {
        written = text.len() - without_blank_lines(text.get(first.end..).unwrap_or_default()).len();
        found = Some(first.words);
    }
    for Heading { level, words, start, .. } in headings {
        composer.verbatim(text.get(written..start).unwrap_or_default())?;
        written = start.max(written);
        composer.under(level, &words);
    }
    composer.verbatim(text.get(written..).unwrap_or_default())?;
    let title = found.unwrap_or_else(|| name.to_owned());
    let (mut body, mut parts) = composer.finish();
    if body.trim().is_empty() {
        body = first_with_words([text, &title]);
        parts.clear();
    }
    Ok(Parsed { title, text: body, parts, metadata: Map::new(), media_type: media_type.to_owned() })
}

/// The lines with the bytes that they begin at, without their ends.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut offset = 0;
    text.split_inclusive('\n').map(move |line| {
        offset += line.len();
        (offset - line.len(), line.trim_end_matches(['\n', '\r']))
    })
}

/// The sign that a line consists of, three times at least, or twice above a short word.
fn adorned(line: &str) -> Option<u8> {
    let line = line.trim_end().as_bytes();
    let sign = *line.first().filter(|sign| sign.is_ascii_punctuation())?;
    (line.len() >= 2 && line.iter().all(|byte| *byte == sign)).then_some(sign)
}

#[cfg(test)]
mod tests {
    use crate::read::document::Parsed;
    use crate::read::marked::{org, rst};

    fn outline(parsed: &Parsed) -> Vec<(&str, &str)> {
        parsed.parts.iter().map(|part| (part.heading.as_str(), parsed.text[part.range.clone()].trim())).collect()
    }

    #[test]
    fn headings_of_rst_are_told_by_the_signs_below_them() {
        let text = "=====\nGates\n=====\n\nIntro\n\nParts\n-----\nText\n\nInner\n~~~~~\nMore\n\nOther\n-----\n\n::\n\n    a\n    --\n";
        let parsed = rst(text, "file").unwrap();
        assert_eq!(parsed.title, "Gates");
        assert_eq!(
            outline(&parsed),
            [
                ("", "Intro"),
                ("Parts", "Parts\n-----\nText"),
                ("Parts > Inner", "Inner\n~~~~~\nMore"),
                ("Other", "Other\n-----\n\n::\n\n    a\n    --"),
            ]
        );
        assert_eq!(rst("Just text\n", "file").unwrap().title, "file");
    }

    #[test]
    fn headings_of_org_are_told_by_their_stars() {
        let text = "#+TITLE: Gates\nIntro\n* One\nText\n** Two\n#+begin_src c\n* no heading\n#+end_src\n*bold* text\n* Three\n";
        let parsed = org(text, "file").unwrap();
        assert_eq!(parsed.title, "Gates");
        let headings: Vec<&str> = outline(&parsed).iter().map(|(heading, _)| *heading).collect();
        assert_eq!(headings, ["", "One", "One > Two", "Three"]);
        let parsed = org("* Alone\n", "file").unwrap();
        assert_eq!((parsed.title.as_str(), parsed.text.as_str()), ("Alone", "* Alone\n"));
    }
}
