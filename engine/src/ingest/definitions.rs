//! What a chunk defines beside the title of its document: headings, glossary terms, symbols of code, names of manual pages.

use hedgerow_format::{limits, name};

/// Names that one chunk may define at most; a chunk with more is an index, not a definition.
const NAMES_MAX: usize = 16;
const NAME_WORDS_MAX: usize = 6;
const NAME_CHARACTERS_MAX: usize = 60;
/// Words that a definition has at least.
const DEFINITION_WORDS_MIN: usize = 3;

/// Headings and labels that say what follows them is, not what it is about.
const GENERIC: &[&str] = &[
    "abstract",
    "acknowledgements",
    "answer",
    "appendix",
    "arguments",
    "author",
    "authors",
    "background",
    "bugs",
    "caution",
    "conclusion",
    "conclusions",
    "contents",
    "copyright",
    "date",
    "definition",
    "description",
    "discussion",
    "environment",
    "example",
    "examples",
    "exit status",
    "faq",
    "files",
    "from",
    "further reading",
    "glossary",
    "history",
    "hint",
    "important",
    "index",
    "installation",
    "introduction",
    "license",
    "main",
    "method",
    "methods",
    "name",
    "note",
    "notes",
    "options",
    "overview",
    "parameters",
    "preface",
    "question",
    "readme",
    "reference",
    "references",
    "related work",
    "remarks",
    "result",
    "results",
    "return value",
    "returns",
    "see",
    "see also",
    "subject",
    "summary",
    "syntax",
    "synopsis",
    "tip",
    "to",
    "todo",
    "usage",
    "warning",
];

/// Words before the name of what a line of code defines.
const KEYWORDS: &[&str] = &[
    "class",
    "def",
    "enum",
    "fn",
    "func",
    "function",
    "interface",
    "macro",
    "macro_rules!",
    "module",
    "struct",
    "sub",
    "trait",
    "type",
    "typedef",
    "union",
    "#define",
];
/// Words that may stand before those.
const QUALIFIERS: &[&str] = &[
    "abstract",
    "async",
    "const",
    "data",
    "default",
    "export",
    "extern",
    "final",
    "inline",
    "internal",
    "override",
    "private",
    "protected",
    "pub",
    "pub(crate)",
    "public",
    "sealed",
    "static",
    "unsafe",
    "virtual",
];

/// A chunk, as far as it matters to what it defines.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place<'d> {
    /// Key of its document.
    pub key: &'d str,
    /// Title of its document; may be empty.
    pub title: &'d str,
    /// Headings that it stands under, joined by ` > `.
    pub heading: &'d str,
    /// Those of the chunk before it in its document; none where it is the first.
    pub heading_before: Option<&'d str>,
    /// Its text.
    pub text: &'d str,
}

/// Calls `emit` with every name that a chunk defines, as it stands there. At most [`NAMES_MAX`] from the text: where there
/// are more, none.
pub(super) fn for_each(place: Place<'_>, mut emit: impl FnMut(&str)) {
    if place.heading_before.is_none() {
        // A title is spelt better than the name of a file.
        let title = name::name_key_text(name::title_name(place.title));
        let stem = file_stem(place.key).filter(|stem| is_name(stem) && name::name_key_text(stem) != title);
        stem.into_iter().for_each(&mut emit);
    }
    if place.heading_before != Some(place.heading) {
        let last = place.heading.rsplit(" > ").next().map(unnumbered);
        last.filter(|heading| is_name(heading)).into_iter().for_each(&mut emit);
    }
    let mut names = Vec::new();
    let mut is_name_section = false;
    for line in place.text.lines() {
        let line = line.trim();
        if is_name_section && let Some((listed, _)) = split_at_dash(line) {
            names.extend(listed.split(',').map(str::trim).filter(|name| is_name(name)));
        }
        is_name_section = line == "NAME" || (is_name_section && line.is_empty());
        names.extend(symbol(line).or_else(|| term(line)));
        if names.len() > NAMES_MAX {
            return;
        }
    }
    names.into_iter().for_each(emit);
}

/// The name of a file without its ending, where the key of a document is one.
fn file_stem(key: &str) -> Option<&str> {
    let (stem, ending) = key.rsplit('/').next()?.rsplit_once('.')?;
    let is_ending = (1..=8).contains(&ending.len()) && ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_stem = stem.chars().filter(|letter| letter.is_alphabetic()).count() > 2;
    (is_ending && is_stem).then_some(stem)
}

/// A heading without its number and what tools put behind it.
fn unnumbered(heading: &str) -> &str {
    let heading = heading.trim().trim_end_matches(['¶', '#', ':']).trim_end();
    let rest = heading.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    if rest.len() < heading.len() && rest.starts_with(char::is_whitespace) { rest.trim_start() } else { heading }
}

/// `term: what it is`, where the term is marked or the line is an entry of a list.
fn term(line: &str) -> Option<&str> {
    let entry = line.strip_prefix(['-', '*', '•', '+']).filter(|rest| rest.starts_with(' ')).map(str::trim_start);
    let open = entry.unwrap_or(line);
    let marked = ["**", "__", "`", "*"].iter().find_map(|mark| {
        let (name, rest) = open.strip_prefix(mark)?.split_once(mark)?;
        Some((name, rest.trim_start().strip_prefix(':').or_else(|| split_dash(rest.trim_start()))?))
    });
    let plain = || {
        let (name, rest) = open.split_once(": ").or_else(|| split_at_dash(open))?;
        entry.is_some().then_some((name, rest))
    };
    let (name, definition) = marked.or_else(plain)?;
    let name = name.trim().trim_end_matches(':');
    let is_term = is_name(name) && (!name.contains(':') || name.contains("::"));
    (is_term && definition.split_whitespace().nth(DEFINITION_WORDS_MIN - 1).is_some()).then_some(name)
}

/// What stands before and behind the first dash between spaces.
fn split_at_dash(line: &str) -> Option<(&str, &str)> {
    [" — ", " – ", " -- ", " \\- ", " - "].iter().find_map(|dash| line.split_once(dash))
}

fn split_dash(rest: &str) -> Option<&str> {
    ["— ", "– ", "-- ", "- "].iter().find_map(|dash| rest.strip_prefix(dash))
}

/// The name of what a line of code defines.
fn symbol(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| QUALIFIERS.contains(word));
    if !KEYWORDS.contains(&words.next()?) {
        return None;
    }
    let word = words.next()?;
    let end = word
        .find(|letter: char| !(letter.is_alphanumeric() || matches!(letter, '_' | ':' | '$')))
        .unwrap_or(word.len());
    let name = word[..end].trim_end_matches(':');
    // Prose goes on with words where code has a sign, or nothing.
    let rest = &word[name.len()..];
    let next = words.next();
    let is_code =
        !rest.is_empty() || next.is_none_or(|next| !next.starts_with(char::is_alphabetic)) || line.starts_with('#');
    (is_code && name.chars().count() > 2 && is_name(name)).then_some(name)
}

fn is_name(name: &str) -> bool {
    let fits = name.len() <= limits::NAME_BYTES && name.chars().count() <= NAME_CHARACTERS_MAX;
    let starts = name.chars().next().is_some_and(|first| first.is_alphanumeric() || matches!(first, '_' | '$'));
    fits && starts
        && name.split_whitespace().count() <= NAME_WORDS_MAX
        && !GENERIC.contains(&name.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(place: Place<'_>, expected: &[&str]) {
        let mut found = Vec::new();
        for_each(place, |name| found.push(name.to_owned()));
        assert_eq!(found, expected, "{place:?}");
    }

    fn check_text(text: &str, expected: &[&str]) {
        check(Place { text, heading_before: Some(""), ..Place::default() }, expected);
    }

    #[test]
    fn a_heading_is_defined_by_the_first_chunk_below_it() {
        let place = Place { heading: "Manual > 4.2. Gate Scheduler", text: "It plans.", ..Place::default() };
        check(Place { key: "docs/gate-scheduler.md", ..place }, &["gate-scheduler", "Gate Scheduler"]);
        check(Place { key: "gate-scheduler.md", title: "Gate Scheduler (2020)", heading: "", ..place }, &[]);
        check(Place { heading_before: Some("Manual"), ..place }, &["Gate Scheduler"]);
        check(Place { heading_before: Some(place.heading), ..place }, &[]);
        check(Place { heading: "Manual > Examples", ..place }, &[]);
        check(Place { heading: "", key: "rust-134354", ..place }, &[]);
        check(Place { heading: "", key: "a/README.md", ..place }, &[]);
    }

    #[test]
    fn marked_terms_and_entries_of_lists_are_defined() {
        check_text("**Slot**: a place at a gate\n`crew_desk` — the desk of the crew", &["Slot", "crew_desk"]);
        check_text(
            "- Ramp Control: the desk that parks aircraft\n* Stand - where an aircraft waits",
            &["Ramp Control", "Stand"],
        );
        check_text("Ramp Control: the desk that parks aircraft", &[]);
        check_text("- Note: this is no term at all\n- Slot: free\n- It is 10:30: we go now", &[]);
    }

    #[test]
    fn symbols_of_code_and_names_of_manual_pages_are_defined() {
        check_text(
            "pub(crate) fn merge_all(a: u8) {\n}\nclass Point:\n  def move_to(self):",
            &["merge_all", "Point", "move_to"],
        );
        check_text(
            "#define PAGE_SIZE 4096\nstruct inode {\nexport default function App() {",
            &["PAGE_SIZE", "inode", "App"],
        );
        check_text("class of things that type people like", &[]);
        check_text("NAME\n\n     fork, vfork - create a new process\n\nSYNOPSIS", &["fork", "vfork"]);
        check_text(&"fn name() {\n".repeat(NAMES_MAX + 1), &[]);
    }
}
