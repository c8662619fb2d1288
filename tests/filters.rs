//! Filters from any text: read or refused with a place in it, and printed so that they read back.

use hedgerow::Filter;
use proptest::prelude::*;

/// Pieces that expressions are made of, right and wrong ones.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec!["kind", "source", "title", "key", "media_type", "metadata.a", "metadata.é.b-c"]),
        4 => Just(" = "),
        3 => Just(" and "),
        3 => prop::sample::select(vec!["\"x\"", "\"\\u00e9\\n\\\"\"", "1", "-0.5", "2e3", "-0", "true", "18446744073709551615"]),
        1 => prop::sample::select(vec!["null", "[", "{\"a\":", "\"\\ud800\"", "1e999", ".", "\u{3000}", "\0", "metadata.", "🙂"]),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
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
    fn what_is_composed_by_the_rules_is_read(
        texts in prop::collection::vec((prop::sample::select(vec!["kind", "title", "key"]), any::<String>()), 0..4),
        numbers in prop::collection::vec(("[a-zé_0-9-]{1,5}(\\.[a-z]{1,3}){0,3}", any::<i64>()), 0..4),
    ) {
        let texts = texts.iter().map(|(field, text)| format!("{field} = {}", serde_json::Value::from(text.as_str())));
        let numbers = numbers.iter().map(|(path, number)| format!("metadata.{path}={number}"));
        let expression = texts.chain(numbers).collect::<Vec<_>>().join(" and ");
        let filter = Filter::parse(&expression);
        prop_assert!(filter.is_ok(), "{:?}", filter);
        prop_assert_eq!(Filter::parse(&filter.unwrap().to_string()), Filter::parse(&expression));
    }
}
