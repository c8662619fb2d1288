//! The same content gives the same answers byte for byte, whatever the order, the batches, the detours and the threads.

use crate::stores::{MODELS, PIPELINE, Place, document, vector};
use hedgerow::{
    Batch, EdgeRules, Env, ExpandOptions, Filter, Listing, Merging, Question, Quiet, Snapshot, Store, Strategy as By,
    Target, VectorSearch, triple,
};
use proptest::prelude::*;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a document is in the end.
#[derive(Clone, Copy, Debug)]
struct Content {
    text: usize,
    relation: Option<usize>,
    vector: Option<usize>,
}

/// How a content comes to be in a store.
#[derive(Clone, Debug)]
struct History {
    /// Numbers that documents are put in the order of.
    order: Vec<u32>,
    /// Documents of a batch.
    together: usize,
    /// For each document what was there before it, if anything.
    before: Vec<Option<Content>>,
    /// Documents that come between the others and go again.
    gone: Vec<Content>,
    /// Whether these go before the others are complete or at the end.
    gone_early: bool,
    fanout: usize,
    threads: usize,
    compact: bool,
}

const TEXTS: [&str; 7] = [
    "Alice owns Bridge. It is old.",
    "The old Bridge of Dover, by ALICE.",
    "Carol met ALICE in Ely.",
    "Ely owns Dover. alice owns Ely",
    "BRIDGE owns Carol.",
    "McAlice and Mcalice went over the bridge to Dover.",
    "Ely.",
];
const RELATIONS: [(&str, &str, f32); 5] = [
    ("Alice", "Carol", 1.0),
    ("ALICE", "Dover", 0.1),
    ("Alice", "dover", 16_777_216.0),
    ("Zoe", "bridge", 0.7),
    ("ZOE", "Bridge", 3.0e-8),
];
const VECTORS: [[f32; 2]; 3] = [[0.6, 0.8], [0.8, 0.6], [-1.0, 0.2]];

fn content() -> impl Strategy<Value = Content> {
    let (relation, vector) = (prop::option::of(0..RELATIONS.len()), prop::option::of(0..VECTORS.len()));
    (0..TEXTS.len(), relation, vector).prop_map(|(text, relation, vector)| Content { text, relation, vector })
}

fn histories(documents: usize) -> impl Strategy<Value = History> {
    (
        prop::collection::vec(any::<u32>(), documents),
        1..documents + 1,
        prop::collection::vec(prop::option::weighted(0.3, content()), documents),
        prop::collection::vec(content(), 0..4),
        any::<bool>(),
        2..6_usize,
        prop::sample::select(vec![1, 2, 4_usize]),
        any::<bool>(),
    )
        .prop_map(|(order, together, before, gone, gone_early, fanout, threads, compact)| History {
            order,
            together,
            before,
            gone,
            gone_early,
            fanout,
            threads,
            compact,
        })
}

#[derive(Clone, Debug)]
struct Case {
    contents: Vec<Content>,
    one: History,
    other: History,
    refreshed: bool,
}

fn cases() -> impl Strategy<Value = Case> {
    (1..9_usize).prop_flat_map(|documents| {
        let contents = prop::collection::vec(content(), documents);
        (contents, histories(documents), histories(documents), prop::bool::weighted(0.7))
            .prop_map(|(contents, one, other, refreshed)| Case { contents, one, other, refreshed })
    })
}

proptest! {
    #![proptest_config(crate::stores::cases(40))]

    #[test]
    fn two_histories_of_one_content_answer_alike(case in cases()) {
        let answers = [&case.one, &case.other].map(|history| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(history.threads).build().expect("threads can be had");
            pool.install(|| {
                let place = Place::new();
                live(&place, &case.contents, history, case.refreshed);
                answers(&place.read())
            })
        });
        let [one, other] = answers;
        for (question, answer) in &one {
            prop_assert_eq!(Some(answer), other.get(question), "{}", question);
        }
        prop_assert_eq!(one.len(), other.len());
    }
}

/// Puts documents into a batch, with what was said about them.
fn put(store: &Store, batch: &mut Batch, documents: &[(String, Content)]) {
    let given = documents.iter().map(|(key, content)| document(key, TEXTS[content.text])).collect();
    PIPELINE.stage(&store.snapshot(), given, batch, &Quiet).expect("no one cancels");
    for (key, content) in documents {
        if let Some((subject, object, weight)) = content.relation.map(|number| RELATIONS[number]) {
            let relation = triple((subject, ""), "knows", (object, "person"), weight).expect("it is a triple");
            batch.relate(Target { document: key.clone(), chunk: Some(0) }, relation);
        }
        if let Some(number) = content.vector {
            batch.set_vector(Target { document: key.clone(), chunk: None }, vector(&VECTORS[number]));
        }
    }
}

fn commit(store: &Store, documents: &[(String, Content)]) {
    let mut batch = Batch::default();
    put(store, &mut batch, documents);
    store.commit(batch).expect("the batch is sound");
}

/// Makes a content along a history.
fn live(place: &Place, contents: &[Content], history: &History, refreshed: bool) {
    let mut env = Env::folder(&place.path()).expect("it is a folder");
    env.merging = Merging { fanout: history.fanout, ..Merging::default() };
    let store = Store::open_or_create_in(env).expect("the store opens");
    let key = |row: usize| format!("d{row}");
    let early = history.before.iter().enumerate().filter_map(|(row, before)| Some((key(row), (*before)?)));
    let early: Vec<(String, Content)> = early.collect();
    let gone: Vec<(String, Content)> =
        history.gone.iter().enumerate().map(|(row, content)| (format!("gone {row}"), *content)).collect();
    let leave = || {
        let mut batch = Batch::default();
        for (key, _) in &gone {
            batch.delete(key);
        }
        store.commit(batch).expect("the batch is sound");
    };
    // A document that is given as it is already there keeps what was said about it, so a replaced one goes first.
    commit(&store, &early);
    commit(&store, &gone);
    let mut away = Batch::default();
    for (key, _) in &early {
        away.delete(key);
    }
    store.commit(away).expect("the batch is sound");
    if history.gone_early {
        leave();
    }
    let mut documents: Vec<(String, Content)> =
        contents.iter().enumerate().map(|(row, content)| (key(row), *content)).collect();
    documents.sort_by_key(|(key, _)| history.order[key[1..].parse::<usize>().expect("it is a number")]);
    documents.chunks(history.together).for_each(|together| commit(&store, together));
    if !history.gone_early {
        leave();
    }
    if history.compact {
        store.compact(&Quiet).expect("the store can be compacted");
    }
    if refreshed {
        store.build_edges("letters", &EdgeRules::new(30_000, 2), &Quiet).expect("edges can be built");
        store.refresh(&Quiet).expect("the store can be brought in step");
    }
}

fn json(answer: &impl Serialize) -> Value {
    let mut json = serde_json::to_value(answer).expect("answers are JSON");
    blank(&mut json);
    json
}

/// Takes out what a history may show in: numbers of commits, and how content is laid out in files.
fn blank(json: &mut Value) {
    match json {
        Value::Object(fields) => {
            for field in ["generation", "segments", "segment_bytes", "projection_bytes"] {
                fields.remove(field);
            }
            fields.values_mut().for_each(blank);
        }
        Value::Array(list) => list.iter_mut().for_each(blank),
        _ => {}
    }
}

/// Everything that can be asked, by what it was.
fn answers(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let mut answers = BTreeMap::new();
    let mut add = |question: String, answer: Value| drop(answers.insert(question, answer.to_string()));
    for text in ["Who owns the old Bridge?", "Alice and Dover", "Carol in Ely", "bridge", ""] {
        for filter in ["", r#"key = "d1""#, r#"kind = "text" and not title ~ "2""#] {
            let filter = (!filter.is_empty()).then(|| Filter::parse(filter).expect("it is a filter"));
            let found = snapshot.search_terms(text, filter.as_ref(), 3).expect("terms can be searched");
            add(format!("terms {text} {filter:?}"), json(&found));
            for strategy in [By::Flat, By::Graph] {
                let question =
                    Question { strategy, filter: filter.clone(), neighbours: 1, seeds: 2, ..Question::new(text) };
                add(format!("ask {question:?}"), json(&snapshot.ask(&question, MODELS).expect("it has an answer")));
            }
        }
        let comparison = snapshot.compare(&Question::new(text), MODELS).expect("it has an answer");
        add(format!("compare {text}"), json(&comparison));
    }
    if snapshot.spaces().is_ok_and(|spaces| !spaces.is_empty()) {
        for components in VECTORS {
            let found = snapshot.search_vectors("letters", &vector(&components).components, &VectorSearch::new(3));
            add(format!("vectors {components:?}"), json(&found.expect("vectors can be searched")));
        }
    }
    let lists = [snapshot.list_documents(5), snapshot.list_entities(5), snapshot.list_relations(3)];
    lists
        .into_iter()
        .enumerate()
        .for_each(|(row, list)| add(format!("list {row}"), json(&list.expect("it can be listed"))));
    add("stats".into(), json(&snapshot.stats().expect("the store can be counted")));
    for key in keys(snapshot) {
        let node = snapshot.find(&key).expect("what is listed is there");
        for limit in [2, 100] {
            add(format!("describe {key} {limit}"), json(&snapshot.describe(node, limit).expect("it can be described")));
        }
        for (hops, fan_out, limit) in [(1, 64, 50), (3, 2, 9), (2, 64, 6)] {
            let options = ExpandOptions { hops, fan_out, limit, ..ExpandOptions::default() };
            let expansion = snapshot.expand(&[node], &options).expect("it can be expanded");
            add(format!("expand {key} {options:?}"), json(&expansion));
        }
    }
    answers
}

/// Keys of all documents, chunks and entities.
fn keys(snapshot: &Snapshot) -> Vec<String> {
    let mut keys = Vec::new();
    for listing in [snapshot.list_documents(usize::MAX), snapshot.list_entities(usize::MAX)] {
        match listing.expect("it can be listed") {
            Listing::Documents(lines) => {
                keys.extend(
                    lines.iter().flat_map(|line| [format!("doc:{}", line.key), format!("chunk:{}#0", line.key)]),
                );
            }
            Listing::Entities(lines) => keys.extend(lines.iter().map(|line| format!("entity:{}", line.name))),
            Listing::Relations(_) | Listing::Communities(_) => {}
        }
    }
    keys
}
