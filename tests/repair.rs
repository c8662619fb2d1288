//! `repair` makes the catalog, `HEAD` and projections again, takes nothing for true that is not whole, and survives a crash.

use crate::command::command;
use crate::stores::{Place, change, document, files, put, relations, texts};
use hedgerow::{EdgeRules, Env, FileName, Folder, OpenError, Quiet, RepairError, Snapshot, Store, Vfs, verify};
use hedgerow_durability::{Disk, State};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Said = (BTreeMap<String, String>, Vec<String>, Vec<String>);

/// What a store says, and what its answers lack.
fn said(snapshot: &Snapshot) -> Said {
    (texts(snapshot), relations(snapshot), snapshot.incomplete())
}

fn problems(env: &Env) -> Vec<String> {
    verify(env, &Quiet).map_or_else(|error| vec![error.to_string()], |verified| verified.problems)
}

fn folder(place: &Place) -> Env {
    Env::folder(&place.path()).expect("it is a folder")
}

/// Two segments, a deletion, links and edges.
fn fill(store: &Store) {
    put(store, &[("a", "Alice owns Bridge."), ("b", "The old Bridge of Dover."), ("c", "Carol met Alice in Ely.")]);
    change(store, vec![document("d", "Ely owns Dover.")], &["c"]);
    store.build_edges("letters", &EdgeRules::new(50_000, 2), &Quiet).expect("edges can be built");
    store.refresh(&Quiet).expect("the store can be brought in step");
}

fn sound() -> (Place, Said) {
    let place = Place::new();
    fill(&place.open());
    // Opening sweeps what no generation names any more.
    drop(place.open());
    let said = said(&place.read());
    assert!(said.2.is_empty() && problems(&folder(&place)).is_empty());
    (place, said)
}

fn named(store: &Path, ending: &str) -> Vec<PathBuf> {
    files(store)
        .into_keys()
        .filter(|name| name.to_string_lossy().ends_with(ending))
        .map(|name| store.join(name))
        .collect()
}

/// Repairs, refreshes, and finds everything as it was.
#[track_caller]
fn check_repaired(place: &Place, before: &Said, what: &str) -> hedgerow::Repaired {
    let (store, repaired) = Store::repair(place.path(), &Quiet).unwrap_or_else(|error| panic!("{what}: {error}"));
    store.refresh(&Quiet).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(&said(&store.snapshot()), before, "{what}");
    drop(store);
    // Opening sweeps what no generation names any more.
    drop(place.open());
    assert_eq!(&said(&place.read()), before, "{what}");
    assert_eq!(problems(&folder(place)), Vec::<String>::new(), "{what}");
    repaired
}

#[test]
fn a_sound_store_is_left_as_it_is() {
    let (place, before) = sound();
    let repaired = check_repaired(&place, &before, "a sound store");
    assert_eq!((repaired.catalog, repaired.head, repaired.projections), (None, None, Vec::new()));
    assert_eq!(repaired.generation, place.read().generation());
}

#[test]
fn a_lost_or_damaged_catalog_is_made_again_and_the_store_can_be_written_to() {
    let other = Place::new();
    put(&other.open(), &[("x", "Another store.")]);
    let foreign = fs::read(other.path().join("catalog.redb")).expect("the file is there");
    let (place, before) = sound();
    let catalog = place.path().join("catalog.redb");
    let kept = fs::read(&catalog).expect("the file is there");
    let half = &kept[..kept.len() / 2];
    for bytes in [None, Some(&[][..]), Some(b"redb?"), Some(half), Some(&vec![0; kept.len()]), Some(&foreign)] {
        match bytes {
            None => fs::remove_file(&catalog).expect("the file is there"),
            Some(bytes) => fs::write(&catalog, bytes).expect("the file can be written"),
        }
        let what = format!("a catalog of {:?} bytes", bytes.map(<[u8]>::len));
        if bytes != Some(&foreign) {
            let error = Store::open(place.path()).expect_err("it must not open").to_string();
            assert!(error.contains("hedgerow repair"), "{what}: {error}");
        }
        assert_eq!(said(&place.read()), before, "{what}");
        let repaired = check_repaired(&place, &before, &what);
        assert!(repaired.catalog.is_some() && repaired.head.is_none(), "{what}: {repaired:?}");
    }
    put(&place.open(), &[("e", "Dover owns Ely.")]);
    assert_eq!(texts(&place.read()).len(), before.0.len() + 1);
    assert_eq!(problems(&folder(&place)), Vec::<String>::new());
}

#[test]
fn a_lost_damaged_or_stale_head_is_published_again() {
    let (place, before) = sound();
    let head = place.path().join("HEAD");
    let other = Place::new();
    fill(&other.open());
    let foreign = fs::read(other.path().join("HEAD")).expect("the file is there");
    for bytes in [None, Some(&[][..]), Some(&[0; 96]), Some(&foreign)] {
        match bytes {
            None => fs::remove_file(&head).expect("the file is there"),
            Some(bytes) => fs::write(&head, bytes).expect("the file can be written"),
        }
        let repaired = check_repaired(&place, &before, "HEAD");
        assert!(repaired.head.is_some() && repaired.catalog.is_none(), "{repaired:?}");
    }
}

#[test]
fn without_head_and_catalog_nothing_is_guessed_and_nothing_is_made_anew() {
    let (place, _) = sound();
    for (head, catalog) in [(None, None), (Some(&b"HEAD?"[..]), Some(&b"redb?"[..]))] {
        for (name, bytes) in [("HEAD", head), ("catalog.redb", catalog)] {
            fs::remove_file(place.path().join(name)).ok();
            if let Some(bytes) = bytes {
                fs::write(place.path().join(name), bytes).expect("the file can be written");
            }
        }
        let left = files(&place.path());
        let error = Store::repair(place.path(), &Quiet).expect_err("nothing says which generation is true");
        assert!(matches!(error, RepairError::NoGeneration { .. }), "{error}");
        assert!(error.to_string().contains("hedgerow salvage"), "{error}");
        for opened in [Store::open(place.path()), Store::open_or_create(place.path())] {
            let error = opened.expect_err("it must not open");
            let known = matches!(
                error,
                OpenError::MissingCatalog { .. } | OpenError::CatalogDamaged { .. } | OpenError::Unfinished { .. }
            );
            assert!(known, "{error}");
        }
        assert!(files(&place.path()).keys().eq(left.keys()), "a file came or went");
    }
}

#[test]
fn a_store_that_lost_its_facts_is_never_taken_for_one_that_was_not_made_yet() {
    for lost in [&["HEAD", "segments"][..], &["HEAD", "segments", "catalog.redb"], &["HEAD", "segments", "manifests"]] {
        let (place, _) = sound();
        for name in lost {
            let path = place.path().join(name);
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.expect("it is there");
        }
        let left: Vec<PathBuf> = files(&place.path()).into_keys().collect();
        for opened in [Store::open(place.path()), Store::open_or_create(place.path())] {
            let opened = opened.map(|store| texts(&store.snapshot()));
            assert!(opened.is_err(), "without {lost:?} it opens: {opened:?}");
        }
        assert!(Store::repair(place.path(), &Quiet).is_err(), "without {lost:?} it is repaired");
        let now: Vec<PathBuf> = files(&place.path()).into_keys().collect();
        assert!(left.iter().all(|name| now.contains(name)), "without {lost:?}: {left:?} became {now:?}");
    }
}

#[test]
fn damaged_facts_are_named_and_nothing_is_changed() {
    let (place, _) = sound();
    for remove_catalog in [false, true] {
        if remove_catalog {
            fs::remove_file(place.path().join("catalog.redb")).expect("the file is there");
        }
        let segments = named(&place.path(), ".seg");
        let kept: Vec<Vec<u8>> = segments.iter().map(|path| fs::read(path).expect("it is there")).collect();
        for (path, bytes) in segments.iter().zip(&kept) {
            let mut changed = bytes.clone();
            changed[300] ^= 1;
            fs::write(path, changed).expect("the file can be written");
        }
        // A file that no generation names may hold what salvage looks for.
        let orphan = place.path().join("segments/00000000000000ff-00000000000000aa.seg");
        fs::write(&orphan, b"half a segment").expect("the file can be written");
        let before = files(&place.path());
        let error = Store::repair(place.path(), &Quiet).expect_err("facts cannot be made again");
        let RepairError::Facts { problems, .. } = &error else { panic!("{error}") };
        assert_eq!(problems.len(), segments.len(), "{error}");
        for path in &segments {
            let name = path.file_name().expect("it has a name").to_string_lossy();
            assert!(error.to_string().contains(&*name) && error.to_string().contains("salvage"), "{error}");
        }
        assert_eq!(files(&place.path()), before);
        fs::remove_file(orphan).expect("the file is there");
        for (path, bytes) in segments.iter().zip(kept) {
            fs::write(path, bytes).expect("the file can be written");
        }
    }
}

#[test]
fn a_projection_that_is_damaged_at_any_place_never_stops_an_open_and_is_made_again() {
    let (place, before) = sound();
    for ending in [".links.prj", ".edges.prj"] {
        let mut at = 0;
        loop {
            let path = named(&place.path(), ending).remove(0);
            let mut bytes = fs::read(&path).expect("the file is there");
            // Header, sections, padding and tables in turn.
            let Some(byte) = bytes.get_mut(at) else { break };
            *byte ^= 1 << (at % 8);
            fs::write(&path, bytes).expect("the file can be written");
            let what = format!("a flip at {at} of {ending}");
            assert!(!problems(&folder(&place)).is_empty(), "{what}: verify does not see it");
            let snapshot = place.read();
            assert_eq!(texts(&snapshot), before.0, "{what}");
            assert!(!snapshot.incomplete().is_empty(), "{what}: nothing says so");
            drop(snapshot);
            drop(Store::open(place.path()).unwrap_or_else(|error| panic!("{what}: {error}")));
            let repaired = check_repaired(&place, &before, &what);
            assert_eq!(repaired.projections.len(), 1, "{what}: {repaired:?}");
            at += 61;
        }
        let path = named(&place.path(), ending).remove(0);
        fs::remove_file(path).expect("the file is there");
        assert_eq!(check_repaired(&place, &before, ending).projections.len(), 1, "{ending}");
    }
    fs::remove_dir_all(place.path().join("projections")).expect("the folder is there");
    assert_eq!(check_repaired(&place, &before, "no projections").projections.len(), 2);
}

fn env(disk: &Disk) -> Env {
    Env::new(Arc::new(disk.clone()))
}

/// A store without a catalog; and one whose last commit was not published when the catalog was lost.
fn without_catalog(published: bool) -> (Disk, Said) {
    let disk = Disk::default();
    let store = Store::open_or_create_in(env(&disk)).expect("the disk is sound");
    fill(&store);
    drop(Store::open_in(env(&disk)));
    let before = said(&store.snapshot());
    let mut last = disk.now();
    if !published {
        disk.record();
        put(&store, &[("e", "Dover owns Ely.")]);
        let head = |state: &State| state.bytes(&FileName::Head).map(<[u8]>::to_vec);
        let before_it = disk.recorded().into_iter().rev().find(|(state, _)| head(state) == head(&last));
        last = before_it.expect("the commit begins there").0.killed().now();
    }
    drop(store);
    let disk = last.killed();
    disk.remove(&FileName::Catalog).expect("the file is there");
    disk.sync_folder(Folder::Root).expect("the disk is sound");
    (disk.now().killed(), before)
}

fn repair(disk: &Disk) -> Result<(), String> {
    let (store, _) = Store::repair_in(env(disk), &Quiet).map_err(|error| error.to_string())?;
    store.refresh(&Quiet).map_err(|error| error.to_string())
}

#[test]
fn a_crash_at_any_operation_of_a_repair_changes_nothing_or_leaves_it_done() {
    let (disk, before) = without_catalog(true);
    disk.record();
    repair(&disk).expect("the store can be repaired");
    let recorded = disk.recorded();
    let operations = recorded.len() - 1;
    assert!(operations > 10, "only {operations}");
    for (at, (crashed, _)) in recorded.into_iter().enumerate() {
        let (done, seed) = (at == operations, at as u64 * 8);
        for left in [crashed.killed(), crashed.cut(seed), crashed.cut(seed + 2), crashed.cut(seed + 4)] {
            let read = Snapshot::open_in(&left).unwrap_or_else(|error| panic!("cut at {at}: {error}"));
            assert_eq!(said(&read), before, "cut at {at}");
            match Store::open_in(env(&left)) {
                Ok(store) => assert_eq!(said(&store.snapshot()), before, "cut at {at}"),
                Err(error) => {
                    assert!(!done && matches!(error, OpenError::MissingCatalog { .. }), "cut at {at}: {error}");
                }
            }
            repair(&left).unwrap_or_else(|error| panic!("cut at {at}, then again: {error}"));
            let store = Store::open_in(env(&left)).unwrap_or_else(|error| panic!("cut at {at}: {error}"));
            assert_eq!(said(&store.snapshot()), before, "cut at {at}");
            drop(store);
            assert_eq!(problems(&env(&left)), Vec::<String>::new(), "cut at {at}");
        }
    }
}

#[test]
fn what_was_not_published_is_not_taken_for_true_when_no_catalog_can_tell() {
    let (disk, before) = without_catalog(false);
    repair(&disk).expect("the store can be repaired");
    assert_eq!(said(&Store::open_in(env(&disk)).expect("it opens").snapshot()), before);
    assert_eq!(problems(&env(&disk)), Vec::<String>::new());
}

/// What the command prints as JSON, and its exit code.
fn told(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = command().args(arguments).arg("--json").output().expect("the command starts");
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

#[test]
fn the_commands_say_what_they_repaired_and_what_they_could_not_save() {
    let (place, before) = sound();
    let path = place.path();
    let (store, saved) = (path.to_str().expect("the path is text"), path.with_file_name("saved"));
    let saved = saved.to_str().expect("the path is text");
    fs::remove_file(path.join("catalog.redb")).expect("it is there");
    let (code, repaired) = told(&["repair", store]);
    assert_eq!((code, &repaired["catalog"], &repaired["head"]), (Some(0), &"it was missing".into(), &Value::Null));
    let (code, salvaged) = told(&["salvage", store, saved]);
    assert_eq!((code, salvaged["documents"].as_u64()), (Some(0), Some(before.0.len() as u64)), "{salvaged}");
    assert_eq!(salvaged["lost"], Value::Array(Vec::new()));
    fs::remove_dir_all(saved).expect("it can be removed");

    let segment = named(&path, ".seg").remove(0);
    fs::write(&segment, "nothing").expect("it can be written");
    fs::remove_file(path.join("HEAD")).expect("it is there");
    assert_eq!(told(&["repair", store]).0, Some(4));
    let (code, salvaged) = told(&["salvage", store, saved]);
    assert_eq!(code, Some(1));
    assert!(salvaged["lost"].as_array().is_some_and(|lost| !lost.is_empty()), "{salvaged}");
    fs::remove_dir_all(&path).expect("it can be removed");
    fs::remove_dir_all(saved).expect("it can be removed");
    assert_eq!(told(&["salvage", store, saved]).0, Some(3));
}
