//! The golden file of the format's version: what was written once is read for ever, and written again just so.

use crate::stores::Place;
use hedgerow::{BackupOptions, Env, Quiet, Snapshot};
use hedgerow_durability::{Change, Model, RULES, Step, answers, live};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file beside the tests; its name says the format.
fn golden(ending: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/golden").join(format!("format-2.{ending}"))
}

/// A store with a history: what was replaced and deleted must leave no trace in its canonical form.
fn told(place: &Place) -> Snapshot {
    let store = place.open();
    let steps = [
        Step::Commit(vec![
            Change::Put(0, 0),
            Change::Put(1, 1),
            Change::Put(2, 2),
            Change::Relate(1, 0),
            Change::Extract(0, 0),
        ]),
        Step::Commit(vec![Change::Put(3, 3), Change::Delete(2), Change::Vector(0, 1), Change::Extract(0, 2)]),
        Step::Commit(vec![Change::Put(1, 4), Change::Relate(3, 1), Change::Put(4, 1)]),
    ];
    let mut model = Model::new();
    for step in &steps {
        model = live(&store, &model, step).expect("the batch is sound");
    }
    store.build_edges("letters", &RULES, &Quiet).expect("edges can be built");
    store.refresh(&Quiet).expect("the store can be brought in step");
    drop(store);
    place.read()
}

/// With `UPDATE_GOLDEN=1` the files are written again: only where the format's version changes.
#[test]
fn the_golden_pack_is_read_and_what_it_holds_is_written_the_same() {
    let (place, scratch) = (Place::new(), Place::new());
    let snapshot = told(&place);
    let disk = Arc::clone(&Env::folder(&scratch.path()).expect("it is a folder").disk);
    let store = hedgerow::canonical(&snapshot, disk, &Quiet).expect("what is whole can be copied");
    let written = scratch.path().with_extension("pack");
    store.snapshot().backup(&written, BackupOptions::default(), &Quiet).expect("there is room");
    let (bytes, said) = (fs::read(&written).expect("it was written"), answers(&snapshot).expect("it can be asked"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(golden("pack").parent().expect("it is in a folder")).expect("there is room");
        fs::write(golden("pack"), &bytes).expect("there is room");
        fs::write(golden("answers"), &said).expect("there is room");
    }
    let kept = Snapshot::open(golden("pack")).expect("the golden pack opens");
    let expected = fs::read_to_string(golden("answers")).expect("they are in the repository");
    for (line, expected) in answers(&kept).expect("it can be asked").lines().zip(expected.lines()) {
        assert_eq!(line, expected);
    }
    let verified = hedgerow::verify(&Env::folder(&golden("pack")).expect("it is a pack"), &Quiet);
    assert_eq!(verified.expect("it can be checked").problems, Vec::<String>::new());
    assert_eq!(said, expected);
    assert!(bytes == fs::read(golden("pack")).expect("it is in the repository"), "other bytes for the same content");
}
