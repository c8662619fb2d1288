//! Names of any text: tokens, folding and keys.

use hedgerow_format::Key;
use hedgerow_format::name::{
    better_kind, better_spelling, fold, fold_lower_into, is_meaningful, is_stop_word, name_key_text, title_name, tokens,
};

/// Tokens cover the text, folding is done once, the key of a key is itself, and choices don't depend on order.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (first, second) = text.split_once('\n').unwrap_or((&text, ""));
    let mut end = 0;
    for token in tokens(&text) {
        assert_eq!(text.get(token.start..token.end), Some(token.text), "a token stands where it says");
        assert!(!token.text.is_empty() && token.start >= end, "tokens follow each other");
        assert!(text[end..token.start].chars().all(char::is_whitespace), "only white space lies between tokens");
        let mut folded = String::new();
        fold_lower_into(token.text, &mut folded);
        assert!(!folded.contains(char::is_whitespace) || !token.is_word(), "{folded:?} is one word");
        end = token.end;
    }
    assert!(text[end..].chars().all(char::is_whitespace), "only white space follows the last token");
    assert_eq!(fold(&fold(&text)), fold(&text), "what is folded stays as it is");
    let key = name_key_text(&text);
    assert_eq!(name_key_text(&key), key, "the key of a key is itself");
    assert_eq!(Key::of_entity(&key), Key::of_entity(&name_key_text(&key)));
    let words = key.split(' ').filter(|word| !word.is_empty());
    assert_eq!(words.collect::<Vec<_>>().join(" "), key, "one space joins words");
    assert!(!key.is_empty() || !is_meaningful(&key), "nothing has no meaning");
    assert!(!is_stop_word(&text) || text.is_ascii(), "stop words are English");
    assert!(text.trim().starts_with(title_name(&text)), "a title's name begins the title");
    assert_eq!(better_spelling(first, second), better_spelling(second, first), "the better one is so in any order");
    assert_eq!(better_kind(first, second), better_kind(second, first), "the better one is so in any order");
}

/// Names of many scripts.
pub fn seeds() -> Vec<Vec<u8>> {
    let names = [
        "The Wall\nwall",
        "Help! (album)\nHELP!",
        "Śrī (गीता)\nSri",
        "½ Man, İzmir, ΟΔΟΣ ﬁancé",
        "東京 Ａｌｐｈａ a\u{301}b",
        "the a an of",
    ];
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}
