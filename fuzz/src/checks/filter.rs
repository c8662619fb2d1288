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

/// Reading answers with a filter or with a place inside the expression; matching answers the same twice.
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
            assert_eq!(filter.matches(&passage), filter.matches(&passage));
            // Conditions are joined by `and`: twice the same lets the same pass.
            let empty = expression.trim().is_empty();
            let twice = if empty { expression.to_owned() } else { format!("{expression} and {expression}") };
            let again = Filter::parse(&twice).expect("two filters joined by `and` are one");
            assert_eq!(again.matches(&passage), filter.matches(&passage), "{expression:?} against {metadata}");
        }
    }
}

/// Expressions with every kind of field and value.
pub fn seeds() -> Vec<Vec<u8>> {
    let expressions = [
        "kind = \"text\" and metadata.year = 2020\n{\"year\": 2020.0}",
        "metadata.by.first-name = \"Zo\\u00eb\" and title = \"text\"\n{\"by\": {\"first-name\": \"Zoë\"}}",
        "metadata.a=1e3 and metadata.b = -0.0 and metadata.c = true\n{\"a\": 1000, \"b\": 0, \"c\": true}",
        "source = \"x\" and key = \"text\" and media_type = \"\"",
        "colour = 1",
    ];
    expressions.iter().map(|text| text.as_bytes().to_vec()).collect()
}
