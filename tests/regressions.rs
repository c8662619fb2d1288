//! Faults that a review or a fuzzer found once, so that their kind does not come back.

use crate::checks;
use crate::stores::{MODELS, Place, change, document, put, texts, vector};
use hedgerow::{Batch, Document, Env, Filter, Question, Quiet, Snapshot, StagedVector, Target, VectorSearch, verify};
use hedgerow::{Planted, plant};
use hedgerow_format::head::Head;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn target(document: &str, chunk: Option<u32>) -> Target {
    Target { document: document.into(), chunk }
}

#[test]
fn two_vectors_for_one_chunk_under_two_names_are_one_and_the_later_stays() {
    let place = Place::new();
    let store = place.open();
    put(&store, &[("a", "One."), ("b", "Two.")]);
    for (first, second) in [(None, Some(0)), (Some(0), None)] {
        let mut batch = Batch::default();
        let other = |components: &[f32]| StagedVector { space: "other".into(), ..vector(components) };
        batch.set_vector(target("a", first), other(&[1.0]));
        batch.set_vector(target("a", second), other(&[0.6, 0.8]));
        store.commit(batch).expect("the batch is sound");
        let question = &vector(&[0.6, 0.8]).components;
        let found = place.read().search_vectors("other", question, &VectorSearch::new(5)).expect("the space is there");
        assert_eq!((found.len(), found[0].key.as_str(), found[0].score), (1, "a#0", 1.0));
        assert_eq!(problems(&place), Vec::<String>::new());
    }
}

#[test]
fn a_folder_that_a_copy_left_out_is_made_again() {
    let place = Place::new();
    put(&place.open(), &[("a", "Alice owns Bridge.")]);
    fs::remove_dir_all(place.path().join("projections")).expect("the folder is there");
    let store = place.open();
    store.refresh(&Quiet).expect("links can be written");
    assert!(store.snapshot().incomplete().is_empty());
}

#[test]
fn readers_and_verify_beside_a_writer_see_whole_generations_and_no_faults() {
    let place = Place::new();
    let store = place.open();
    put(&store, &[("a", "Alice owns Bridge.")]);
    store.refresh(&Quiet).expect("links can be written");
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let read = || {
            let (mut generation, mut opened) = (0, 0);
            while !done.load(Ordering::Relaxed) {
                let snapshot = Snapshot::open(place.path()).expect("a generation is always published");
                assert!(snapshot.generation() >= generation, "generations only grow");
                generation = snapshot.generation();
                assert_eq!(snapshot.faults().messages, Vec::<String>::new());
                let held = texts(&snapshot);
                assert!(held.len() == 1 || held.len() == 3, "a batch is seen whole or not at all: {held:?}");
                opened += 1;
            }
            opened
        };
        let readers = [threads.spawn(read), threads.spawn(read)];
        let verifier = threads.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                assert_eq!(problems(&place), Vec::<String>::new());
            }
        });
        for round in 0..40 {
            let put = vec![document("b", &format!("Ely owns Dover {round}.")), document("c", "Carol met Alice.")];
            change(&store, put, &[]);
            store.refresh(&Quiet).expect("links can be written");
            change(&store, Vec::new(), &["b", "c"]);
        }
        done.store(true, Ordering::Relaxed);
        verifier.join().expect("verify found nothing");
        for reader in readers {
            assert!(reader.join().expect("the reader saw no fault") > 0);
        }
    });
}

#[test]
fn nearest_neighbours_are_as_many_as_asked_for_whenever_they_match_the_filter() {
    let place = Place::new();
    let store = place.open();
    let documents = (0_u8..40).map(|number| {
        let mut given = document(&format!("d{number:02}"), &format!("Alice {number}."));
        given.metadata.insert("odd".into(), (number % 2 == 1).into());
        given
    });
    change(&store, documents.collect(), &[]);
    let mut batch = Batch::default();
    for number in 0_u8..40 {
        let angle = f32::from(number) * 0.07;
        let space = StagedVector { space: "arc".into(), ..vector(&[angle.cos(), angle.sin()]) };
        batch.set_vector(target(&format!("d{number:02}"), None), space);
    }
    store.commit(batch).expect("the batch is sound");
    let odd = Filter::parse("metadata.odd = true").expect("it is a filter");
    let snapshot = place.read();
    let search = |count| VectorSearch { filter: Some(&odd), ..VectorSearch::new(count) };
    let find = |count| snapshot.search_vectors("arc", &vector(&[1.0]).components, &search(count));
    let keys = |count| find(count).expect("the space is there").into_iter().map(|found| found.key).collect::<Vec<_>>();
    assert_eq!(keys(3), ["d01#0", "d03#0", "d05#0"]);
    // The last ones point the other way: their cosine is below zero, and they match all the same.
    assert_eq!(keys(20).len(), 20);
    assert_eq!(keys(50).len(), 20);
}

#[test]
fn a_head_of_another_store_with_the_highest_generation_does_no_harm() {
    let place = Place::new();
    put(&place.open(), &[("a", "Alice owns Bridge.")]);
    let foreign = Head::new([9; 16], u64::MAX, 1, 1, [0; 32]);
    fs::write(place.path().join("HEAD"), foreign.to_bytes()).expect("HEAD can be written");
    put(&place.open(), &[("b", "Ely owns Dover.")]);
    assert_eq!(texts(&place.read()).len(), 2);
    assert_eq!(problems(&place), Vec::<String>::new());
}

#[test]
fn a_question_in_lower_case_names_the_titles_that_it_holds() {
    let place = Place::new();
    let titled = |key: &str, title: &str, text: &str| Document::new(key).title(title).text(text);
    let documents = vec![
        titled("moon", "The Dark Side of the Moon", "A record of 1973."),
        titled("other", "Meddle", "A record of 1971."),
        titled("third", "Animals", "A record of 1977."),
    ];
    change(&place.open(), documents, &[]);
    place.open().refresh(&Quiet).expect("links can be written");
    let question = Question::new("who played on the dark side of the moon, and on meddle?");
    let context = place.read().ask(&question, MODELS).expect("the question has an answer");
    let names: Vec<&str> = context.trace.names.iter().map(|name| name.entity.as_str()).collect();
    // A title of one word needs its capital: `meddle` is a word as well.
    assert_eq!(names, ["The Dark Side of the Moon"]);
}

/// Every target's corpus: what it starts from, made by the program, and what found something once. With
/// `UPDATE_CORPUS=1` the former is written again.
#[test]
fn the_fuzzers_corpus_finds_nothing() {
    let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus"));
    let mut bytes = 0;
    for check in checks::ALL {
        let folder = corpus.join(check.name);
        for (number, seed) in (check.seeds)().into_iter().enumerate() {
            if std::env::var_os("UPDATE_CORPUS").is_some() {
                fs::create_dir_all(&folder).expect("the corpus can be written");
                fs::write(folder.join(format!("seed-{number:02}")), &seed).expect("the corpus can be written");
            }
            replay(check.name, &format!("seed {number}"), &seed);
        }
        for entry in fs::read_dir(&folder).expect("the corpus is in the repository") {
            let path = entry.expect("a file").path();
            let input = fs::read(&path).expect("a file");
            replay(check.name, &path.to_string_lossy(), &input);
            bytes += input.len();
        }
    }
    assert!((1..1 << 20).contains(&bytes), "the corpus has {bytes} bytes");
}

#[test]
fn the_fuzzers_operations_see_faults_that_are_put_in() {
    let operations = checks::ALL.iter().find(|check| check.name == "operations").expect("it is a target");
    let mut unseen = Vec::new();
    // Those that the inputs it starts from are enough for; the rest needs crashes at one call in thousands.
    for fault in [
        Planted::CatalogInPlace,
        Planted::NoPublishAtOpen,
        Planted::SweepsProjections,
        Planted::StaleBelieved,
        Planted::TombstonesLost,
        Planted::DeadKept,
        Planted::DocumentDropped,
    ] {
        let seen = std::panic::catch_unwind(|| {
            plant(Some(fault));
            for seed in (operations.seeds)() {
                checks::run(operations.name, &seed);
            }
        });
        plant(None);
        unseen.extend(seen.is_ok().then_some(fault));
    }
    assert_eq!(unseen, []);
}

fn replay(target: &str, name: &str, input: &[u8]) {
    let outcome = std::panic::catch_unwind(|| checks::run(target, input));
    assert!(outcome.is_ok(), "{target} fails on {name}");
}

fn problems(place: &Place) -> Vec<String> {
    verify(&Env::folder(&place.path()).expect("it is a folder"), &Quiet).expect("there is a store").problems
}

/// A commit that fails may be there or not, and an extraction shows in what is asked only once links are in step: the
/// fuzzer's check took the one for the other.
#[test]
fn a_failed_commit_of_an_extraction_is_told_apart_while_links_are_behind() {
    let mut input = vec![0, 0, 4, 0];
    input.extend([151; 9]);
    input.extend([0, 0, 0, 1, 3, 0, 1, 14, 9, 0, 1, 4, 7, 0, 1, 13, 0, 2, 11, 0, 0]);
    checks::run("operations", &input);
}
