//! Filter expressions of any text, matched against any metadata.

use hedgerow::{Fields, Filter, TextField};
use serde_json::Value;
use std::borrow::Cow;

struct Passage<'a> {
    text: &'a str,
    metadata: Value,
}

impl Fields for Passage<'_> {
    fn text(&self, field: TextField) -> Option<Cow<'_, str>> {
        (field != TextField::Source).then_some(Cow::Borrowed(self.text))
    }

    fn metadata(&self) -> Option<Cow<'_, Value>> {
        self.metadata.is_object().then_some(Cow::Borrowed(&self.metadata))
    }
}

/// Reading answers with a filter or with a place inside the expression; what is composed of a filter answers by what it answers.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (expression, metadata) = text.split_once('\n').unwrap_or((&text, "{\"a\": 1}"));
    let passage = Passage { text: "text", metadata: serde_json::from_str(metadata).unwrap_or_default() };
    match Filter::parse(expression) {
        Err(error) => {
            assert!(expression.is_char_boundary(error.position), "{error} is a place of {expression:?}");
            assert!(error.found == "the end" || error.found.len() > 2, "{error} says what stands there");
        }
        Ok(filter) => {
            let printed = filter.to_string();
            // What is printed is longer than what was read at most by its escapes and spaces, and may pass the limit.
            if printed.len() < 1 << 16 {
                let again = Filter::parse(&printed).unwrap_or_else(|error| panic!("{printed:?}: {error}"));
                assert_eq!(again, filter, "a filter reads back from {printed:?}");
            }
            composed(&printed, &passage, filter.matches(&passage));
        }
    }
}

/// What is made of a filter and itself lets the same pass, and its opposite the rest.
fn composed(printed: &str, passage: &Passage<'_>, matches: bool) {
    if printed.is_empty() {
        assert!(matches, "the empty filter lets all pass");
        return;
    }
    for (whole, expected) in [
        (format!("({printed}) and ({printed})"), matches),
        (format!("{printed} or ({printed})"), matches),
        (format!("not ({printed})"), !matches),
        (format!("({printed}) and not key != \"text\""), matches),
        (format!("source exists or ({printed})"), matches),
        (format!("({printed}) and source exists"), false),
    ] {
        match Filter::parse(&whole) {
            Ok(filter) => assert_eq!(filter.matches(passage), expected, "{whole:?} against {}", passage.metadata),
            Err(error) => assert!(error.expected.starts_with("at most"), "{whole:?}: {error}"),
        }
    }
}

/// Expressions with every kind of field, condition and value.
pub fn seeds() -> Vec<Vec<u8>> {
    let expressions = [
        "kind = \"text\" and metadata.year = 2020\n{\"year\": 2020.0}",
        "metadata.by.first-name = \"Zo\\u00eb\" and title = \"text\"\n{\"by\": {\"first-name\": \"Zoë\"}}",
        "metadata.a=1e3 and metadata.b = -0.0 and metadata.c = true\n{\"a\": 1000, \"b\": 0, \"c\": true}",
        "source = \"x\" and key = \"text\" and media_type = \"\"",
        "colour = 1",
        "not (kind != \"text\" or metadata.a < 3) and title >= \"t\"\n{\"a\": [1, 2.5, 9007199254740993]}",
        "metadata.a ~ \"ZOE\" or metadata.a in [\"x\", -1, false] or metadata.b exists\n{\"a\": [\"Zoë\", null, [1]], \"b\": \"\"}",
        "not not ((key <= \"u\" and source > \"\") or not metadata.a.b exists)\n{\"a\": {\"b\": null}}",
        "within 2 of \"entity:Queen\" or not within 0 of \"doc:text\"",
    ];
    expressions.iter().map(|text| text.as_bytes().to_vec()).collect()
}
