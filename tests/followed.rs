//! Links that follow a store from one generation to the next are those that are made of all its text.

use crate::stores::{Place, cases};
use hedgerow::{
    Batch, Control, Document, Env, Merging, Pipeline, Quiet, StagedEntity, StagedExtraction, Store, Target, triple,
};
use hedgerow_cli::extract::Patterns;
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What texts and titles are made of: names of one word and of several, the same in lower case and at the start of a
/// sentence, stop words, code, other languages, scripts without spaces, definitions, marks that folding drops.
const PARTS: [&str; 40] = [
    "Pink Floyd",
    "pink",
    "Pink",
    "The Wall",
    "wall",
    "Wall",
    "the",
    "of",
    "It",
    "Who",
    "Fork",
    "fork",
    "fork()",
    "pin_all",
    "Pin",
    "store::pin",
    "1984",
    "Été",
    "ete",
    "東京タワー",
    "東京",
    "京",
    "iPhone用",
    "서울에",
    "กรุงเทพ",
    "fo\u{e38}o",
    "Foo",
    "der Hund ist in dem Haus und bellt",
    "Größe",
    "grosse",
    "Häuser",
    ".",
    ".",
    ". The",
    "!",
    ".\n**Slot**: a place at a gate\n",
    ".\n- Gate: where all of them go\n",
    "Slot",
    "Floyd The Wall",
    "Gate",
];

type Words = Vec<usize>;

#[derive(Clone, Debug)]
enum Step {
    Put(u8, Words, Words),
    Delete(u8),
    Relate(u8, usize, usize),
    Extract(u8, usize, usize),
    Refresh,
    Compact,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let words = |length| prop::collection::vec(0..PARTS.len(), length);
    let step = prop_oneof![
        8 => (0..7_u8, words(0..3), words(0..14)).prop_map(|(key, title, text)| Step::Put(key, title, text)),
        2 => (0..7_u8).prop_map(Step::Delete),
        1 => (0..7_u8, 0..PARTS.len(), 0..PARTS.len()).prop_map(|(key, one, other)| Step::Relate(key, one, other)),
        2 => (0..7_u8, 0..PARTS.len(), 0..PARTS.len()).prop_map(|(key, one, other)| Step::Extract(key, one, other)),
        6 => Just(Step::Refresh),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..40)
}

fn said(words: &[usize]) -> String {
    words.iter().map(|word| PARTS[*word]).collect::<Vec<_>>().join(" ")
}

fn stage(store: &Store, document: Document, batch: &mut Batch) {
    let pipeline = Pipeline { chunking: None, embedder: None, extractor: Some(&Patterns) };
    pipeline.stage(&store.snapshot(), vec![document], batch, &Quiet).expect("no one cancels");
}

fn open(path: &Path, fanout: usize) -> Store {
    let mut env = Env::folder(path).expect("it is a folder");
    env.merging = Merging { fanout, ..Merging::default() };
    Store::open_or_create_in(env).expect("the store opens")
}

/// The links projection's sections and tables.
fn links(store: &Path) -> (PathBuf, Vec<u8>) {
    let files = fs::read_dir(store.join("projections")).expect("there are projections");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("the folder can be read").path()).collect();
    files.sort();
    let newest = files.pop().expect("there are links");
    let bytes = fs::read(&newest).expect("the links can be read").split_off(256);
    (newest, bytes)
}

/// The same of a copy of the store whose links are lost and made of all text.
fn made_of_all_text(store: &Path) -> Vec<u8> {
    let place = Place::new();
    for folder in ["manifests", "projections", "segments"] {
        fs::create_dir_all(place.path().join(folder)).expect("a folder can be made");
        for file in fs::read_dir(store.join(folder)).expect("the store has its folders") {
            let file = file.expect("the folder can be read");
            fs::copy(file.path(), place.path().join(folder).join(file.file_name())).expect("a file can be copied");
        }
    }
    for file in ["HEAD", "catalog.redb"] {
        fs::copy(store.join(file), place.path().join(file)).expect("a file can be copied");
    }
    fs::remove_file(links(&place.path()).0).expect("the links can be removed");
    place.open().refresh(&Quiet).expect("the links can be made");
    links(&place.path()).1
}

fn check(steps: &[Step], fanout: usize) -> Result<(), TestCaseError> {
    let place = Place::new();
    let mut store = open(&place.path(), fanout);
    for step in steps {
        let mut batch = Batch::default();
        match step {
            Step::Put(key, title, text) => {
                let document = Document::new(format!("{key}.txt")).title(said(title)).text(said(text));
                stage(&store, document, &mut batch);
            }
            Step::Delete(key) => batch.delete(&format!("{key}.txt")),
            Step::Relate(key, one, other) => {
                let document = format!("{key}.txt");
                let snapshot = store.snapshot();
                let known = snapshot.find_document(&document).expect("it can be looked for");
                let chunk = known.filter(|known| known.chunks().next().is_some()).map(|_| 0);
                let relation = triple((PARTS[*one], ""), "knows", (PARTS[*other], "person"), 1.0);
                if let (Some(_), Ok(relation)) = (known, relation) {
                    batch.relate(Target { document, chunk }, relation);
                }
            }
            Step::Extract(key, one, other) => {
                let document = format!("{key}.txt");
                let snapshot = store.snapshot();
                let known = snapshot.find_document(&document).expect("it can be looked for");
                let known = known.is_some_and(|known| known.chunks().next().is_some());
                let entities = StagedEntity::new(PARTS[*one], "thing").into_iter().collect();
                let relations = triple((PARTS[*one], ""), "near", (PARTS[*other], ""), 1.0).into_iter().collect();
                let extraction = StagedExtraction { extractor: "x".into(), model: "m".into(), entities, relations };
                if known {
                    batch.set_extraction(Target { document, chunk: Some(0) }, extraction);
                }
            }
            Step::Refresh => {
                store.refresh(&Quiet).expect("the links can be followed");
                if store.snapshot().generation() > 0 {
                    prop_assert!(links(&place.path()).1 == made_of_all_text(&place.path()), "other links");
                }
            }
            Step::Compact => drop(store.compact(&Quiet).expect("the store can be compacted")),
            Step::Reopen => {
                drop(store);
                store = open(&place.path(), fanout);
            }
        }
        store.commit(batch).expect("the batch is sound");
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn links_that_follow_any_history_are_those_made_of_all_text(steps in steps(), fanout in 2..5_usize) {
        check(&steps, fanout)?;
    }
}

/// Hears how much there is to read.
#[derive(Default)]
struct Heard(AtomicU64);

impl Control for Heard {
    fn advance(&self, _: u64, total: u64) {
        self.0.store(total, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        false
    }
}

#[test]
fn a_document_that_is_written_again_and_again_is_followed_though_merges_take_its_text() {
    let place = Place::new();
    let store = open(&place.path(), 2);
    let mut batch = Batch::default();
    for key in 0..20 {
        stage(&store, Document::new(key.to_string()).title(format!("Name {key}")).text("The Wall."), &mut batch);
    }
    store.commit(batch).expect("the batch is sound");
    store.refresh(&Quiet).expect("the links can be made");
    for round in 0..6 {
        let mut batch = Batch::default();
        stage(&store, Document::new("7").title("Name 7").text(format!("Wall {round} of Name {round}")), &mut batch);
        store.commit(batch).expect("the batch is sound");
        let heard = Heard::default();
        store.refresh(&heard).expect("the links can be followed");
        assert_eq!(heard.0.load(Ordering::Relaxed), 2, "one chunk went and one came");
        assert!(links(&place.path()).1 == made_of_all_text(&place.path()), "other links in round {round}");
    }
}

#[test]
fn a_chunk_whose_extraction_was_replaced_mentions_what_the_new_one_says() {
    let place = Place::new();
    let store = open(&place.path(), 4);
    let extract = |batch: &mut Batch, name: &str| {
        let entities = StagedEntity::new(name, "thing").into_iter().collect();
        let (extractor, model) = ("x".to_owned(), "m".to_owned());
        let extraction = StagedExtraction { extractor, model, entities, relations: Vec::new() };
        batch.set_extraction(Target { document: "a".into(), chunk: Some(0) }, extraction);
    };
    let mut batch = Batch::default();
    stage(&store, Document::new("a").text("nothing is named here"), &mut batch);
    // Both names stay known by other documents.
    stage(&store, Document::new("b").title("Gate").text("A Gate stands beside a Slot."), &mut batch);
    stage(&store, Document::new("c").title("Slot").text("A Slot stands beside a Gate."), &mut batch);
    extract(&mut batch, "Gate");
    store.commit(batch).expect("the batch is sound");
    store.refresh(&Quiet).expect("the links can be made");
    let mut batch = Batch::default();
    extract(&mut batch, "Slot");
    store.commit(batch).expect("the batch is sound");
    store.refresh(&Quiet).expect("the links can be followed");
    assert!(links(&place.path()).1 == made_of_all_text(&place.path()), "other links");
}
