//! Small stores in temporary folders.

pub use hedgerow_durability::{Capitals, Letters, MODELS, Numbers, PIPELINE, document, unit_vector as vector};

use hedgerow::{Batch, Committed, Context, Document, Env, Listing, Question, Quiet, Snapshot, Staged, Store, Strategy};
use proptest::test_runner::{Config as ProptestConfig, RngSeed};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A store that is gone when this is dropped.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self { folder: TempDir::new().expect("there is room for a temporary folder") }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub fn open(&self) -> Store {
        Store::open_or_create(self.path()).expect("the store opens")
    }

    /// A store whose segments stay as their commits wrote them.
    pub fn open_unmerged(&self) -> Store {
        let mut env = Env::folder(&self.path()).expect("it is a folder");
        env.merging.bytes = 0;
        Store::open_or_create_in(env).expect("the store opens")
    }

    pub fn read(&self) -> Snapshot {
        Snapshot::open(self.path()).expect("the store opens for reading")
    }
}

/// Stages documents, deletes others, and commits both at once; projections are behind afterwards.
pub fn change(store: &Store, put: Vec<Document>, delete: &[&str]) -> (Staged, Committed) {
    let mut batch = Batch::default();
    let staged = PIPELINE.stage(&store.snapshot(), put, &mut batch, &Quiet).expect("no one cancels");
    for key in delete {
        batch.delete(key);
    }
    (staged, store.commit(batch).expect("the batch is sound"))
}

/// Puts documents and brings the projections in step.
pub fn put(store: &Store, documents: &[(&str, &str)]) -> Committed {
    let documents = documents.iter().map(|(key, text)| document(key, text)).collect();
    let (staged, committed) = change(store, documents, &[]);
    assert_eq!(staged.rejected, []);
    store.refresh(&Quiet).expect("the store can be brought in step");
    committed
}

/// Asks with both simple models.
pub fn ask(snapshot: &Snapshot, question: &str, strategy: Strategy) -> Context {
    let question = Question { strategy, ..Question::new(question) };
    snapshot.ask(&question, MODELS).expect("the question has an answer")
}

/// What an answer says, whatever number its generation has.
pub fn said(mut context: Context) -> Context {
    context.trace.generation = 0;
    context
}

/// Every document's key and text.
pub fn texts(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let Listing::Documents(lines) = snapshot.list_documents(usize::MAX).expect("documents can be listed") else {
        panic!("documents are listed as documents");
    };
    let text = |key: &str| {
        let found = snapshot.find_document(key).expect("a document can be found");
        found.expect("what is listed is there").text().expect("its text can be read")
    };
    lines.into_iter().map(|line| (line.key.clone(), text(&line.key))).collect()
}

/// Names of all live entities.
pub fn entities(snapshot: &Snapshot) -> Vec<String> {
    let Listing::Entities(lines) = snapshot.list_entities(usize::MAX).expect("entities can be listed") else {
        panic!("entities are listed as entities");
    };
    let mut names: Vec<String> = lines.into_iter().map(|line| line.name).collect();
    names.sort();
    names
}

/// All live relations as `subject predicate object weight [evidence]`.
pub fn relations(snapshot: &Snapshot) -> Vec<String> {
    let Listing::Relations(lines) = snapshot.list_relations(usize::MAX).expect("relations can be listed") else {
        panic!("relations are listed as relations");
    };
    let line = |line: &hedgerow::RelationLine| {
        format!("{} {} {} {} {:?}", line.subject, line.predicate, line.object, line.weight, line.evidence)
    };
    lines.iter().map(line).collect()
}

/// Every file of a store by its path inside it.
pub fn files(store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![store.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the store's folders can be read") {
            let path = entry.expect("the store's folders can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let bytes = fs::read(&path).expect("the store's files can be read");
                found.insert(path.strip_prefix(store).expect("it is inside").to_owned(), bytes);
            }
        }
    }
    found
}

/// As many cases as said, or as `PROPTEST_CASES` says; the same ones every time unless `PROPTEST_RNG_SEED` names others,
/// so that a run of the tests can be repeated.
pub fn cases(count: u32) -> ProptestConfig {
    let mut config = ProptestConfig::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = count;
    }
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(1848);
    }
    config
}
