//! `WordPiece` beside the `tokenizers` crate: the same ids on every passage, and how fast.

use hedgerow_benches::{data, passages, timed};
use hedgerow_cli::embed::StaticTable;
use std::path::Path;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{TokenizerBuilder, decoders, processors};

fn main() {
    let vocabulary = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/models/static-minilm-256/vocab.txt");
    let model = WordPiece::from_file(&vocabulary.to_string_lossy()).unk_token("[UNK]".into()).build().expect("a model");
    let oracle = TokenizerBuilder::new()
        .with_model(model)
        .with_normalizer(Some(BertNormalizer::default()))
        .with_pre_tokenizer(Some(BertPreTokenizer))
        .with_post_processor(None::<processors::bert::BertProcessing>)
        .with_decoder(None::<decoders::wordpiece::WordPiece>)
        .build()
        .expect("a tokenizer");
    let table = StaticTable::default();
    let texts: Vec<String> =
        passages().into_iter().map(|document| format!("{}\n{}", document.title, document.text)).collect();
    let (ours, mine) = timed(|| texts.iter().map(|text| table.token_ids(text)).collect::<Vec<_>>());
    let encode = |text: &String| oracle.encode(text.as_str(), false).expect("tokens").get_ids().to_vec();
    let (theirs, others) = timed(|| texts.iter().map(encode).collect::<Vec<_>>());
    let same =
        mine.iter().zip(&others).filter(|(a, b)| a.iter().map(|id| u32::from(*id)).eq(b.iter().copied())).count();
    println!("data {}: ids equal on {same} of {} texts", data().display(), texts.len());
    println!("one thread: hedgerow {ours:.2} s, tokenizers {theirs:.2} s");
    assert_eq!(same, texts.len(), "every text must give the same ids");
}
