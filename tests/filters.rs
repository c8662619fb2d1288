//! Filters from any text: read or refused with a place in it, and printed so that they read back.

use std::borrow::Cow;

use hedgerow::{Fields, Filter, TextField};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Pieces that expressions are made of, right and wrong ones.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec!["kind", "source", "title", "key", "media_type", "metadata.a", "metadata.é.b-c"]),
        4 => prop::sample::select(vec![" = ", "!=", "<", " <= ", ">", ">= ", "~", " exists", " in [", "]", ","]),
        3 => prop::sample::select(vec![" and ", " or ", "not ", "(", ")"]),
        3 => prop::sample::select(vec!["\"x\"", "\"\\u00e9\\n\\\"\"", "1", "-0.5", "2e3", "-0", "true", "18446744073709551615"]),
        1 => prop::sample::select(vec!["null", "[", "{\"a\":", "\"\\ud800\"", "1e999", ".", "\u{3000}", "\0", "metadata.", "🙂"]),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

/// Values as they are written, those of one type in ascending order: number of the type, rank, and for texts what they are when
/// folded.
const VALUES: [(&str, u8, u8, &str); 21] = [
    ("\"\"", 0, 0, ""),
    ("\"2020-03-01\"", 0, 1, "2020-03-01"),
    ("\"2020-10-01\"", 0, 2, "2020-10-01"),
    ("\"ZOË\"", 0, 3, "zoe"),
    ("\"oe\"", 0, 4, "oe"),
    ("\"zo\"", 0, 5, "zo"),
    ("\"ï, \\\"\"", 0, 6, "i, \""),
    ("\"\\uff21\"", 0, 7, "a"),
    ("-1e300", 1, 0, ""),
    ("-9223372036854775808", 1, 1, ""),
    ("-0.0", 1, 2, ""),
    ("0", 1, 2, ""),
    ("1.5", 1, 3, ""),
    ("2020", 1, 4, ""),
    ("2.02e3", 1, 4, ""),
    ("9007199254740992.0", 1, 5, ""),
    ("9007199254740993", 1, 6, ""),
    ("18446744073709551614", 1, 7, ""),
    ("18446744073709551615", 1, 8, ""),
    ("false", 2, 0, ""),
    ("true", 2, 1, ""),
];
const TEXTS: usize = 8;
const NUMBERS: usize = 19;

/// What a field holds, by places in the table of values.
#[derive(Clone, Debug)]
enum Held {
    Missing,
    Null,
    Object,
    One(usize),
    List(Vec<usize>),
}

/// Texts by their fields; `a`, `b.c` and `d` of metadata.
#[derive(Debug)]
struct Passage {
    texts: Vec<Held>,
    metadata: Vec<Held>,
    json: Value,
}

const FIELDS: [(&str, TextField); 5] = [
    ("key", TextField::Key),
    ("source", TextField::Source),
    ("title", TextField::Title),
    ("kind", TextField::Kind),
    ("media_type", TextField::MediaType),
];
const PATHS: [&str; 3] = ["metadata.a", "metadata.b.c", "metadata.d"];

impl Passage {
    fn new(texts: Vec<Held>, metadata: Vec<Held>) -> Self {
        let mut json = json!({"b": {}});
        for (held, (inside, name)) in metadata.iter().zip([("", "a"), ("/b", "c"), ("", "d")]) {
            let value = |place: &usize| serde_json::from_str::<Value>(VALUES[*place].0).expect("it is JSON");
            json.pointer_mut(inside).expect("it is there")[name] = match held {
                Held::Missing => continue,
                Held::Null => Value::Null,
                Held::Object => json!({"a": 1}),
                Held::One(place) => value(place),
                Held::List(places) => places.iter().map(value).collect(),
            };
        }
        Self { texts, metadata, json }
    }

    fn held(&self, field: usize) -> &Held {
        self.texts.get(field).unwrap_or_else(|| &self.metadata[field - FIELDS.len()])
    }
}

impl Fields for Passage {
    fn text(&self, field: TextField) -> Option<Cow<'_, str>> {
        let place = FIELDS.iter().position(|(_, named)| *named == field)?;
        let Held::One(place) = self.texts[place] else { return None };
        serde_json::from_str::<String>(VALUES[place].0).ok().map(Cow::Owned)
    }

    fn metadata(&self) -> Option<Cow<'_, Value>> {
        Some(Cow::Borrowed(&self.json))
    }
}

#[derive(Clone, Debug)]
enum Rule {
    And(Box<Rule>, Box<Rule>),
    Or(Box<Rule>, Box<Rule>),
    Not(Box<Rule>),
    Enclosed(Box<Rule>),
    Condition(usize, &'static str, Vec<usize>),
}

impl Rule {
    /// The expression; 0 binds loosest.
    fn written(&self, binding: u8) -> String {
        let (own, written) = match self {
            Self::Or(one, other) => (0, format!("{} or {}", one.written(0), other.written(0))),
            Self::And(one, other) => (1, format!("{} and {}", one.written(1), other.written(1))),
            Self::Not(rule) => (2, format!("not {}", rule.written(2))),
            Self::Enclosed(rule) => (2, format!("({})", rule.written(0))),
            Self::Condition(field, sign, places) => {
                let values: Vec<&str> = places.iter().map(|place| VALUES[*place].0).collect();
                let name = FIELDS.get(*field).map_or_else(|| PATHS[*field - FIELDS.len()], |(name, _)| name);
                let list = if *sign == "in" { format!("[{}]", values.join(",")) } else { values.concat() };
                (2, format!("{name} {sign} {list}"))
            }
        };
        if own < binding { format!("({written})") } else { written }
    }

    /// Whether it holds, by the plainest reading of the documentation.
    fn holds(&self, passage: &Passage) -> bool {
        match self {
            Self::Or(one, other) => one.holds(passage) || other.holds(passage),
            Self::And(one, other) => one.holds(passage) && other.holds(passage),
            Self::Not(rule) => !rule.holds(passage),
            Self::Enclosed(rule) => rule.holds(passage),
            Self::Condition(field, "!=", places) => !Self::Condition(*field, "=", places.clone()).holds(passage),
            Self::Condition(field, sign, places) => {
                let found = match passage.held(*field) {
                    Held::Object => return *sign == "exists",
                    Held::Missing | Held::Null => &[][..],
                    Held::One(place) => &[*place],
                    Held::List(places) => places,
                };
                found.iter().any(|found| meets(*found, sign, places))
            }
        }
    }
}

fn meets(found: usize, sign: &str, places: &[usize]) -> bool {
    let (_, kind, rank, folded) = VALUES[found];
    if sign == "exists" {
        return found != 0;
    }
    places.iter().map(|place| VALUES[*place]).any(|(_, other_kind, other, part)| {
        kind == other_kind
            && match sign {
                "=" | "in" => rank == other,
                "<" => rank < other,
                "<=" => rank <= other,
                ">" => rank > other,
                ">=" => rank >= other,
                _ => kind == 0 && folded.contains(part),
            }
    })
}

fn passages() -> impl Strategy<Value = Passage> {
    let text = prop_oneof![1 => Just(Held::Missing), 4 => (0..TEXTS).prop_map(Held::One)];
    let held = prop_oneof![
        Just(Held::Missing),
        Just(Held::Null),
        Just(Held::Object),
        (0..VALUES.len()).prop_map(Held::One),
        (0..VALUES.len()).prop_map(Held::One),
        prop::collection::vec(0..VALUES.len(), 0..4).prop_map(Held::List),
    ];
    let texts = prop::collection::vec(text, FIELDS.len());
    (texts, prop::collection::vec(held, PATHS.len())).prop_map(|(texts, metadata)| Passage::new(texts, metadata))
}

fn conditions() -> impl Strategy<Value = Rule> {
    let sign = prop::sample::select(vec!["=", "!=", "<", "<=", ">", ">=", "~", "in", "exists"]);
    let places = prop::collection::vec(any::<prop::sample::Index>(), 1..4);
    (0..FIELDS.len() + PATHS.len(), sign, places).prop_map(|(field, sign, places)| {
        let end = match sign {
            _ if field < FIELDS.len() => TEXTS,
            "~" => TEXTS,
            "=" | "!=" | "in" => VALUES.len(),
            _ => NUMBERS,
        };
        let count = match sign {
            "in" => places.len(),
            "exists" => 0,
            _ => 1,
        };
        Rule::Condition(field, sign, places.iter().take(count).map(|place| place.index(end)).collect())
    })
}

fn rules() -> impl Strategy<Value = Rule> {
    conditions().prop_recursive(5, 24, 2, |inner| {
        let two = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            two().prop_map(|(one, other)| Rule::And(one, other)),
            two().prop_map(|(one, other)| Rule::Or(one, other)),
            inner.clone().prop_map(|rule| Rule::Not(Box::new(rule))),
            inner.clone().prop_map(|rule| Rule::Enclosed(Box::new(rule))),
        ]
    })
}

proptest! {
    #![proptest_config(crate::stores::cases(2000))]

    #[test]
    fn any_text_is_a_filter_or_an_error_with_a_place_in_it(text in prop_oneof![pieces(), any::<String>()]) {
        match Filter::parse(&text) {
            Ok(filter) => {
                let printed = filter.to_string();
                let read = Filter::parse(&printed);
                prop_assert_eq!(read.as_ref(), Ok(&filter), "{}", printed);
                prop_assert_eq!(filter.to_string(), printed);
            }
            Err(error) => {
                prop_assert!(text.is_char_boundary(error.position), "{} of {:?}", error.position, text);
                prop_assert!(!error.expected.is_empty() && !error.found.is_empty());
            }
        }
    }

    #[test]
    fn a_filter_holds_as_the_plainest_reading_says_and_reads_back_from_what_it_prints(rule in rules(), passage in passages()) {
        let written = rule.written(0);
        let filter = Filter::parse(&written);
        prop_assert!(filter.is_ok(), "{}: {:?}", written, filter);
        let filter = filter.unwrap();
        prop_assert_eq!(filter.matches(&passage), rule.holds(&passage), "{} of {:?}", written, passage);
        let printed = filter.to_string();
        prop_assert_eq!(Filter::parse(&printed), Ok(filter), "{} as {}", written, printed);
    }

    #[test]
    fn what_is_composed_by_the_rules_is_read(
        texts in prop::collection::vec((prop::sample::select(vec!["kind", "title", "key"]), any::<String>()), 0..4),
        numbers in prop::collection::vec(("[a-zé_0-9-]{1,5}(\\.[a-z]{1,3}){0,3}", any::<i64>()), 0..4),
    ) {
        let texts = texts.iter().map(|(field, text)| format!("{field} = {}", Value::from(text.as_str())));
        let numbers = numbers.iter().map(|(path, number)| format!("metadata.{path}={number}"));
        let expression = texts.chain(numbers).collect::<Vec<_>>().join(" and ");
        let filter = Filter::parse(&expression);
        prop_assert!(filter.is_ok(), "{:?}", filter);
        prop_assert_eq!(Filter::parse(&filter.unwrap().to_string()), Filter::parse(&expression));
    }
}
