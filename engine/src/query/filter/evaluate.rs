//! Says whether a passage meets a filter.

use std::cmp::Ordering;

use hedgerow_format::name::fold;
use serde_json::{Number, Value};

use crate::query::filter::{Field, Fields, Neighbourhood, Rule, Sign, Test};

/// The metadata of a passage, as far as it is known.
#[derive(Clone, Copy)]
pub(super) enum Metadata<'m> {
    Unread,
    /// Read; none where there is none.
    Read(Option<&'m Value>),
}

impl Rule {
    /// Whether it holds; none where that hangs on metadata that is unread.
    pub(super) fn holds(&self, fields: &dyn Fields, metadata: Metadata<'_>) -> Option<bool> {
        match self {
            Self::All(rules) => decided(rules, false, fields, metadata),
            Self::Any(rules) => decided(rules, true, fields, metadata),
            Self::Not(rule) => rule.holds(fields, metadata).map(|holds| !holds),
            Self::Within(neighbourhood) => Some(fields.within(neighbourhood)),
            Self::Condition(Field::Text(field), test) => {
                let text = fields.text(*field);
                Some(test.holds(text.iter().map(|text| Scalar::Text(text))))
            }
            Self::Condition(Field::Metadata(path), test) => match metadata {
                Metadata::Unread => None,
                Metadata::Read(metadata) => {
                    let found =
                        metadata.and_then(|fields| path.iter().try_fold(fields, |inside, name| inside.get(name)));
                    Some(match found {
                        Some(Value::Array(elements)) => test.holds(elements.iter().map(Scalar::of)),
                        found => test.holds(found.into_iter().map(Scalar::of)),
                    })
                }
            },
        }
    }

    /// Whether a condition is about metadata.
    pub(super) fn reads_metadata(&self) -> bool {
        match self {
            Self::All(rules) | Self::Any(rules) => rules.iter().any(Self::reads_metadata),
            Self::Not(rule) => rule.reads_metadata(),
            Self::Within(_) => false,
            Self::Condition(field, _) => matches!(field, Field::Metadata(_)),
        }
    }

    /// Lists what is asked for by [`Rule::Within`].
    pub(super) fn list_neighbourhoods<'r>(&'r self, found: &mut Vec<&'r Neighbourhood>) {
        match self {
            Self::All(rules) | Self::Any(rules) => rules.iter().for_each(|rule| rule.list_neighbourhoods(found)),
            Self::Not(rule) => rule.list_neighbourhoods(found),
            Self::Within(neighbourhood) => found.push(neighbourhood),
            Self::Condition(..) => {}
        }
    }
}

/// What the first rule decides that gives this answer; the opposite where none does, and none where one may.
fn decided(rules: &[Rule], answer: bool, fields: &dyn Fields, metadata: Metadata<'_>) -> Option<bool> {
    let mut is_open = false;
    for rule in rules {
        match rule.holds(fields, metadata) {
            Some(holds) if holds == answer => return Some(answer),
            Some(_) => {}
            None => is_open = true,
        }
    }
    (!is_open).then_some(!answer)
}

impl Test {
    /// Whether a field has a text in it.
    pub(super) fn contains(text: &str) -> Self {
        Self::Contains { text: text.to_owned(), folded: folded(text) }
    }

    /// Whether a field with these values meets it: the elements of a list, one value, or none.
    fn holds<'v>(&self, mut values: impl Iterator<Item = Scalar<'v>>) -> bool {
        match self {
            Self::Compare(Sign::Unequal, value) => !values.any(|found| found.equals(value)),
            Self::Compare(sign, value) => {
                values.any(|found| found.compare(Scalar::of(value)).is_some_and(|order| sign.allows(order)))
            }
            Self::Contains { folded: part, .. } => {
                values.any(|found| matches!(found, Scalar::Text(text) if contains(text, part)))
            }
            Self::In(choices) => values.any(|found| choices.iter().any(|choice| found.equals(choice))),
            Self::Exists => values.any(|found| !matches!(found, Scalar::Null | Scalar::Text(""))),
        }
    }
}

impl Sign {
    fn allows(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Unequal => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// A value without others in it.
#[derive(Clone, Copy)]
enum Scalar<'v> {
    Null,
    Text(&'v str),
    Number(&'v Number),
    Bool(bool),
    /// A list in a list, or an object: they are there, and that is all that can be asked of them.
    Nested,
}

impl<'v> Scalar<'v> {
    fn of(value: &'v Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::String(text) => Self::Text(text),
            Value::Number(number) => Self::Number(number),
            Value::Bool(value) => Self::Bool(*value),
            Value::Array(_) | Value::Object(_) => Self::Nested,
        }
    }

    fn equals(self, value: &Value) -> bool {
        self.compare(Scalar::of(value)).is_some_and(Ordering::is_eq)
    }

    /// How two values of one type are in order.
    fn compare(self, other: Scalar<'_>) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(one), Scalar::Text(other)) => Some(one.cmp(other)),
            (Self::Number(one), Scalar::Number(other)) => numbers(one, other),
            (Self::Bool(one), Scalar::Bool(other)) => Some(one.cmp(&other)),
            _ => None,
        }
    }
}

/// Exact: a number that is no [`integer`] is either so small that integers near it are exact as `f64`, or larger than all.
fn numbers(one: &Number, other: &Number) -> Option<Ordering> {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// A number without a fraction, if it is below 2⁹⁶: more than any integer of JSON that is kept exactly.
#[expect(clippy::cast_possible_truncation, reason = "whole and in range, as was just asked")]
fn integer(number: &Number) -> Option<i128> {
    let exact = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    let whole = || number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 2f64.powi(96));
    exact.or_else(|| whole().map(|value| value as i128))
}

/// Bytes of a text that are folded at once, so that looking into a long one takes little memory.
const PIECE_BYTES: usize = 1 << 16;

/// Whether a text has another in it that is folded.
fn contains(text: &str, part: &str) -> bool {
    let (mut seen, mut rest) = (String::new(), text);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        seen.push_str(&folded(piece));
        if seen.contains(part) {
            return true;
        }
        seen.drain(..seen.floor_char_boundary(seen.len().saturating_sub(part.len())));
        rest = after;
    }
    part.is_empty()
}

/// Text as names of entities are compared, signs and spaces kept: in lower case, without marks.
fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    fold(text).chars().flat_map(char::to_lowercase).map(|letter| if letter == 'ς' { 'σ' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::cell::Cell;

    use serde_json::{Value, json};

    use crate::query::filter::evaluate::{PIECE_BYTES, contains};
    use crate::query::filter::{Fields, Filter, TextField};

    struct Passage {
        metadata: Value,
        /// How often metadata was asked for.
        asked: Cell<usize>,
    }

    impl Passage {
        fn new(metadata: Value) -> Self {
            Self { metadata, asked: Cell::new(0) }
        }
    }

    impl Fields for Passage {
        fn text(&self, field: TextField) -> Option<Cow<'_, str>> {
            match field {
                TextField::Kind => Some(Cow::Borrowed("text")),
                TextField::Title => Some(Cow::Borrowed("Der Fluß, ΟΔΟΣ und Śrī")),
                TextField::MediaType => Some(Cow::Borrowed("")),
                _ => None,
            }
        }

        fn metadata(&self) -> Option<Cow<'_, Value>> {
            self.asked.set(self.asked.get() + 1);
            Some(Cow::Borrowed(&self.metadata))
        }
    }

    /// Expressions that hold, and such that do not.
    fn check(metadata: Value, holding: &[&str], failing: &[&str]) {
        let passage = Passage::new(metadata);
        for (expressions, expected) in [(holding, true), (failing, false)] {
            for expression in expressions {
                assert_eq!(Filter::parse(expression).unwrap().matches(&passage), expected, "{expression}");
                let opposite = Filter::parse(&format!("not ({expression})"));
                assert!(expression.is_empty() || opposite.unwrap().matches(&passage) != expected, "not {expression}");
            }
        }
    }

    #[test]
    fn numbers_compare_exactly_by_value() {
        check(
            json!({"year": 2020, "big": 9_007_199_254_740_993_u64, "least": i64::MIN, "half": 1.5, "huge": 1e300, "zero": -0.0}),
            &[
                "metadata.year=2020.0",
                "metadata.year = 2.02e3",
                "metadata.year < 2021 and metadata.year >= 2020 and metadata.year <= 2020 and metadata.year > 2019.5",
                "metadata.big = 9007199254740993",
                "metadata.big > 9007199254740992.0",
                "metadata.big < 9007199254740994",
                "metadata.least = -9223372036854775808",
                "metadata.least > -1e300",
                "metadata.huge > 18446744073709551615",
                "metadata.half > 1 and metadata.half < 2 and metadata.half = 1.5",
                "metadata.zero = 0",
            ],
            &[
                "metadata.big = 9007199254740992.0",
                "metadata.big < 9007199254740993",
                "metadata.year > 2020",
                "metadata.zero < 0",
                r#"metadata.year = "2020""#,
            ],
        );
    }

    #[test]
    fn texts_compare_by_bytes_and_contain_whatever_the_case() {
        check(
            json!({"by": {"first-name": "Zoë"}, "date": "2020-03-01T10:00"}),
            &[
                "",
                r#"kind = "text" and kind in ["table", "text"]"#,
                r#"metadata.by.first-name = "Zo\u00eb""#,
                r#"metadata.date >= "2020" and metadata.date < "2020-04""#,
                r#"title ~ "fluß, οδος" and title ~ "SRI" and title ~ """#,
                r#"metadata.by.first-name ~ "ZOE""#,
                r#"media_type ~ "" and media_type = "" and not media_type exists"#,
            ],
            &[r#"kind = "Text""#, r#"kind = "table""#, r#"title ~ "sri?""#, r#"source ~ """#, r#"source = """#],
        );
    }

    #[test]
    fn what_is_missing_or_of_another_type_only_meets_unequal() {
        check(
            json!({"n": 1, "t": "1", "null": null, "empty": "", "none": [], "o": {"a": 1}, "draft": false}),
            &[
                r#"source != "x" and metadata.month != 1 and metadata.n.x != 1 and metadata.n != "1" and metadata.t != 1"#,
                "metadata.draft = false and metadata.draft != true and metadata.draft exists",
                "metadata.n exists and metadata.t exists and metadata.o exists and metadata.o.a exists",
                "metadata.o != 1",
            ],
            &[
                "metadata.month = 1",
                "metadata.month < 1",
                "metadata.month in [1, 2]",
                "metadata.t < 2",
                r#"metadata.n < "2""#,
                r#"metadata.n ~ "1""#,
                "metadata.draft = 0",
                "metadata.o = 1",
                "metadata.month exists",
                "metadata.null exists",
                "metadata.empty exists",
                "metadata.none exists",
                "source exists",
            ],
        );
    }

    #[test]
    fn a_list_meets_what_one_of_its_elements_meets() {
        check(
            json!({"tags": ["Red", "blue", 3], "odd": [null, ""], "deep": [["a"]]}),
            &[
                r#"metadata.tags = "blue" and metadata.tags = 3 and metadata.tags ~ "red""#,
                r#"metadata.tags in ["green", "Red"] and metadata.tags > 2 and metadata.tags > "Z""#,
                r#"metadata.tags != "green" and metadata.tags exists and metadata.deep exists"#,
            ],
            &[r#"metadata.tags != "blue""#, "metadata.tags > 3", "metadata.odd exists", r#"metadata.deep = "a""#],
        );
    }

    #[test]
    fn metadata_is_read_once_and_only_where_the_other_fields_leave_it_open() {
        for (expression, expected, asked) in [
            (r#"metadata.a = 1 and kind = "table""#, false, 0),
            (r#"metadata.a = 2 or kind = "text""#, true, 0),
            (r#"not (metadata.a = 2 or kind = "text")"#, false, 0),
            (r#"(metadata.a = 2 or kind = "text") and title exists"#, true, 0),
            (r#"metadata.a = 1 and kind = "text" and not metadata.b exists"#, true, 1),
            (r#"kind = "table" or metadata.a = 2 or metadata.b = 1"#, false, 1),
        ] {
            let passage = Passage::new(json!({"a": 1}));
            assert_eq!(Filter::parse(expression).unwrap().matches(&passage), expected, "{expression}");
            assert_eq!(passage.asked.get(), asked, "{expression}");
        }
    }

    #[test]
    fn a_text_is_found_over_the_border_of_pieces() {
        let long = format!("{}Zoë{}", "é".repeat(PIECE_BYTES / 2 - 1), "x".repeat(PIECE_BYTES));
        for (part, expected) in [("zoe", true), ("ezoexx", true), ("zoee", false)] {
            assert_eq!(contains(&long, part), expected, "{part}");
        }
    }
}
