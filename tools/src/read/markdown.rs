//! Markdown: its text as it stands, in parts under its headings; front matter is metadata, and tables repeat their header.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use serde_json::{Map, Value};

use crate::read::composer::{Composer, one_line};
use crate::read::document::{Parsed, Refusal};
use crate::read::plain::{first_with_words, without_blank_lines};
use crate::read::table::{Header, Table};

/// Reads a text; `name` is the title where it has none. A title that stands in the text is taken out of it, as it counts
/// by itself.
///
/// # Errors
/// [`Refusal::TooLong`].
pub fn read(text: &str, name: &str) -> Result<Parsed, Refusal> {
    let (front, text) = front_matter(text).map_or((None, text), |(front, text)| (Some(front), text));
    let heading = markdown_title(text);
    let (title, body) = match (front.and_then(front_title), heading) {
        // A heading that only says the title again would count twice.
        (Some(title), Some((heading, body))) if title == heading => (title, body),
        (Some(title), _) => (title, text.to_owned()),
        (None, Some((heading, body))) => (heading, body),
        (None, None) => (name.to_owned(), text.to_owned()),
    };
    let metadata = front.map(|front| ("front_matter".to_owned(), Value::from(front)));
    // A heading alone is still worth finding.
    let (text, parts) = parts(&first_with_words([&body, text, &title]))?.finish();
    let metadata = metadata.into_iter().collect::<Map<_, _>>();
    Ok(Parsed { title, text, parts, metadata, media_type: "text/markdown".to_owned() })
}

/// The text between headings and tables as it stands.
fn parts(text: &str) -> Result<Composer, Refusal> {
    let mut composer = Composer::default();
    let mut written = 0;
    let (mut depth, mut heading) = (0_usize, None);
    let mut table: Option<Vec<Vec<String>>> = None;
    let mut words = String::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            // Headings in quotes and lists are no part of the outline.
            Event::Start(Tag::Heading { level, .. }) if depth == 0 => {
                composer.verbatim(text.get(written..range.start).unwrap_or_default())?;
                written = range.start.max(written);
                heading = Some(level);
                words.clear();
                depth += 1;
            }
            Event::Start(Tag::Table(_)) if depth == 0 => {
                composer.verbatim(text.get(written..range.start).unwrap_or_default())?;
                written = range.end.max(written);
                table = Some(Vec::new());
                depth += 1;
            }
            Event::Start(Tag::TableHead | Tag::TableRow) => {
                depth += 1;
                if let Some(rows) = &mut table {
                    rows.push(Vec::new());
                }
            }
            Event::Start(Tag::TableCell) => {
                words.clear();
                depth += 1;
            }
            Event::Start(_) => depth += 1,
            Event::End(end) => {
                depth = depth.saturating_sub(1);
                match end {
                    TagEnd::Heading(_) => {
                        if let Some(level) = heading.take() {
                            composer.under(number(level), &one_line(&words));
                        }
                    }
                    TagEnd::TableCell => {
                        if let Some(row) = table.as_mut().and_then(|rows| rows.last_mut()) {
                            row.push(std::mem::take(&mut words));
                        }
                    }
                    TagEnd::Table => write_table(&mut composer, table.take())?,
                    _ => {}
                }
            }
            Event::Text(text) | Event::Code(text) if heading.is_some() || table.is_some() => words.push_str(&text),
            Event::SoftBreak | Event::HardBreak => words.push(' '),
            _ => {}
        }
    }
    composer.verbatim(text.get(written..).unwrap_or_default())?;
    Ok(composer)
}

fn write_table(composer: &mut Composer, rows: Option<Vec<Vec<String>>>) -> Result<(), Refusal> {
    let Some(rows) = rows else { return Ok(()) };
    match Table::new(rows.clone(), Header::First) {
        Some(table) => composer.table(&table)?,
        None => composer.block(&rows.into_iter().map(|row| row.join(" | ")).collect::<Vec<_>>().join("\n"))?,
    }
    composer.verbatim("\n")
}

fn number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// What stands between a first line `---` and the next line `---` or `...`, and the text after it. A blank line after the
/// first one makes it a rule, as it does elsewhere.
fn front_matter(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" || rest.lines().next()?.trim().is_empty() {
        return None;
    }
    let mut offset = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            let (front, after) = (rest.get(..offset)?, rest.get(offset + line.len()..)?);
            return Some((front.trim_end(), without_blank_lines(after)));
        }
        offset += line.len();
    }
    None
}

/// The value of `title:` where it is on one line, without its quotes.
fn front_title(front: &str) -> Option<String> {
    let value = front.lines().find_map(|line| line.strip_prefix("title:"))?.trim();
    let quoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    let title = quoted.unwrap_or(value).trim();
    let is_title = !title.is_empty() && !title.starts_with(['|', '>']);
    is_title.then(|| title.to_owned())
}

/// The first heading of the highest level outside of code, and the text without its line. Of headings with a line of `=`
/// below them only the one that opens the text counts.
fn markdown_title(text: &str) -> Option<(String, String)> {
    if let Some(underlined) = underlined_title(text) {
        return Some(underlined);
    }
    let (mut offset, mut is_code) = (0, false);
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            is_code = !is_code;
        }
        if let Some(heading) = line.strip_prefix("# ").filter(|_| !is_code) {
            let heading = without_closing(heading.trim());
            if heading.is_empty() {
                return None;
            }
            let (before, after) = (text.get(..offset)?, text.get(offset + line.len()..)?);
            let body = if before.trim().is_empty() {
                without_blank_lines(after).to_owned()
            } else {
                format!("{before}{after}")
            };
            return Some((heading.to_owned(), body));
        }
        offset += line.len();
    }
    None
}

fn underlined_title(text: &str) -> Option<(String, String)> {
    let (first, rest) = without_blank_lines(text).split_once('\n')?;
    let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let line = line.trim();
    let is_heading = !line.is_empty() && line.bytes().all(|byte| byte == b'=') && !first.starts_with('#');
    is_heading.then(|| (first.trim().to_owned(), without_blank_lines(after).to_owned()))
}

/// A heading may be closed by signs that mean nothing: `# Title #`.
fn without_closing(heading: &str) -> &str {
    let open = heading.trim_end_matches('#');
    if open.ends_with(char::is_whitespace) { open.trim_end() } else { heading }
}

#[cfg(test)]
mod tests {
    use hedgerow::PartKind;

    use crate::read::markdown::read;

    fn check(text: &str, title: &str, body: &str) {
        let document = read(text, "notes.v2").unwrap();
        assert_eq!((document.title.as_str(), document.text.as_str()), (title, body), "{text:?}");
    }

    #[test]
    fn the_title_of_markdown_is_its_first_heading_or_the_name_of_the_file() {
        for (text, title, body) in [
            ("# Gate Scheduler\n\nIt plans.\n", "Gate Scheduler", "It plans.\n"),
            ("\n# C# #\r\nText", "C#", "Text"),
            ("Intro\n# Late\nText", "Late", "Intro\nText"),
            ("```sh\n# comment\n```\n# Real\nx", "Real", "```sh\n# comment\n```\nx"),
            ("## Lower\nText", "notes.v2", "## Lower\nText"),
            ("# Alone", "Alone", "# Alone"),
            ("\nGate Scheduler\r\n=====\r\n\r\nIt plans.\n# Part", "Gate Scheduler", "It plans.\n# Part"),
            ("Text\n\nLate\n====\n", "notes.v2", "Text\n\nLate\n====\n"),
        ] {
            check(text, title, body);
        }
    }

    #[test]
    fn front_matter_is_metadata_and_gives_the_title() {
        for (text, title, body) in [
            (
                "---\ntitle: \"The Wall\"\nyear: 1979\n---\n\n# Side one\nIn the flesh",
                "The Wall",
                "# Side one\nIn the flesh",
            ),
            ("---\r\ntitle: 'The Wall'\r\n...\r\n# The Wall\r\nText", "The Wall", "Text"),
            ("---\ntags: [a]\n---\n# Heading\nText", "Heading", "Text"),
            ("---\ntitle: >\n  folded\n---\nText", "notes.v2", "Text"),
            ("---\ntitle: Alone\n---\n", "Alone", "Alone"),
            ("---\n\nA rule.\n\n---\nText", "notes.v2", "---\n\nA rule.\n\n---\nText"),
            ("---\nnever: closed\n", "notes.v2", "---\nnever: closed\n"),
        ] {
            check(text, title, body);
        }
        let text = "---\ntitle: A\nyear: 1979\n---\nText";
        let document = read(text, "a").unwrap();
        assert_eq!(document.metadata["front_matter"], "title: A\nyear: 1979");
    }

    #[test]
    fn parts_stand_under_headings_and_tables_repeat_their_header() {
        let rows: Vec<String> = (1..=12).map(|number| format!("| {number} | *n* `{number}` |")).collect();
        let rows = rows.join("\n");
        let text = format!(
            "# T\n\nIntro\n\n## One\nText\n> # Quoted\n\n| No | Name |\n|---|---|\n{rows}\n\nAfter\n\nTwo\n---\n\n```\n# code\n```\n"
        );
        let document = read(&text, "x").unwrap();
        let parts: Vec<(&str, PartKind, &str)> = document
            .parts
            .iter()
            .map(|part| (part.heading.as_str(), part.kind, &document.text[part.range.clone()]))
            .collect();
        assert_eq!(parts[0], ("", PartKind::Text, "Intro\n\n"));
        assert!(parts[1].2.starts_with("## One\nText\n> # Quoted\n\nTable with 12 rows. Columns: No (1 to 12)"));
        assert!(parts[2].2.starts_with("No | Name\n1 | n 1\n2 | n 2"), "{}", parts[2].2);
        assert_eq!((parts[3].0, parts[3].1, parts[3].2), ("One", PartKind::Table, "No | Name\n11 | n 11\n12 | n 12"));
        assert_eq!(parts[4], ("One", PartKind::Text, "\n\nAfter\n\n"));
        assert_eq!(parts[5], ("Two", PartKind::Text, "Two\n---\n\n```\n# code\n```\n"));
    }
}
