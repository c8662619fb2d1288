//! BM25 beside tantivy: the same passages, the same tokens' rules apart, the same questions, one thread, ten best.

use hedgerow::{Batch, Models, Pipeline, Question, Quiet, Store, Strategy};
use hedgerow_benches::{Scratch, data, median, passages, questions, timed};
use tantivy::collector::TopDocs;
use tantivy::query::QueryParser;
use tantivy::schema::{STORED, Schema, TEXT};
use tantivy::{Index, TantivyDocument, doc};

fn main() {
    let scratch = Scratch::new("terms");
    let documents = passages();
    let questions = questions();
    println!("data {}, {} passages, {} questions", data().display(), documents.len(), questions.len());

    let (seconds, store) = timed(|| {
        let store = Store::open_or_create(scratch.0.join("store")).expect("a store");
        for part in documents.chunks(1000) {
            let mut batch = Batch::default();
            Pipeline::default().stage(&store.snapshot(), part.to_vec(), &mut batch, &Quiet).expect("staged");
            store.commit(batch).expect("a commit");
        }
        store
    });
    println!("hedgerow: indexed and durable in {seconds:.2} s");
    let snapshot = store.snapshot();
    let ask = |text: &str| {
        let question = Question { strategy: Strategy::Flat, ..Question::new(text) };
        snapshot.ask(&question, Models::default()).expect("an answer").passages.len()
    };
    report("hedgerow", &questions.iter().map(|gold| timed(|| ask(&gold.text)).0 * 1e3).collect::<Vec<_>>());

    let mut schema = Schema::builder();
    let (title, body) = (schema.add_text_field("title", TEXT | STORED), schema.add_text_field("body", TEXT | STORED));
    let folder = scratch.0.join("tantivy");
    std::fs::create_dir_all(&folder).expect("a folder");
    let index = Index::create_in_ram(schema.build());
    let (seconds, ()) = timed(|| {
        let mut writer = index.writer_with_num_threads(2, 128 << 20).expect("a writer");
        for document in &documents {
            writer
                .add_document(doc!(title => document.title.as_str(), body => document.text.as_str()))
                .expect("a document");
        }
        writer.commit().expect("a commit");
        writer.wait_merging_threads().expect("merged");
    });
    println!("tantivy: indexed in memory in {seconds:.2} s");
    let reader = index.reader().expect("a reader");
    let searcher = reader.searcher();
    let mut parser = QueryParser::for_index(&index, vec![title, body]);
    parser.set_field_boost(title, 3.0);
    let search = |text: &str| {
        let plain: String = text.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
        let query = parser.parse_query(&plain).expect("a query");
        let found = searcher.search(&query, &TopDocs::with_limit(10).order_by_score()).expect("found");
        found.iter().filter(|(_, place)| searcher.doc::<TantivyDocument>(*place).is_ok()).count()
    };
    report("tantivy", &questions.iter().map(|gold| timed(|| search(&gold.text)).0 * 1e3).collect::<Vec<_>>());
}

fn report(name: &str, times: &[f64]) {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    println!(
        "{name}: median {:.2} ms, p99 {:.2} ms a question",
        median(sorted.clone()),
        sorted[sorted.len() * 99 / 100]
    );
}
