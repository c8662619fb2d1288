//! What a store promises about documents: replaced and deleted whole, committed at once, seen by snapshots as of one moment.

use crate::stores::{
    Capitals, Letters, MODELS, Numbers, PIPELINE, Place, ask, change, document, entities, files, put, relations, said,
    texts,
};
use hedgerow::{
    Batch, Chunking, CommitError, Document, EdgeRules, Env, GivenChunk, OpenError, Part, Pipeline, Question, Quiet,
    RealDisk, Snapshot, Store, Strategy, Target, triple,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_document_can_be_put_replaced_and_deleted() {
    let place = Place::new();
    let store = place.open();
    let committed = put(&store, &[("a", "First text."), ("b", "Second text.")]);
    assert_eq!((committed.added, committed.replaced, committed.chunks), (2, 0, 2));
    let committed = put(&store, &[("a", "Other text.")]);
    assert_eq!((committed.added, committed.replaced, committed.chunks), (0, 1, 1));
    assert_eq!(texts(&store.snapshot()), map(&[("a", "Other text."), ("b", "Second text.")]));
    let (_, committed) = change(&store, Vec::new(), &["b", "c"]);
    assert_eq!((committed.deleted, committed.missing.as_slice()), (1, ["c".to_owned()].as_slice()));
    assert_eq!(texts(&store.snapshot()), map(&[("a", "Other text.")]));
    assert_eq!(
        ask(&store.snapshot(), "first second", Strategy::Flat).trace.terms.iter().map(|term| term.chunks).sum::<u64>(),
        0
    );
    drop(store);
    assert_eq!(texts(&place.read()), map(&[("a", "Other text.")]));
}

#[test]
fn a_deleted_document_takes_the_entities_and_relations_that_only_it_supports() {
    let place = Place::new();
    let store = place.open();
    put(&store, &[("a", "Alice owns Bridge."), ("b", "Here Alice met Carol.")]);
    assert_eq!(entities(&store.snapshot()), ["Alice", "Bridge", "Carol", "Here", "Page a", "Page b"]);
    assert_eq!(relations(&store.snapshot()), ["Alice owns Bridge 1 [\"a#0\"]"]);
    change(&store, Vec::new(), &["a"]);
    let check = |snapshot: &Snapshot| {
        assert_eq!(entities(snapshot), ["Alice", "Carol", "Here", "Page b"]);
        assert!(relations(snapshot).is_empty());
        for gone in ["a", "a#0", "entity:Bridge", "Page a"] {
            assert!(snapshot.find(gone).is_err(), "{gone} is still there");
        }
        assert!(snapshot.find("entity:Alice").is_ok());
    };
    check(&store.snapshot());
    store.refresh(&Quiet).expect("the store can be brought in step");
    check(&store.snapshot());
    check(&place.read());
}

#[test]
fn a_relation_with_three_sources_survives_the_loss_of_one_with_less_weight() {
    let place = Place::new();
    let store = place.open();
    put(&store, &[("a", "Alice owns Bridge."), ("b", "So Alice owns Bridge.")]);
    put(&store, &[("c", "Yes, Alice owns Bridge.")]);
    assert_eq!(relations(&store.snapshot()), ["Alice owns Bridge 3 [\"a#0\", \"b#0\", \"c#0\"]"]);
    change(&store, Vec::new(), &["b"]);
    assert_eq!(relations(&store.snapshot()), ["Alice owns Bridge 2 [\"a#0\", \"c#0\"]"]);
    put(&store, &[("c", "No more.")]);
    assert_eq!(relations(&store.snapshot()), ["Alice owns Bridge 1 [\"a#0\"]"]);
}

#[test]
fn ingesting_the_same_content_again_changes_nothing() {
    let place = Place::new();
    let store = place.open();
    let documents = [("a", "Alice owns Bridge."), ("b", "Second text.")];
    put(&store, &documents);
    let (generation, before) = (store.snapshot().generation(), files(&place.path()));
    let (staged, committed) = change(&store, documents.iter().map(|(key, text)| document(key, text)).collect(), &[]);
    assert_eq!((staged.staged, staged.unchanged), (0, 2));
    store.refresh(&Quiet).expect("there is nothing to bring in step");
    assert_eq!((committed.generation, store.snapshot().generation()), (generation, generation));
    assert!(files(&place.path()) == before, "files changed");
    // Another pipeline reads the same content anew.
    let pipeline = Pipeline { chunking: Some(Chunking::default()), ..PIPELINE };
    let mut batch = Batch::default();
    let staged = pipeline.stage(&store.snapshot(), vec![document("b", "Second text.")], &mut batch, &Quiet);
    assert_eq!(staged.map(|staged| staged.staged), Ok(1));
}

#[test]
fn of_two_documents_with_one_key_in_a_batch_the_last_stays_and_that_is_said() {
    let place = Place::new();
    let store = place.open();
    let twice = vec![document("a", "First."), document("b", "Between."), document("a", "Last.")];
    let (staged, committed) = change(&store, twice, &[]);
    assert_eq!((staged.staged, staged.duplicates), (2, vec!["a".to_owned()]));
    assert_eq!((committed.added, committed.replaced), (2, 0));
    assert_eq!(texts(&store.snapshot()), map(&[("a", "Last."), ("b", "Between.")]));
    // Also where the last is what the store has already.
    change(&store, vec![document("a", "Other."), document("a", "Last.")], &[]);
    assert_eq!(texts(&store.snapshot())["a"], "Last.");
    let mut batch = Batch::default();
    batch.delete("a");
    PIPELINE.stage(&store.snapshot(), vec![document("a", "Last.")], &mut batch, &Quiet).expect("no one cancels");
    store.commit(batch).expect("the batch is sound");
    assert_eq!(texts(&store.snapshot())["a"], "Last.");
}

#[test]
fn what_is_wrong_with_a_document_rejects_it_and_not_its_neighbours() {
    let place = Place::new();
    let store = place.open();
    let chunk = |text: &str| GivenChunk { text: text.into(), ..GivenChunk::default() };
    let documents = vec![
        document("empty", " \n"),
        document("", "Without a key."),
        Document { chunks: Some(vec![chunk("One."), chunk("")]), ..document("chunk", "") },
        Document::new("k".repeat(5000)).text("A long key."),
        document("good", "A good text."),
    ];
    let (staged, committed) = change(&store, documents, &[]);
    let rejected: Vec<&str> =
        staged.rejected.iter().map(|rejected| &rejected.key[..rejected.key.len().min(5)]).collect();
    assert_eq!(rejected, ["empty", "", "chunk", "kkkkk"]);
    assert!(staged.rejected.iter().all(|rejected| rejected.reason.contains("must")), "{:?}", staged.rejected);
    assert_eq!((committed.added, texts(&store.snapshot())), (1, map(&[("good", "A good text.")])));
}

#[test]
fn given_chunks_are_joined_by_blank_lines_and_keep_their_ranges() {
    let place = Place::new();
    let store = place.open();
    let chunk = |text: &str| GivenChunk { text: text.into(), ..GivenChunk::default() };
    let given =
        Document { chunks: Some(vec![chunk("One bridge."), chunk("  Two bridges.\n")]), ..document("a", "ignored") };
    change(&store, vec![given], &[]);
    assert_eq!(texts(&store.snapshot())["a"], "One bridge.\n\n  Two bridges.\n");
    let context = ask(&store.snapshot(), "bridge", Strategy::Flat);
    let mut found: Vec<(&str, u32, u32, &str)> = context
        .passages
        .iter()
        .map(|passage| (passage.key.as_str(), passage.start, passage.end, passage.text.as_str()))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [("a#0", 0, 11, "One bridge."), ("a#1", 15, 27, "Two bridges.")]);
}

#[test]
fn a_batch_with_a_fault_in_it_changes_nothing() {
    let place = Place::new();
    let store = place.open();
    put(&store, &[("a", "First text.")]);
    let (generation, before) = (store.snapshot().generation(), files(&place.path()));
    for target in [("nowhere", None), ("a", Some(1)), ("b", Some(7))] {
        let mut batch = Batch::default();
        PIPELINE.stage(&store.snapshot(), vec![document("b", "Second.")], &mut batch, &Quiet).expect("no one cancels");
        batch.delete("a#0");
        let relation = triple(("X", ""), "knows", ("Y", ""), 1.0).expect("the triple is sound");
        batch.relate(Target { document: target.0.into(), chunk: target.1 }, relation);
        let refused = store.commit(batch);
        assert!(matches!(refused, Err(CommitError::UnknownKey { .. })), "{refused:?}");
    }
    assert_eq!(store.snapshot().generation(), generation);
    assert!(files(&place.path()) == before, "files changed");
    put(&store, &[("b", "Second.")]);
    assert_eq!(texts(&place.read()), map(&[("a", "First text."), ("b", "Second.")]));
}

#[test]
fn a_snapshot_answers_the_same_whatever_is_committed_after_it() {
    let place = Place::new();
    let store = place.open();
    put(&store, &[("a", "Alice owns Bridge."), ("b", "The Bridge is old."), ("c", "Carol met Alice.")]);
    store.build_edges("letters", &EdgeRules::default(), &Quiet).expect("edges can be built");
    let (mine, theirs) = (store.snapshot(), place.read());
    let answers = |snapshot: &Snapshot| {
        let asked = ["Who owns the Bridge?", "Carol"].map(|text| ask(snapshot, text, Strategy::Graph));
        (asked, texts(snapshot), entities(snapshot), relations(snapshot))
    };
    let before = answers(&mine);
    for round in 0..5 {
        put(&store, &[("a", &format!("Round {round}")), (&format!("new {round}"), "Bridge of Alice.")]);
        change(&store, Vec::new(), &["c"]);
        store.refresh(&Quiet).expect("the store can be brought in step");
    }
    assert!(answers(&store.snapshot()) != before, "nothing was committed");
    drop(store);
    drop(place.open());
    assert!(answers(&mine) == before && answers(&theirs) == before, "an old snapshot changed");
}

#[test]
fn a_second_writer_is_refused_and_told_who_holds_the_store_and_readers_are_not() {
    let place = Place::new();
    let store = place.open();
    put(&store, &[("a", "First text.")]);
    for refused in [Store::open(place.path()), Store::open_or_create(place.path())] {
        let error = refused.expect_err("the store is held");
        assert!(matches!(error, OpenError::Locked { .. }), "{error:?}");
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    }
    assert_eq!(texts(&place.read()), map(&[("a", "First text.")]));
    put(&store, &[("b", "Second text.")]);
    assert_eq!(place.read().generation(), store.snapshot().generation());
    drop(store);
    assert_eq!(texts(&place.open().snapshot()).len(), 2);
}

#[test]
fn a_bare_commit_makes_graph_answers_incomplete_until_refresh() {
    let place = Place::new();
    let store = place.open();
    put(&store, &[("a", "Alice owns Bridge.")]);
    assert!(ask(&store.snapshot(), "Alice", Strategy::Graph).incomplete.is_empty());
    change(&store, vec![document("b", "Alice met Carol."), document("c", "Carol.")], &[]);
    for snapshot in [&*store.snapshot(), &place.read()] {
        let context = ask(snapshot, "Alice", Strategy::Graph);
        assert_eq!(context.incomplete.len(), 1);
        assert!(context.incomplete[0].contains("2 chunks"), "{:?}", context.incomplete);
        assert!(context.passages.iter().any(|passage| passage.document == "b"), "what is behind is still found");
    }
    store.refresh(&Quiet).expect("the store can be brought in step");
    assert!(ask(&place.read(), "Alice", Strategy::Graph).incomplete.is_empty());
    change(&store, Vec::new(), &["b"]);
    let context = ask(&store.snapshot(), "Alice", Strategy::Graph);
    assert!(!context.incomplete.is_empty() && context.passages.iter().all(|passage| passage.document != "b"));
}

#[test]
fn the_same_operations_give_the_same_bytes_whatever_the_number_of_threads() {
    let by_one = files_made_by(1);
    let by_two = files_made_by(2);
    assert_eq!(by_one.keys().collect::<Vec<_>>(), by_two.keys().collect::<Vec<_>>());
    for (name, bytes) in &by_one {
        assert!(by_two[name] == *bytes, "{} differs", name.display());
    }
}

/// All files but the catalog, which redb writes, and the lock, which names a process.
fn files_made_by(threads: usize) -> BTreeMap<PathBuf, Vec<u8>> {
    let place = Place::new();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be started");
    pool.install(|| {
        let env = Env::seeded(Arc::new(RealDisk::new(&place.path())), 7);
        let store = Store::open_or_create_in(env).expect("the store opens");
        let mut numbers = Numbers(3);
        let words = ["Alice", "Bridge", "Carol", "owns", "meets", "the", "old", "river", "Dover", "Ely"];
        for round in 0..3 {
            let text = |numbers: &mut Numbers| {
                (0..40).map(|_| words[numbers.below(words.len())]).collect::<Vec<_>>().join(" ")
            };
            let documents =
                (0..50).map(|key| document(&format!("{}", key + 40 * round), &text(&mut numbers))).collect();
            change(&store, documents, &["1", "41"]);
            store.refresh(&Quiet).expect("the store can be brought in step");
        }
        store.build_edges("letters", &EdgeRules::default(), &Quiet).expect("edges can be built");
    });
    let mut made = files(&place.path());
    made.retain(|name, _| name != Path::new("catalog.redb") && name != Path::new("LOCK"));
    assert!(made.len() >= 6, "{:?}", made.keys());
    made
}

#[test]
fn what_a_store_answers_does_not_depend_on_how_its_content_came_to_be() {
    let content =
        [("a", "Alice owns Bridge."), ("b", "The Bridge is old."), ("c", "Carol met Alice."), ("d", "Old Dover.")];
    let (straight, winding) = (Place::new(), Place::new());
    put(&straight.open(), &content);
    let store = winding.open();
    for (key, text) in content.iter().rev() {
        put(&store, &[(key, "Another text about Alice, Ely and Dover."), ("gone", "Bridge of Dover.")]);
        change(&store, vec![document(key, text)], &["gone"]);
    }
    store.refresh(&Quiet).expect("the store can be brought in step");
    for question in ["Who owns the old Bridge?", "Alice", "Dover and Carol"] {
        for strategy in Strategy::ALL {
            let [one, other] = [&straight, &winding].map(|place| said(ask(&place.read(), question, strategy)));
            assert_eq!(one.passages, other.passages, "{question}");
            assert_eq!(one, other, "{question}");
        }
    }
    assert_eq!(entities(&straight.read()), entities(&winding.read()));
}

#[test]
fn a_store_without_anything_in_it_answers_nothing() {
    let place = Place::new();
    let store = place.open();
    assert!(ask(&store.snapshot(), "anything", Strategy::Graph).passages.is_empty());
    assert_eq!(texts(&place.read()), BTreeMap::new());
    store.refresh(&Quiet).expect("there is little to bring in step");
    put(&store, &[("a", "Alice.")]);
    change(&store, Vec::new(), &["a"]);
    store.refresh(&Quiet).expect("the store can be brought in step");
    let context = place.read().ask(&Question::new("Alice"), MODELS).expect("an empty store can be asked");
    assert!(context.passages.is_empty() && context.incomplete.is_empty(), "{context:?}");
    assert!(entities(&place.read()).is_empty());
}

#[test]
fn models_that_fail_reject_only_what_they_were_asked_for() {
    struct Failing;
    impl hedgerow::Extract for Failing {
        fn model(&self) -> &'static str {
            "failing"
        }
        fn extract(&self, title: &str, text: &str) -> Result<hedgerow::Extraction, hedgerow::ModelError> {
            if text.contains("fail") {
                return Err(hedgerow::ModelError { model: "failing".into(), reason: "it was told to".into() });
            }
            Capitals.extract(title, text)
        }
    }
    let place = Place::new();
    let store = place.open();
    let pipeline = Pipeline { chunking: None, embedder: Some(&Letters), extractor: Some(&Failing) };
    let mut batch = Batch::default();
    let documents = vec![document("a", "This must fail."), document("b", "This must not.")];
    let staged = pipeline.stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("no one cancels");
    assert_eq!((staged.staged, staged.rejected.len()), (1, 1));
    assert!(staged.rejected[0].reason.contains("it was told to"));
}

#[test]
fn a_chunk_takes_heading_and_page_of_the_part_that_it_begins_in_and_the_last_page_of_that_in_which_it_ends() {
    let place = Place::new();
    let store = place.open();
    let text = "Gates open at dawn.\n\nGates close at dusk.".to_owned();
    let part = |range, heading: &str, page| Part { range, heading: heading.into(), page, ..Part::default() };
    let parts = vec![part(0..20, "Gates", Some(1)), part(21..text.len(), "Gates > Night", Some(2))];
    let pipeline =
        Pipeline { chunking: Some(Chunking { size: 22, overlap: 0, ..Chunking::default() }), ..Pipeline::default() };
    let stage = |parts| {
        let mut batch = Batch::default();
        let documents = vec![Document { parts, ..Document::new("gates").text(text.clone()) }];
        let staged = pipeline.stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("no one cancels");
        (batch, staged)
    };
    let (batch, _) = stage(parts.clone());
    store.commit(batch).expect("it can be committed");
    let snapshot = store.snapshot();
    let document = snapshot.find_document("gates").expect("it can be read").expect("it is there");
    let told = |id| -> Result<(String, String), hedgerow::Damage> {
        let chunk = snapshot.chunk(id).expect("it is there");
        Ok((chunk.heading()?.to_owned(), chunk.metadata()?.to_owned()))
    };
    let found: Result<Vec<_>, _> = document.chunks().map(told).collect();
    let found = found.expect("it can be read");
    assert_eq!(found, [("Gates".into(), r#"{"page":1}"#.into()), ("Gates > Night".into(), r#"{"page":2}"#.to_owned())]);
    assert_eq!(stage(parts.clone()).1.unchanged, 1);
    let over = parts.iter().cloned().map(|part| Part { heading: String::new(), ..part }).collect();
    let pipeline = Pipeline { chunking: Some(Chunking::default()), ..Pipeline::default() };
    let mut batch = Batch::default();
    let documents = vec![Document { parts: over, ..Document::new("over").text(text.clone()) }];
    pipeline.stage(&store.snapshot(), documents, &mut batch, &Quiet).expect("no one cancels");
    store.commit(batch).expect("it can be committed");
    let snapshot = store.snapshot();
    let over = snapshot.find_document("over").expect("it can be read").expect("it is there");
    let chunk = snapshot.chunk(over.chunks().next().expect("it has one")).expect("it is there");
    assert_eq!(chunk.metadata().expect("it can be read"), r#"{"page":1,"page_last":2}"#);
    assert_eq!(stage(vec![parts[0].clone()]).1.staged, 1);
    let reversed = stage(parts.into_iter().rev().collect()).1.rejected;
    assert!(reversed[0].reason.contains("parts[1]"), "{reversed:?}");
}

#[test]
fn a_store_can_be_opened_again_at_once_though_other_processes_are_being_started() {
    let place = Place::new();
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            for _ in 0..200 {
                crate::command::command().arg("--version").output().expect("the command starts");
            }
        });
        while !busy.is_finished() {
            drop(place.open());
        }
    });
}
