//! Filters: which passages may answer, as an expression such as `kind = "text" and metadata.year = 2020`.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Number, Value};

/// Conditions that a passage must all meet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    texts: Vec<(TextField, String)>,
    metadata: Vec<(Vec<String>, Value)>,
}

/// The fields of a passage that are text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextField {
    /// `kind`: the kind of the chunk, such as `text`.
    Kind,
    /// `source`: where the document comes from.
    Source,
    /// `title`: the document's title.
    Title,
    /// `key`: the document's key.
    Key,
    /// `media_type`: the document's media type.
    MediaType,
}

/// What a filter asks a passage; implement it to use a [`Filter`] on what is not in a store.
pub trait Fields {
    /// The value of a field, if the passage has it.
    fn text(&self, field: TextField) -> Option<Cow<'_, str>>;
    /// The passage's metadata, an object; asked at most once a match, and only where a condition needs it.
    fn metadata(&self) -> Option<Cow<'_, Value>>;
}

/// An expression that is no filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the filter is wrong at byte {position}: expected {expected}, found {found}")]
pub struct FilterError {
    /// Byte of the expression.
    pub position: usize,
    /// What may stand there.
    pub expected: &'static str,
    /// What stands there.
    pub found: String,
}

impl Filter {
    /// Reads an expression: `FIELD = VALUE`, any number of them joined by `and`.
    ///
    /// A field is `kind`, `source`, `title`, `key`, `media_type` or `metadata.` and a path of names joined by dots; a
    /// value is a JSON string or, for metadata, also a number, `true` or `false`. An empty expression lets all pass. An
    /// expression has at most 65,536 bytes, 1,024 conditions, and 64 names in a path.
    ///
    /// # Errors
    /// Where something else stands; the error says where, what was expected and what was found.
    pub fn parse(expression: &str) -> Result<Self, FilterError> {
        let mut parser = Parser { expression, position: 0 };
        if expression.len() > BYTES_MAX {
            let found = format!("{} bytes", expression.len());
            let position = expression.floor_char_boundary(BYTES_MAX);
            return Err(FilterError { position, expected: "at most 65,536 bytes", found });
        }
        let mut filter = Self::default();
        parser.skip_space();
        while !parser.rest().is_empty() {
            if filter.texts.len() + filter.metadata.len() == CONDITIONS_MAX {
                return Err(parser.error("at most 1,024 conditions"));
            }
            parser.condition(&mut filter)?;
            if parser.rest().is_empty() {
                break;
            }
            parser.expect("and", "`and` or the end")?;
            if parser.rest().is_empty() {
                return Err(parser.error(FIELD));
            }
        }
        Ok(filter)
    }

    /// Whether it asks for metadata, which has to be parsed.
    pub(crate) fn reads_metadata(&self) -> bool {
        !self.metadata.is_empty()
    }

    /// Whether a passage meets every condition; numbers compare by value, so that 2020 is 2020.0.
    #[must_use]
    pub fn matches(&self, fields: &dyn Fields) -> bool {
        let texts = self.texts.iter().all(|(field, value)| fields.text(*field).is_some_and(|text| text == *value));
        if !texts || self.metadata.is_empty() {
            return texts;
        }
        let Some(metadata) = fields.metadata() else {
            return false;
        };
        self.metadata.iter().all(|(path, value)| {
            let found = path.iter().try_fold(&*metadata, |inside, name| inside.get(name));
            found.is_some_and(|found| equal(found, value))
        })
    }
}

/// An expression that reads back as the same filter.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.texts.iter().map(|(field, text)| format!("{} = {}", field.name(), Value::from(text.as_str())));
        let metadata = self.metadata.iter().map(|(path, value)| format!("metadata.{} = {value}", path.join(".")));
        f.write_str(&texts.chain(metadata).collect::<Vec<_>>().join(" and "))
    }
}

impl TextField {
    const ALL: [Self; 5] = [Self::Kind, Self::Source, Self::Title, Self::Key, Self::MediaType];

    fn name(self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Source => "source",
            Self::Title => "title",
            Self::Key => "key",
            Self::MediaType => "media_type",
        }
    }
}

const BYTES_MAX: usize = 1 << 16;
const CONDITIONS_MAX: usize = 1 << 10;
const PATH_MAX: usize = 64;
/// Characters of a wrong word that an error shows.
const SHOWN_MAX: usize = 40;
const FIELD: &str = "a field (kind, source, title, key, media_type, metadata.NAME)";
const TEXT: &str = "a text in double quotes";

struct Parser<'e> {
    expression: &'e str,
    position: usize,
}

impl<'e> Parser<'e> {
    fn rest(&self) -> &'e str {
        &self.expression[self.position..]
    }

    fn skip_space(&mut self) {
        self.position = self.expression.len() - self.rest().trim_start().len();
    }

    fn error(&self, expected: &'static str) -> FilterError {
        let found = match Token::of(self.rest()) {
            Some(token) => token.to_string(),
            None => "the end".to_owned(),
        };
        FilterError { position: self.position, expected, found }
    }

    /// Takes a word or a sign that must stand here, and the white space after it.
    fn expect(&mut self, token: &str, expected: &'static str) -> Result<(), FilterError> {
        if Token::of(self.rest()).is_none_or(|found| found.0 != token) {
            return Err(self.error(expected));
        }
        self.position += token.len();
        self.skip_space();
        Ok(())
    }

    fn condition(&mut self, filter: &mut Filter) -> Result<(), FilterError> {
        let name = Token::of(self.rest()).map_or("", |token| token.0);
        let field = TextField::ALL.into_iter().find(|field| field.name() == name);
        if field.is_none() && name != "metadata" {
            return Err(self.error(FIELD));
        }
        self.position += name.len();
        let path = if field.is_none() { self.path()? } else { Vec::new() };
        self.skip_space();
        self.expect("=", "`=`")?;
        let start = self.position;
        let value =
            self.value(if field.is_some() { TEXT } else { "a text in double quotes, a number, true or false" })?;
        match (field, value) {
            (None, value) => filter.metadata.push((path, value)),
            (Some(field), Value::String(text)) => filter.texts.push((field, text)),
            (Some(_), _) => {
                self.position = start;
                return Err(self.error(TEXT));
            }
        }
        Ok(())
    }

    /// The names after `metadata`, each after a dot.
    fn path(&mut self) -> Result<Vec<String>, FilterError> {
        let mut path = Vec::new();
        while path.is_empty() || self.rest().starts_with('.') {
            if !self.rest().starts_with('.') {
                return Err(self.error("a dot and a name"));
            }
            if path.len() == PATH_MAX {
                return Err(self.error("at most 64 names in a path"));
            }
            self.position += 1;
            let name = Token::of(self.rest()).filter(Token::is_name).ok_or_else(|| self.error("a name"))?;
            self.position += name.0.len();
            path.push(name.0.to_owned());
        }
        Ok(path)
    }

    fn value(&mut self, expected: &'static str) -> Result<Value, FilterError> {
        let mut values = serde_json::Deserializer::from_str(self.rest()).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) if !matches!(value, Value::Null | Value::Array(_) | Value::Object(_)) => {
                self.position += values.byte_offset();
                self.skip_space();
                Ok(value)
            }
            _ => Err(self.error(expected)),
        }
    }
}

/// A name (letters, digits, `_` and `-`) or one other character, as errors show it.
struct Token<'e>(&'e str);

impl<'e> Token<'e> {
    fn of(text: &'e str) -> Option<Self> {
        let first = text.chars().next()?;
        let name = text.find(|letter| !in_name(letter)).unwrap_or(text.len());
        Some(Self(&text[..name.max(if in_name(first) { 0 } else { first.len_utf8() })]))
    }

    fn is_name(&self) -> bool {
        self.0.starts_with(in_name)
    }
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN_MAX) {
            Some((end, _)) => write!(f, "`{}…`", &self.0[..end]),
            None => write!(f, "`{}`", self.0),
        }
    }
}

fn in_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '-'
}

fn equal(found: &Value, value: &Value) -> bool {
    match (found, value) {
        (Value::Number(found), Value::Number(value)) => match (integer(found), integer(value)) {
            (Some(found), Some(value)) => found == value,
            _ => found.as_f64() == value.as_f64(),
        },
        _ => found == value,
    }
}

/// A number without a fraction, if it is below 2⁹⁶: more than any integer of JSON that is kept exactly.
#[expect(clippy::cast_possible_truncation, reason = "whole and in range, as was just asked")]
fn integer(number: &Number) -> Option<i128> {
    let exact = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let whole = || number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 2f64.powi(96));
    exact.or_else(|| whole().map(|value| value as i128))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Passage(Value);

    impl Fields for Passage {
        fn text(&self, field: TextField) -> Option<Cow<'_, str>> {
            (field == TextField::Kind).then_some(Cow::Borrowed("text"))
        }

        fn metadata(&self) -> Option<Cow<'_, Value>> {
            Some(Cow::Borrowed(&self.0))
        }
    }

    #[test]
    fn passages_meet_all_conditions_or_do_not_match() {
        let passage = Passage(
            json!({"year": 2020, "big": 9_007_199_254_740_993_u64, "draft": false, "by": {"first-name": "Zoë", "n": 1.5}}),
        );
        for (expression, expected) in [
            ("", true),
            (r#"kind = "text" and metadata.year = 2020"#, true),
            ("metadata.year=2020.0", true),
            ("metadata.year = 2.02e3 and metadata.draft = false", true),
            ("metadata.big = 9007199254740993", true),
            ("metadata.big = 9007199254740992.0", false),
            (r#"metadata.by.first-name = "Zo\u00eb""#, true),
            ("metadata.by.n = 1.5", true),
            (r#"metadata.year = "2020""#, false),
            ("metadata.month = 1", false),
            ("metadata.by.n.x = 1", false),
            (r#"kind = "table""#, false),
            (r#"source = "x""#, false),
        ] {
            assert_eq!(Filter::parse(expression).unwrap().matches(&passage), expected, "{expression}");
        }
    }

    #[test]
    fn an_expression_that_is_too_long_is_refused_where_it_becomes_so() {
        let deep = |names: usize| format!("metadata{} = 1", ".a".repeat(names));
        let wide = |conditions: usize| vec!["key = \"k\""; conditions].join(" and ");
        let long = |bytes: usize| format!("key = \"{}\"", "é".repeat((bytes - 8) / 2));
        for expression in [deep(64), wide(1024), long(65_536)] {
            Filter::parse(&expression).unwrap();
        }
        for (expression, position, expected, found) in [
            (deep(65), 136, "at most 64 names", "`.`"),
            (wide(1025), 1024 * 14, "at most 1,024 conditions", "`key`"),
            (long(65_538), 65_535, "at most 65,536 bytes", "65538 bytes"),
            (format!("metadata.a = {}1", "[".repeat(60_000)), 13, "a text in double quotes", "`[`"),
            ("x".repeat(60_000), 0, "a field", &format!("`{}…`", "x".repeat(40))),
        ] {
            let error = Filter::parse(&expression).unwrap_err();
            assert_eq!((error.position, error.found.as_str()), (position, found));
            assert!(error.expected.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn errors_say_where_what_was_expected_and_what_was_found() {
        for (expression, position, expected, found) in [
            ("colour = 1", 0, "a field", "`colour`"),
            ("kind \"x\"", 5, "`=`", "`\"`"),
            ("kind = text", 7, "a text", "`text`"),
            ("kind = 3", 7, "a text", "`3`"),
            ("kind = \"x", 7, "a text", "`\"`"),
            ("kind = \"x\" or", 11, "`and`", "`or`"),
            ("kind = \"x\" and ", 15, "a field", "the end"),
            ("metadata = 1", 8, "a dot", "` `"),
            ("metadata. = 1", 9, "a name", "` `"),
            ("metadata.é = null", 14, "a text in double quotes, a number", "`null`"),
            ("metadata.a = 1.", 13, "a text in double quotes, a number", "`1`"),
            ("metadata.a =", 12, "a text in double quotes, a number", "the end"),
            ("=", 0, "a field", "`=`"),
        ] {
            let error = Filter::parse(expression).unwrap_err();
            assert_eq!((error.position, error.found.as_str()), (position, found), "{expression}");
            assert!(error.expected.starts_with(expected), "{expression}: {error}");
        }
    }
}
