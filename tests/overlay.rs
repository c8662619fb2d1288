//! What is added to documents that are already there: vectors and triples, and how they are replaced and refused.

use crate::stores::{MODELS, PIPELINE, Place, change, document, entities, put, relations, vector};
use hedgerow::{
    Batch, CommitError, Embed, ModelError, Pipeline, QueryError, Question, Quiet, Snapshot, StagedDocument,
    StagedVector, Store, Strategy, Target, triple,
};

fn whole(document: &str) -> Target {
    Target { document: document.into(), chunk: None }
}

fn chunk(document: &str, chunk: u32) -> Target {
    Target { document: document.into(), chunk: Some(chunk) }
}

/// Documents without vectors of their own.
fn bare(place: &Place, documents: &[(&str, &str)]) -> Store {
    let store = place.open();
    let pipeline = Pipeline { embedder: None, ..PIPELINE };
    let mut batch = Batch::default();
    let documents = documents.iter().map(|(key, text)| document(key, text)).collect();
    pipeline.stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("no one cancels");
    store.commit(batch).expect("the batch is sound");
    store
}

fn set(store: &Store, target: Target, vector: StagedVector) -> Result<u64, CommitError> {
    let mut batch = Batch::default();
    batch.set_vector(target, vector);
    store.commit(batch).map(|committed| committed.vectors)
}

/// Keys of chunks with their similarity to a vector, best first.
fn nearest(snapshot: &Snapshot, components: &[f32]) -> Vec<(String, f32)> {
    let question = Question {
        strategy: Strategy::Flat,
        vector: Some(vector(components).components),
        vector_weight: Some(1.0),
        ..Question::new("")
    };
    let context = snapshot.ask(&question, MODELS).expect("the question has an answer");
    context.passages.into_iter().map(|passage| (passage.key, passage.score)).collect()
}

fn vectors(snapshot: &Snapshot) -> u64 {
    snapshot.spaces().expect("spaces can be read").iter().map(|space| space.vectors).sum()
}

#[test]
fn a_vector_can_be_added_to_an_older_document_replaced_and_lost_with_it() {
    let place = Place::new();
    let store = bare(&place, &[("a", "One."), ("b", "Two.")]);
    assert_eq!(set(&store, whole("a"), vector(&[1.0])).ok(), Some(1));
    assert_eq!(set(&store, chunk("b", 0), vector(&[0.6, 0.8])).ok(), Some(1));
    assert_eq!(nearest(&place.read(), &[1.0]), [("a#0".to_owned(), 1.0), ("b#0".to_owned(), 0.6)]);
    // The same again is a no-op, another one takes its place.
    let generation = store.snapshot().generation();
    assert_eq!(set(&store, whole("a"), vector(&[1.0])).ok(), Some(0));
    assert_eq!(store.snapshot().generation(), generation);
    assert_eq!(set(&store, whole("a"), vector(&[0.0, 1.0])).ok(), Some(1));
    assert_eq!(vectors(&place.read()), 2);
    assert_eq!(nearest(&place.read(), &[0.0, 1.0]), [("a#0".to_owned(), 1.0), ("b#0".to_owned(), 0.8)]);
    assert_eq!(set(&store, whole("a"), vector(&[1.0])).ok(), Some(1));
    assert_eq!(nearest(&place.read(), &[1.0])[0].0, "a#0");
    change(&store, Vec::new(), &["a"]);
    assert_eq!((vectors(&place.read()), nearest(&place.read(), &[1.0]).len()), (1, 1));
    // What takes the place of a document has none of its vectors.
    let mut batch = Batch::default();
    let pipeline = Pipeline { embedder: None, ..PIPELINE };
    pipeline.stage(&store.snapshot(), vec![document("b", "Three.")], &mut batch, &Quiet).expect("no one cancels");
    store.commit(batch).expect("the batch is sound");
    assert_eq!(vectors(&place.read()), 0);
    let verified = hedgerow::verify(&hedgerow::Env::folder(&place.path()).expect("it is a folder"), &Quiet);
    assert_eq!(verified.expect("the store can be checked").problems, Vec::<String>::new());
}

#[test]
fn a_batch_may_set_the_vector_of_its_own_document_and_the_last_one_wins() {
    let place = Place::new();
    let store = place.open();
    let mut batch = Batch::default();
    PIPELINE.stage(&store.snapshot(), vec![document("a", "One.")], &mut batch, &Quiet).expect("no one cancels");
    batch.set_vector(whole("a"), vector(&[0.0, 1.0]));
    batch.set_vector(whole("a"), vector(&[1.0]));
    store.commit(batch).expect("the batch is sound");
    assert_eq!(vectors(&place.read()), 1);
    assert!((nearest(&place.read(), &[1.0])[0].1 - 1.0).abs() < 1e-6);
}

#[test]
fn a_vector_for_a_document_of_several_chunks_must_name_one() {
    let place = Place::new();
    let store = place.open();
    let chunk_of = |text: &str| hedgerow::GivenChunk { text: text.into(), ..hedgerow::GivenChunk::default() };
    let two = hedgerow::Document { chunks: Some(vec![chunk_of("One."), chunk_of("Two.")]), ..document("a", "") };
    change(&store, vec![two], &[]);
    for target in [whole("a"), chunk("a", 2), whole("nowhere")] {
        let refused = set(&store, target, vector(&[1.0]));
        assert!(matches!(refused, Err(CommitError::UnknownKey { .. })), "{refused:?}");
    }
    assert_eq!(set(&store, chunk("a", 1), vector(&[1.0])).ok(), Some(1));
}

#[test]
fn a_vector_that_does_not_fit_its_space_is_refused_and_nothing_is_lost() {
    let place = Place::new();
    let store = bare(&place, &[("a", "One."), ("b", "Two.")]);
    set(&store, whole("a"), vector(&[1.0])).expect("the vector fits");
    let generation = store.snapshot().generation();
    let wrong = [
        ("another length", StagedVector { components: vec![1.0], ..vector(&[1.0]) }),
        ("another model", StagedVector { model: "other".into(), ..vector(&[1.0]) }),
        ("no components", StagedVector { space: "new".into(), components: Vec::new(), ..vector(&[1.0]) }),
        ("not a number", StagedVector { components: vec![f32::NAN; 16], ..vector(&[1.0]) }),
        ("infinite", StagedVector { components: vec![f32::INFINITY; 16], ..vector(&[1.0]) }),
        ("zero", StagedVector { components: vec![0.0; 16], ..vector(&[1.0]) }),
    ];
    let taken: Vec<&str> = wrong
        .into_iter()
        .filter(|(_, wrong)| set(&store, whole("b"), wrong.clone()).is_ok())
        .map(|(what, _)| what)
        .collect();
    assert!(taken.is_empty(), "taken: {taken:?}");
    assert_eq!(store.snapshot().generation(), generation);
    assert_eq!(set(&store, whole("b"), vector(&[1.0])).ok(), Some(1));
}

/// Gives vectors that cannot be used for some words.
struct Broken;
impl Embed for Broken {
    fn space(&self) -> &'static str {
        "letters"
    }
    fn model(&self) -> &'static str {
        "letters-16"
    }
    fn dimensions(&self) -> usize {
        16
    }
    fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        let vector = |text: &&str| match text.rsplit('\n').next() {
            Some("nan") => Some(vec![f32::NAN; 16]),
            Some("zero") => Some(vec![0.0; 16]),
            Some("short") => Some(vec![1.0; 15]),
            Some("none") => None,
            _ => Some(vec![1.0; 16]),
        };
        Ok(texts.iter().map(vector).collect())
    }
}

#[test]
fn documents_whose_embedder_gives_no_direction_are_rejected_with_the_reason() {
    for (text, reason) in [("nan", "component 0"), ("zero", "zero"), ("short", "15"), ("none", ""), ("good", "")] {
        let place = Place::new();
        let store = place.open();
        let pipeline = Pipeline { embedder: Some(&Broken), ..PIPELINE };
        let mut batch = Batch::default();
        let staged =
            pipeline.stage(&store.snapshot(), vec![document("a", text)], &mut batch, &Quiet).expect("no one cancels");
        let said: Vec<String> = staged.rejected.into_iter().map(|rejected| rejected.reason).collect();
        assert_eq!(said.len(), usize::from(!reason.is_empty()), "{said:?}");
        assert!(said.iter().all(|said| said.contains(reason)), "{said:?}");
        store.commit(batch).expect("the batch is sound");
        assert_eq!(vectors(&store.snapshot()), u64::from(text == "good"));
    }
}

#[test]
fn a_rejected_document_does_not_take_its_neighbours_with_it() {
    let place = Place::new();
    let store = place.open();
    let pipeline = Pipeline { embedder: Some(&Broken), ..PIPELINE };
    let mut batch = Batch::default();
    let documents = vec![document("a", "good"), document("b", "zero"), document("c", "good too")];
    let staged = pipeline.stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("no one cancels");
    let rejected: Vec<String> = staged.rejected.into_iter().map(|rejected| rejected.key).collect();
    assert_eq!((staged.staged, rejected), (2, vec!["b".to_owned()]));
}

#[test]
fn a_question_that_does_not_fit_the_space_is_refused() {
    let place = Place::new();
    put(&place.open(), &[("a", "One.")]);
    let asked = |question: Question| place.read().ask(&question, MODELS);
    let unknown = asked(Question { space: Some("other".into()), ..Question::new("One?") });
    assert!(matches!(unknown, Err(QueryError::UnknownSpace { .. })), "{unknown:?}");
    for components in [vec![1.0; 15], vec![f32::NAN; 16], vec![0.0; 16]] {
        let refused = asked(Question { vector: Some(components), ..Question::new("One?") });
        assert!(matches!(refused, Err(QueryError::Vector { .. })), "{refused:?}");
    }
    let without = place.read().ask(&Question::new("One?"), hedgerow::Models::default()).expect("terms answer");
    assert!(without.passages.len() == 1 && without.incomplete.iter().any(|said| said.contains("letters-16")));
}

#[test]
fn a_triple_about_an_older_document_lives_as_long_as_that() {
    let place = Place::new();
    let store = bare(&place, &[("a", "One."), ("b", "Two.")]);
    let relate = |target: Target, weight: f32| {
        let mut batch = Batch::default();
        let relation = triple(("Dover", "town"), "lies on", ("Channel", ""), weight).expect("the triple is sound");
        batch.relate(target, relation);
        store.commit(batch).expect("the batch is sound").relations
    };
    assert_eq!((relate(chunk("a", 0), 1.0), relate(whole("b"), 0.5)), (1, 1));
    let generation = store.snapshot().generation();
    assert_eq!((relate(chunk("a", 0), 1.0), relate(whole("b"), 0.5)), (0, 0));
    assert_eq!(store.snapshot().generation(), generation);
    assert_eq!(relations(&store.snapshot()), ["Dover lies on Channel 1.5 [\"a#0\", \"b\"]"]);
    store.refresh(&Quiet).expect("the store can be brought in step");
    assert_eq!(relations(&place.read()), ["Dover lies on Channel 1.5 [\"a#0\", \"b\"]"]);
    assert!(entities(&place.read()).contains(&"Channel".to_owned()));
    change(&store, vec![document("a", "Another.")], &[]);
    assert_eq!(relations(&store.snapshot()), ["Dover lies on Channel 0.5 [\"b\"]"]);
    change(&store, Vec::new(), &["b"]);
    store.refresh(&Quiet).expect("the store can be brought in step");
    assert!(relations(&place.read()).is_empty() && place.read().find("entity:Channel").is_err());
}

#[test]
fn a_document_without_text_can_be_the_source_of_triples_and_takes_them_along() {
    let place = Place::new();
    let store = place.open();
    let mut batch = Batch::default();
    batch.put(StagedDocument::textless("import:1", [1; 16]));
    for (subject, object) in [("Dover", "Kent"), ("Ely", "Fens")] {
        batch.relate(whole("import:1"), triple((subject, ""), "lies in", (object, ""), 1.0).expect("it is sound"));
    }
    store.commit(batch).expect("the batch is sound");
    store.refresh(&Quiet).expect("the store can be brought in step");
    assert_eq!(relations(&place.read()).len(), 2);
    assert_eq!(entities(&place.read()), ["Dover", "Ely", "Fens", "Kent"]);
    let reached = place
        .read()
        .expand(&[place.read().find("entity:Dover").expect("it is there")], &hedgerow::ExpandOptions::default());
    let keys: Vec<String> = reached.expect("it can be expanded").nodes.into_iter().map(|node| node.key).collect();
    assert_eq!(keys, ["entity:Dover", "entity:Kent"]);
    change(&store, Vec::new(), &["import:1"]);
    store.refresh(&Quiet).expect("the store can be brought in step");
    assert!(relations(&place.read()).is_empty() && entities(&place.read()).is_empty());
}

#[test]
fn triples_that_say_nothing_are_refused_with_a_sentence() {
    let long = "x".repeat(5000);
    let wrong = [
        triple(("", ""), "p", ("B", ""), 1.0),
        triple(("A", ""), "p", (" the ", ""), 1.0),
        triple(("A", ""), " ", ("B", ""), 1.0),
        triple(("A", ""), "p", ("B", ""), 0.0),
        triple(("A", ""), "p", ("B", ""), f32::NAN),
        triple((&long, ""), "p", ("B", ""), 1.0),
    ];
    for wrong in wrong {
        let is_told = |reason: &String| reason.contains("must") || reason.contains("may have 4096");
        assert!(wrong.as_ref().is_err_and(is_told), "{wrong:?}");
    }
}
