//! Filters: which passages may answer, as an expression such as `kind = "text" and not metadata.year < 2020`.

mod evaluate;
mod parse;

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::query::filter::evaluate::Metadata;

/// What a passage must meet.
///
/// ```text
/// filter    = [ any ]
/// any       = all { "or" all }
/// all       = one { "and" one }
/// one       = "not" one | "(" any ")" | "within" hops "of" text | condition
/// condition = field ( sign value | "~" text | "in" "[" value { "," value } "]" | "exists" )
/// field     = "kind" | "source" | "title" | "key" | "media_type" | "metadata" "." name { "." name }
/// sign      = "=" | "!=" | "<" | "<=" | ">" | ">="
/// value     = text | number | "true" | "false"
/// ```
///
/// Texts and numbers are written as in JSON, a name in letters, digits, `_` and `-`. Fields other than metadata are compared
/// with texts, and `<`, `<=`, `>`, `>=` take no `true` and `false`.
///
/// - Numbers compare exactly, by value: 2020 is 2020.0. Those of JSON that are no integer of 64 bits are `f64`.
/// - Texts compare by their bytes, so that dates as of ISO 8601 are in order.
/// - `~` asks whether the field has the text in it, whatever the case and the marks of letters, as in names of entities:
///   `"Zoë"` has `"zoe"` in it. Numbers have no text in them.
/// - `in` asks whether the field is equal to one of the values.
/// - `exists` asks whether the field is there and neither null nor an empty text.
/// - `within 2 of "entity:Queen"` asks whether the chunk is reached from that node in so many hops, along edges of any kind and
///   direction, the chunks of a document in none; what nodes are called, [`Snapshot::find`](crate::Snapshot::find) says.
/// - A list meets each of these if one of its elements does. Values of different types never meet one, nor does a field that
///   is missing.
/// - `a != x` is `not a = x`: it holds for a field that is missing, has another type, or is a list without x.
///
/// The default lets all pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    rule: Rule,
}

/// A part of an expression.
#[derive(Clone, Debug, PartialEq)]
enum Rule {
    /// None of them is of this kind; there is one alone nowhere, and none only in the filter that lets all pass.
    All(Vec<Rule>),
    /// Two or more, none of them of this kind.
    Any(Vec<Rule>),
    Not(Box<Rule>),
    Within(Neighbourhood),
    Condition(Field, Test),
}

/// What is within so many hops of a node, by its key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbourhood {
    /// Hops at most.
    pub hops: u32,
    /// Key of the node.
    pub of: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Field {
    Text(TextField),
    /// Names that lead into the metadata.
    Metadata(Vec<String>),
}

/// What is asked of a field; values are texts, numbers, true and false.
#[derive(Clone, Debug, PartialEq)]
enum Test {
    Compare(Sign, Value),
    Contains {
        text: String,
        /// The text as it is looked for.
        folded: String,
    },
    In(Vec<Value>),
    Exists,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
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
    /// Whether the passage is there; it is nowhere where there is no graph.
    fn within(&self, _: &Neighbourhood) -> bool {
        false
    }
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
    /// Reads an expression. An empty one lets all pass.
    ///
    /// An expression has at most 65,536 bytes, 1,024 conditions (each value of a list is one), 64 of `not` and `(` inside one
    /// another, and 64 names in a path.
    ///
    /// # Errors
    /// Where something else stands; the error says where, what was expected and what was found.
    pub fn parse(expression: &str) -> Result<Self, FilterError> {
        parse::read(expression).map(|rule| Self { rule })
    }

    /// Whether it asks for metadata, which has to be parsed.
    pub(crate) fn reads_metadata(&self) -> bool {
        self.rule.reads_metadata()
    }

    /// The neighbourhoods that it asks for.
    pub(crate) fn neighbourhoods(&self) -> Vec<&Neighbourhood> {
        let mut found = Vec::new();
        self.rule.list_neighbourhoods(&mut found);
        found
    }

    /// Whether a passage meets it. Metadata is asked for only where the other fields leave it open.
    #[must_use]
    pub fn matches(&self, fields: &dyn Fields) -> bool {
        self.rule.holds(fields, Metadata::Unread).unwrap_or_else(|| {
            let metadata = fields.metadata();
            self.rule.holds(fields, Metadata::Read(metadata.as_deref())) == Some(true)
        })
    }
}

impl Default for Filter {
    fn default() -> Self {
        Self { rule: Rule::All(Vec::new()) }
    }
}

/// An expression that reads back as the same filter, unless it got too long: texts are escaped, and spaces set.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(rules) => joined(f, rules, " and ", |rule| matches!(rule, Self::Any(_))),
            Self::Any(rules) => joined(f, rules, " or ", |_| false),
            Self::Not(rule) => {
                f.write_str("not ")?;
                enclosed(f, rule, matches!(**rule, Self::All(_) | Self::Any(_)))
            }
            Self::Within(Neighbourhood { hops, of }) => write!(f, "within {hops} of {}", Value::from(of.as_str())),
            Self::Condition(field, test) => write!(f, "{field} {test}"),
        }
    }
}

fn joined(f: &mut fmt::Formatter<'_>, rules: &[Rule], word: &str, is_looser: fn(&Rule) -> bool) -> fmt::Result {
    for (position, rule) in rules.iter().enumerate() {
        f.write_str(if position == 0 { "" } else { word })?;
        enclosed(f, rule, is_looser(rule))?;
    }
    Ok(())
}

fn enclosed(f: &mut fmt::Formatter<'_>, rule: &Rule, is_looser: bool) -> fmt::Result {
    if is_looser { write!(f, "({rule})") } else { write!(f, "{rule}") }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(field) => f.write_str(field.name()),
            Self::Metadata(path) => write!(f, "metadata.{}", path.join(".")),
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare(sign, value) => write!(f, "{} {value}", sign.written()),
            Self::Contains { text, .. } => write!(f, "~ {}", Value::from(text.as_str())),
            Self::In(values) => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                write!(f, "in [{}]", values.join(", "))
            }
            Self::Exists => f.write_str("exists"),
        }
    }
}

impl Sign {
    /// Those first that begin with another.
    const ALL: [Self; 6] =
        [Self::LessOrEqual, Self::GreaterOrEqual, Self::Less, Self::Greater, Self::Unequal, Self::Equal];

    fn written(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
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
