//! Token ids of the built-in embedder, against the `tokenizers` crate.

use crate::corpus;
use hedgerow_cli::embed::StaticTable;
use std::path::Path;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{Model, Tokenizer};

#[test]
fn token_ids_of_all_passages_and_questions_are_those_of_the_tokenizers_crate() {
    let (table, oracle) = (StaticTable::default(), oracle());
    for document in corpus::documents() {
        check(&table, &oracle, &document.title);
        check(&table, &oracle, &document.text);
    }
    for asked in corpus::questions() {
        check(&table, &oracle, &asked.question);
    }
}

#[test]
fn token_ids_of_odd_texts_are_those_of_the_tokenizers_crate() {
    let (table, oracle) = (StaticTable::default(), oracle());
    let long = "x".repeat(101);
    let texts = [
        "",
        " \t\r\n\u{a0}\u{3000}",
        "Élan, naïve ÅNGSTRÖM; ﬁne Straße İstanbul",
        "東京都 に 住む 한국어 ภาษาไทย हिन्दी العربية עברית",
        "e\u{301}\u{302} a\u{200b}b\u{feff}c\u{fffd}d\u{0}e",
        "don't—stop… $5.00 (50%) #1 a_b c/d [MASK] [CLS] [UNK] ##ing",
        "𝒜 👩‍👩‍👧‍👦 🇫🇷 ½ ² Ⅷ",
        "unaffable supercalifragilisticexpialidocious",
        &long,
    ];
    for text in texts {
        check(&table, &oracle, text);
    }
}

#[track_caller]
fn check(table: &StaticTable, oracle: &Tokenizer, text: &str) {
    let expected = oracle.encode(text, false).expect("any text can be encoded");
    let found: Vec<u32> = table.token_ids(text).into_iter().map(u32::from).collect();
    assert_eq!(found, expected.get_ids(), "{text:?}");
}

/// BERT's uncased tokenizer over the table's own vocabulary, without special tokens.
fn oracle() -> Tokenizer {
    let vocabulary = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/models/static-minilm-256/vocab.txt");
    let model = WordPiece::from_file(vocabulary.to_str().expect("the path is text")).unk_token("[UNK]".into());
    let model = model.build().expect("the vocabulary is one");
    assert_eq!(model.get_vocab_size(), 30_522);
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_normalizer(Some(BertNormalizer::default())).expect("any normalizer fits");
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    tokenizer
}
