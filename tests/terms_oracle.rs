//! BM25 as the store counts it, against tantivy on the same terms.

use crate::corpus;
use crate::stores::Place;
use hedgerow::{Batch, Document, Models, Pipeline, Question, Quiet, Snapshot, Store};
use std::collections::{BTreeMap, BTreeSet};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value};
use tantivy::{Index, TantivyDocument, Term, doc};

/// No embedder and no extractor: terms alone decide.
const TERMS_ONLY: Pipeline<'static> = Pipeline { chunking: None, embedder: None, extractor: None };

#[test]
fn scores_are_those_of_tantivy_before_and_after_half_of_the_documents_are_deleted() {
    let place = Place::new();
    let store = place.open();
    let documents = corpus::documents();
    // Several segments, so that statistics must be those of all of them.
    for part in documents.chunks(200) {
        let mut batch = Batch::default();
        TERMS_ONLY.stage(&store.snapshot(), part.to_vec(), &mut batch, &Quiet).expect("no one cancels");
        store.commit(batch).expect("the batch is sound");
    }
    let mut terms = Terms::new();
    check(&store.snapshot(), &documents, &mut terms);
    let mut batch = Batch::default();
    documents.iter().step_by(2).for_each(|document| batch.delete(&document.key));
    store.commit(batch).expect("the batch is sound");
    let left: Vec<Document> = documents.into_iter().skip(1).step_by(2).collect();
    check(&store.snapshot(), &left, &mut terms);
}

/// Compares the scores of all passages for every question.
fn check(snapshot: &Snapshot, documents: &[Document], terms: &mut Terms) {
    let statistics = snapshot.statistics().expect("lengths can be read");
    let tokens: Vec<Vec<String>> = documents
        .iter()
        .map(|document| {
            let title = terms.of(&document.title);
            [title.clone(), title.clone(), title, terms.of(&document.text)].concat()
        })
        .collect();
    assert_eq!(statistics.chunks, documents.len() as u64);
    assert_eq!(
        statistics.terms,
        tokens.iter().map(|tokens| tokens.len() as u64).sum::<u64>(),
        "other terms were indexed"
    );
    let oracle = Oracle::of(documents, &tokens);
    let mut compared = 0;
    for asked in corpus::questions() {
        let wanted: BTreeSet<String> = terms.of(&asked.question).into_iter().collect();
        let (found, expected) = (scores(snapshot, &asked.question), oracle.scores(&wanted));
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{}", asked.question);
        for (key, score) in &found {
            let expected = expected[key];
            assert!((score - expected).abs() <= 1e-5, "{key} has {score}, not {expected}: {}", asked.question);
            compared += 1;
        }
    }
    assert!(compared > 1000, "only {compared} scores were compared");
}

/// Every passage's BM25 score, by document.
fn scores(snapshot: &Snapshot, question: &str) -> BTreeMap<String, f32> {
    let found = snapshot.search_terms(question, None, usize::MAX).expect("the question has an answer");
    found.into_iter().map(|found| (found.key.trim_end_matches("#0").to_owned(), found.score)).collect()
}

/// The terms of texts, as the store itself says when it is asked for them.
struct Terms {
    place: Place,
    store: Store,
    known: BTreeMap<String, Vec<String>>,
}

impl Terms {
    fn new() -> Self {
        let place = Place::new();
        Self { store: place.open(), place, known: BTreeMap::new() }
    }

    /// The terms of a text, repeated ones repeated. A trace tells each term once, so the store is asked for each of the
    /// text's pieces: none of its terms goes across white space, ASCII punctuation, dashes or curly quotes.
    fn of(&mut self, text: &str) -> Vec<String> {
        let ends = |letter: char| letter.is_ascii_punctuation() || ('\u{2010}'..='\u{2027}').contains(&letter);
        let parts = text.split(|letter: char| letter != '_' && (letter.is_whitespace() || ends(letter)));
        let mut terms = Vec::new();
        for part in parts.filter(|part| !part.is_empty()) {
            if !self.known.contains_key(part) {
                let snapshot = self.store.snapshot();
                let context = snapshot.ask(&Question::new(part), Models::default());
                let context = context.unwrap_or_else(|error| panic!("{}: {error}", self.place.path().display()));
                let asked = context.trace.terms.into_iter().map(|term| term.term).collect();
                self.known.insert(part.to_owned(), asked);
            }
            terms.extend(self.known[part].iter().cloned());
        }
        terms
    }
}

/// A tantivy index over terms that are already made.
struct Oracle {
    index: Index,
    schema: Schema,
}

impl Oracle {
    fn of(documents: &[Document], tokens: &[Vec<String>]) -> Self {
        let mut schema = Schema::builder();
        let indexing =
            TextFieldIndexing::default().set_tokenizer("whitespace").set_index_option(IndexRecordOption::WithFreqs);
        let body = schema.add_text_field("body", TextOptions::default().set_indexing_options(indexing));
        let key = schema.add_text_field("key", STRING | STORED);
        let schema = schema.build();
        let index = Index::create_in_ram(schema.clone());
        let mut writer = index.writer_with_num_threads(1, 20_000_000).expect("the index can be written");
        for (document, tokens) in documents.iter().zip(tokens) {
            let row = doc!(body => tokens.join(" "), key => document.key.as_str());
            writer.add_document(row).expect("the document can be added");
        }
        writer.commit().expect("the index can be written");
        Self { index, schema }
    }

    /// The scores of all documents that hold one of the terms.
    fn scores(&self, wanted: &BTreeSet<String>) -> BTreeMap<String, f32> {
        let [body, key] = ["body", "key"].map(|name| self.schema.get_field(name).expect("the field is there"));
        let clause = |term: &String| -> (Occur, Box<dyn Query>) {
            let query = TermQuery::new(Term::from_field_text(body, term), IndexRecordOption::WithFreqs);
            (Occur::Should, Box::new(query))
        };
        let query = BooleanQuery::new(wanted.iter().map(clause).collect());
        let searcher = self.index.reader().expect("the index can be read").searcher();
        let found =
            searcher.search(&query, &TopDocs::with_limit(10_000).order_by_score()).expect("the query can be run");
        let named = found.into_iter().map(|(score, address)| {
            let row: TantivyDocument = searcher.doc(address).expect("the document is there");
            let key = row.get_first(key).and_then(|value| value.as_str().map(str::to_owned));
            (key.expect("the key is stored"), score)
        });
        named.collect()
    }
}
