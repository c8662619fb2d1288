//! The vector index: what it finds is scored exactly, it follows writes, and it never hides what it does not cover.

mod bench;
mod nearest;

use crate::stores::Numbers;
use hedgerow::{
    Batch, Env, Filter, Found, QueryError, QueryLimits, Quiet, Recall, Snapshot, StagedChunk, StagedDocument,
    StagedVector, Store, Target, VectorSearch, dot,
};
use hedgerow_durability::Disk;
use std::collections::BTreeMap;
use std::sync::Arc;

const DIMENSIONS: usize = 24;

/// Vectors by the name of their document.
type Vectors = BTreeMap<String, Vec<f32>>;

/// A store on a simulated disk whose spaces have an index from 100 vectors on.
fn opened(disk: &Disk) -> Store {
    let mut env = Env::seeded(Arc::new(disk.clone()), 7);
    env.index_from = 100;
    Store::open_or_create_in(env).expect("the store opens")
}

/// A vector near one of a few centres, so that there is something to find.
fn vector(numbers: &mut Numbers) -> Vec<f32> {
    let centre = numbers.below(12);
    let mut of_centre = Numbers(centre as u64 + 100);
    let draw = |numbers: &mut Numbers| f32::from(u8::try_from(numbers.below(200)).expect("below 200")) - 99.5;
    let mut components: Vec<f32> = (0..DIMENSIONS).map(|_| 2.0 * draw(&mut of_centre) + draw(numbers)).collect();
    hedgerow::normalise(&mut components).expect("it has a direction");
    components
}

fn document(name: &str, components: &[f32]) -> StagedDocument {
    let vectors = vec![StagedVector { space: "v".into(), model: "m".into(), components: components.to_vec() }];
    let number: u32 = name.bytes().map(u32::from).sum();
    let metadata = format!("{{\"tenth\":{},\"half\":{},\"all\":0}}", number % 10, number % 2);
    let chunks = vec![StagedChunk { range: 0..1, vectors, metadata, ..StagedChunk::default() }];
    let mut fingerprint = [0; 16];
    for (place, byte) in fingerprint.iter_mut().zip(components.iter().flat_map(|x| x.to_le_bytes())) {
        *place = byte;
    }
    StagedDocument { name: name.to_owned(), text: "x".into(), chunks, fingerprint, ..StagedDocument::default() }
}

/// Puts so many new documents.
fn add(store: &Store, live: &mut Vectors, numbers: &mut Numbers, names: impl Iterator<Item = usize>) {
    let mut batch = Batch::default();
    for name in names {
        let (name, components) = (format!("{name:05}"), vector(numbers));
        batch.put(document(&name, &components));
        live.insert(name, components);
    }
    store.commit(batch).expect("the batch is sound");
}

/// The nearest by comparing all, those with equal cosines in the order of keys.
fn nearest(live: &Vectors, question: &[f32], count: usize, allowed: impl Fn(&str) -> bool) -> Vec<(String, f32)> {
    let scored = live.iter().filter(|(name, _)| allowed(name));
    let mut scored: Vec<(String, f32)> = scored.map(|(name, row)| (format!("{name}#0"), dot(question, row))).collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    scored.truncate(count);
    scored
}

fn pairs(found: Vec<Found>) -> Vec<(String, f32)> {
    found.into_iter().map(|found| (found.key, found.score)).collect()
}

/// Asks a few questions: exact answers are exact, others find nearly all, and whatever is found has its own cosine. Gives what
/// share of the nearest the others found.
fn ask(snapshot: &Snapshot, live: &Vectors, numbers: &mut Numbers) -> f64 {
    let (mut found, mut wanted) = (0, 0);
    let search = |recall| VectorSearch { recall, ..VectorSearch::new(10) };
    let none = VectorSearch { recall: Recall::Exact, ..VectorSearch::new(0) };
    let nothing = snapshot.search_vectors_all("v", &[vector(numbers)], &none).expect("it is answered");
    assert_eq!(nothing, [Vec::new()]);
    // More than fit into one tile.
    let questions: Vec<Vec<f32>> = (0..40).map(|_| vector(numbers)).collect();
    for recall in [Recall::Exact, Recall::At99] {
        let together = snapshot.search_vectors_all("v", &questions, &search(recall)).expect("they are answered");
        let alone = questions.iter().map(|one| snapshot.search_vectors("v", one, &search(recall)));
        assert_eq!(Ok(together), alone.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string()));
    }
    for question in questions {
        let expected = nearest(live, &question, 10, |_| true);
        let ask = |recall| pairs(snapshot.search_vectors("v", &question, &search(recall)).expect("it is answered"));
        assert_eq!(ask(Recall::Exact), expected);
        for recall in [Recall::At95, Recall::At99, Recall::Beam(30)] {
            let answer = ask(recall);
            assert_eq!(answer.len(), expected.len(), "as many come as are wanted");
            for (key, score) in &answer {
                let name = key.trim_end_matches("#0");
                assert_eq!(score.to_bits(), dot(&question, &live[name]).to_bits(), "{key} has its own cosine");
            }
            found += answer.iter().filter(|one| expected.contains(one)).count();
            wanted += expected.len();
        }
    }
    f64::from(u32::try_from(found).expect("few")) / f64::from(u32::try_from(wanted).expect("few"))
}

#[test]
fn an_index_follows_writes_and_finds_what_is_nearest() {
    let (disk, mut live, mut numbers) = (Disk::default(), Vectors::new(), Numbers(5));
    let store = opened(&disk);
    add(&store, &mut live, &mut numbers, 0..1500);
    assert!(!indexed(&disk), "nothing is indexed before it is asked for");
    assert!(ask(&store.snapshot(), &live, &mut numbers) > 0.999, "without an index all are compared");
    store.refresh(&Quiet).expect("the store is sound");
    assert!(indexed(&disk));
    assert_eq!(store.snapshot().stats().expect("it is read").spaces[0].indexed, Some(1500));
    assert!(ask(&store.snapshot(), &live, &mut numbers) > 0.95);
    // Not yet covered; then covered.
    add(&store, &mut live, &mut numbers, 1400..1900);
    assert!(ask(&store.snapshot(), &live, &mut numbers) > 0.95);
    store.refresh(&Quiet).expect("the store is sound");
    assert!(ask(&store.snapshot(), &live, &mut numbers) > 0.95);
    // What is deleted is never found, before the index follows and after.
    let mut batch = Batch::default();
    let gone: Vec<String> = live.keys().step_by(3).cloned().collect();
    for name in gone {
        batch.delete(&name);
        live.remove(&name);
    }
    store.commit(batch).expect("the batch is sound");
    assert!(ask(&store.snapshot(), &live, &mut numbers) > 0.95);
    store.compact(&Quiet).expect("the store is sound");
    let covered = |store: &Store| store.snapshot().stats().expect("it is read").spaces[0].indexed;
    assert_eq!(covered(&store), Some(live.len() as u64), "a compaction lets the index follow");
    assert!(ask(&store.snapshot(), &live, &mut numbers) > 0.95);
    // Closing lets it follow where it lags, which it does not for a few.
    store.close().expect("the store is sound");
    for (added, follows) in [(20, false), (400, true)] {
        let (before, store) = (live.len(), opened(&disk));
        add(&store, &mut live, &mut numbers, 5000..5000 + added);
        store.close().expect("the store is sound");
        let store = opened(&disk);
        assert_eq!(covered(&store), Some(if follows { live.len() } else { before } as u64));
        assert!(ask(&store.snapshot(), &live, &mut numbers) > 0.95);
    }
    let store = opened(&disk);
    store.refresh(&Quiet).expect("the store is sound");
    assert!(ask(&store.snapshot(), &live, &mut numbers) > 0.95);
    let mut batch = Batch::default();
    for name in live.keys() {
        batch.delete(name);
    }
    store.commit(batch).expect("the batch is sound");
    store.refresh(&Quiet).expect("the store is sound");
    assert!(!indexed_by(&store), "nothing is left of an index of no vectors");
    let found = hedgerow::verify(&Env::seeded(Arc::new(disk), 7), &Quiet).expect("it is read");
    assert_eq!(found.problems, Vec::<String>::new());
}

fn indexed_by(store: &Store) -> bool {
    store.snapshot().has_vector_index("v")
}

#[test]
fn a_vector_that_was_replaced_hides_nothing_before_the_index_follows() {
    let (disk, mut live, mut numbers) = (Disk::default(), Vectors::new(), Numbers(11));
    let store = opened(&disk);
    add(&store, &mut live, &mut numbers, 0..300);
    store.refresh(&Quiet).expect("the store is sound");
    // The nearest ones of a question get vectors that are far from it.
    let question = vector(&mut numbers);
    let away: Vec<f32> = question.iter().map(|component| -component).collect();
    let mut batch = Batch::default();
    for (key, _) in nearest(&live, &question, 10, |_| true) {
        let document = key.trim_end_matches("#0").to_owned();
        let vector = StagedVector { space: "v".into(), model: "m".into(), components: away.clone() };
        batch.set_vector(Target { document: document.clone(), chunk: Some(0) }, vector);
        live.insert(document, away.clone());
    }
    store.commit(batch).expect("the batch is sound");
    for merged in [false, true] {
        if merged {
            store.compact(&Quiet).expect("the store is sound");
        }
        let expected = nearest(&live, &question, 10, |_| true);
        for recall in [Recall::Exact, Recall::At99, Recall::Beam(40)] {
            let search = VectorSearch { recall, ..VectorSearch::new(10) };
            let found = store.snapshot().search_vectors("v", &question, &search).expect("it is answered");
            assert_eq!(pairs(found), expected, "{recall:?}, merged: {merged}");
        }
    }
}

/// Whether there is a file of an index.
fn indexed(disk: &Disk) -> bool {
    disk.now().names().any(|name| name.to_string().ends_with(".vectors.prj"))
}

#[test]
fn as_many_come_as_a_filter_lets_through() {
    let (disk, mut live, mut numbers) = (Disk::default(), Vectors::new(), Numbers(9));
    let store = opened(&disk);
    add(&store, &mut live, &mut numbers, 0..3000);
    store.refresh(&Quiet).expect("the store is sound");
    let snapshot = store.snapshot();
    let number = |name: &str| name.bytes().map(u32::from).sum::<u32>();
    for (text, one_of) in
        [("metadata.tenth = 3", 10), ("metadata.half = 1", 2), ("metadata.all = 0", 1), ("metadata.tenth = 77", 0)]
    {
        let filter = Filter::parse(text).expect("it is a filter");
        let matches = |name: &str| one_of > 0 && number(name) % one_of == 3 % one_of;
        let set = snapshot.chunks_where(&filter).expect("it is read");
        let questions: Vec<Vec<f32>> = (0..30).map(|_| vector(&mut numbers)).collect();
        let exact = VectorSearch { within: Some(&set), recall: Recall::Exact, ..VectorSearch::new(10) };
        let together = snapshot.search_vectors_all("v", &questions, &exact).expect("they are answered");
        let (mut found, mut wanted) = (0, 0);
        for (question, together) in questions.iter().zip(together) {
            let expected = nearest(&live, question, 10, matches);
            assert_eq!(pairs(together), expected, "{text}: exactly those that match");
            for search in [
                VectorSearch { filter: Some(&filter), ..VectorSearch::new(10) },
                VectorSearch { within: Some(&set), ..VectorSearch::new(10) },
            ] {
                let answer = pairs(snapshot.search_vectors("v", question, &search).expect("it is answered"));
                assert_eq!(answer.len(), expected.len(), "{text}: as many come as match");
                assert!(answer.iter().all(|(key, _)| matches(key.trim_end_matches("#0"))), "{text}: and match");
                found += answer.iter().filter(|one| expected.contains(one)).count();
                wanted += expected.len();
            }
        }
        assert!(found * 100 >= wanted * 97, "{text}: {found} of {wanted}");
    }
}

#[test]
fn many_that_are_equally_near_stay_within_the_memory_of_a_query() {
    let (disk, mut numbers) = (Disk::default(), Numbers(3));
    let (store, same) = (opened(&disk), vector(&mut numbers));
    let mut batch = Batch::default();
    for row in 0..2000 {
        batch.put(document(&format!("{row:05}"), &same));
    }
    store.commit(batch).expect("the batch is sound");
    store.refresh(&Quiet).expect("the store is sound");
    let questions: Vec<Vec<f32>> = (0..300).map(|_| vector(&mut numbers)).collect();
    let search = VectorSearch { recall: Recall::Exact, ..VectorSearch::new(3) };
    let snapshot = store.snapshot();
    let ask = |memory_bytes| {
        let bounded = snapshot.bounded(QueryLimits { memory_bytes, ..QueryLimits::default() });
        bounded.search_vectors_all("v", &questions, &search)
    };
    for found in ask(1 << 30).expect("they are answered") {
        assert!(found.iter().map(|one| one.key.as_str()).eq(["00000#0", "00001#0", "00002#0"]), "{found:?}");
    }
    // All rows stay for each of the questions, which the room that each has at first does not tell.
    let refused = ask(8 << 20);
    assert!(matches!(refused, Err(QueryError::Memory { .. })), "{refused:?}");
}

#[test]
fn an_index_is_the_same_for_any_number_of_threads() {
    let files = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
        pool.install(|| {
            let (disk, mut live, mut numbers) = (Disk::default(), Vectors::new(), Numbers(5));
            let store = opened(&disk);
            for first in [0, 700] {
                add(&store, &mut live, &mut numbers, first..first + 800);
                store.refresh(&Quiet).expect("the store is sound");
            }
            let now = disk.now();
            let indexes = now.names().filter(|name| name.to_string().ends_with(".vectors.prj"));
            indexes.map(|name| now.bytes(&name).unwrap_or_default().to_vec()).collect::<Vec<_>>()
        })
    };
    let one = files(1);
    assert!(!one.is_empty());
    assert_eq!(one, files(2));
    assert_eq!(one, files(3));
}
