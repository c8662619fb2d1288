//! A store in one file: it answers as the folder does, survives what folders survive, and becomes a folder again.

use crate::command::command;
use crate::damage::{Answers, answers_of, sound};
use crate::stores::{Numbers, Place, change, document, files, put, texts};
use hedgerow::{
    Access, BackupError, BackupOptions, Cancelled, Control, Env, FileName, OpenError, PackDisk, Quiet, Snapshot, Store,
    Vfs, verify,
};
use hedgerow_durability::Disk;
use hedgerow_format::pack::Pack;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub const NEW: BackupOptions = BackupOptions { replace: false };
pub const REPLACE: BackupOptions = BackupOptions { replace: true };

/// Where the pack of a place goes.
fn pack_of(place: &Place) -> PathBuf {
    place.path().with_extension("pack")
}

/// A sound store, its pack beside it, and what it answers.
fn packed() -> (Place, PathBuf, Answers) {
    let (place, answers) = sound();
    let pack = pack_of(&place);
    place.read().backup(&pack, NEW, &Quiet).expect("a sound store can be copied");
    (place, pack, answers)
}

fn answers(path: &Path) -> Answers {
    answers_of(&Snapshot::open(path).expect("it opens")).expect("it answers")
}

fn problems(path: &Path) -> Vec<String> {
    verify(&Env::folder(path).expect("it is there"), &Quiet).expect("it can be looked at").problems
}

pub fn env(disk: &Disk) -> Env {
    Env::seeded(Arc::new(disk.clone()), 7)
}

#[test]
fn a_pack_answers_as_its_folder_does_and_verify_finds_it_whole() {
    let (place, pack, expected) = packed();
    assert_eq!(answers(&pack), expected);
    assert_eq!(problems(&pack), Vec::<String>::new());
    let stats = |path: &Path| Snapshot::open(path).expect("it opens").stats().expect("it can be counted");
    assert_eq!(stats(&pack), stats(&place.path()));
}

#[test]
fn the_same_generation_gives_the_same_pack() {
    let (place, pack, _) = packed();
    let again = pack.with_extension("again");
    place.read().backup(&again, NEW, &Quiet).expect("it can be copied");
    Snapshot::open(&pack).expect("it opens").backup(pack.with_extension("third"), NEW, &Quiet).expect("packs too");
    let bytes = fs::read(&pack).expect("it is there");
    assert_eq!(fs::read(again).expect("it is there"), bytes);
    assert_eq!(fs::read(pack.with_extension("third")).expect("it is there"), bytes);
}

#[test]
fn a_pack_cannot_be_written_to_and_says_what_to_do() {
    let (_place, pack, _) = packed();
    let before = fs::read(&pack).expect("it is there");
    for opened in [Store::open(&pack), Store::open_or_create(&pack)] {
        let error = opened.expect_err("it is a pack");
        assert!(matches!(error, OpenError::Pack { .. }) && error.to_string().contains("restore"), "{error}");
    }
    let env = Env::folder(&pack).expect("it is a pack");
    let refused = [
        env.disk.create_new(&FileName::Catalog).map(drop),
        env.disk.open(&FileName::Head, Access::Write).map(drop),
        env.disk.remove(&FileName::Head),
        env.disk.open(&FileName::Head, Access::Read).and_then(|file| file.write_at(&[0], 0)),
    ];
    for refused in refused {
        assert_eq!(refused.expect_err("it is a pack").kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    }
    assert_eq!(fs::read(&pack).expect("it is there"), before);
}

#[test]
fn a_file_that_is_there_is_replaced_only_if_that_is_said() {
    let (place, pack, _) = packed();
    put(&place.open(), &[("late", "Dave came late.")]);
    let before = fs::read(&pack).expect("it is there");
    let error = place.read().backup(&pack, NEW, &Quiet).expect_err("it is there");
    assert!(matches!(error, BackupError::Exists { .. }), "{error}");
    assert_eq!(fs::read(&pack).expect("it is there"), before);
    place.read().backup(&pack, REPLACE, &Quiet).expect("it is replaced");
    assert_eq!(texts(&Snapshot::open(&pack).expect("it opens")), texts(&place.read()));
    let folder = pack.with_extension("folder");
    fs::create_dir(&folder).expect("it can be made");
    place.read().backup(&folder, REPLACE, &Quiet).expect_err("it is a folder");
    let names: Vec<PathBuf> = fs::read_dir(pack.parent().expect("it has one"))
        .expect("it can be listed")
        .map(|entry| entry.expect("it is there").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "new"))
        .collect();
    assert_eq!(names, Vec::<PathBuf>::new());
}

#[test]
fn a_file_that_is_no_pack_is_told_to_be_none() {
    let place = Place::new();
    for bytes in [&b""[..], b"\x89", b"Some text, longer than a magic number.", &[0; 300]] {
        fs::write(place.path(), bytes).expect("it can be written");
        for error in [Snapshot::open(place.path()).map(drop), Store::open_or_create(place.path()).map(drop)] {
            let error = error.expect_err("it is no pack");
            assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
        }
    }
}

#[test]
fn backups_beside_a_writer_that_commits_compacts_and_sweeps_are_whole_generations() {
    let place = Place::new();
    put(&place.open(), &[("d0", "Alice owns Bridge.")]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let store = place.open();
            for row in 1..60_u32 {
                let key = format!("d{}", row % 9);
                change(&store, vec![document(&key, &format!("Alice owns Bridge number {row}."))], &[]);
                store.refresh(&Quiet).expect("it can be brought in step");
                if row % 7 == 0 {
                    store.compact(&Quiet).expect("it can be compacted");
                }
            }
            done.store(true, Ordering::Release);
        });
        let mut made = 0_u32;
        while !done.load(Ordering::Acquire) || made < 3 {
            let snapshot = place.read();
            let pack = pack_of(&place);
            let backed_up = snapshot.backup(&pack, REPLACE, &Quiet).expect("it can be copied");
            assert_eq!((backed_up.generation, &backed_up.left_out[..]), (snapshot.generation(), &[][..]));
            assert_eq!(problems(&pack), Vec::<String>::new());
            assert_eq!(texts(&Snapshot::open(&pack).expect("it opens")), texts(&snapshot));
            made += 1;
        }
    });
}

#[test]
fn a_restored_store_answers_as_before_and_can_be_written_to() {
    let (place, pack, expected) = packed();
    let again = place.path().with_extension("again");
    let restored = Snapshot::open(&pack).expect("it opens").restore(&again, &Quiet).expect("it can be restored");
    assert_eq!(answers(&again), expected);
    assert_eq!(problems(&again), Vec::<String>::new());
    let numbered = |folder: &Path| files(folder).into_keys().filter(|name| name.components().count() > 1).count();
    assert_eq!(restored.files, numbered(&again) as u64);
    let store = Store::open(&again).expect("it opens for writing");
    put(&store, &[("late", "Dave owns Ferry.")]);
    assert_eq!(texts(&store.snapshot()).len(), expected.texts.len() + 1);
    drop(store);
    assert_eq!(problems(&again), Vec::<String>::new());
}

#[test]
fn a_restore_refuses_a_folder_that_is_not_empty() {
    let (place, pack, expected) = packed();
    let snapshot = Snapshot::open(&pack).expect("it opens");
    let refused = |folder: &Path| {
        let before = files(folder);
        let error = snapshot.restore(folder, &Quiet).expect_err("it is not empty");
        assert!(matches!(error, BackupError::NotEmpty { .. }), "{error}");
        assert_eq!(files(folder), before);
    };
    refused(&place.path());
    let other = place.path().with_extension("other");
    fs::create_dir(&other).expect("it can be made");
    fs::write(other.join("letter.txt"), "Dear Alice").expect("it can be written");
    refused(&other);
    // Another store that lost what names its files.
    let lost = Place::new();
    put(&lost.open(), &[("d", "Alice owns Bridge.")]);
    fs::remove_file(lost.path().join("HEAD")).expect("it is there");
    fs::remove_file(lost.path().join("catalog.redb")).expect("it is there");
    let error = Snapshot::open(lost.path()).expect_err("it has no HEAD");
    assert!(matches!(error, OpenError::Unfinished { .. }), "{error}");
    refused(&lost.path());
    snapshot.restore(&pack, &Quiet).expect_err("it is a file");
    assert_eq!(answers(&pack), expected);
}

#[test]
fn a_damaged_projection_is_left_out_and_a_damaged_segment_is_an_error_that_leaves_nothing() {
    let (place, expected) = sound();
    let pack = pack_of(&place);
    let flip = |ending: &str| {
        let found = files(&place.path()).into_keys().find(|name| name.to_string_lossy().ends_with(ending));
        let path = place.path().join(found.expect("there is one"));
        // In place, as a disk does it, below a reader that has it mapped.
        let byte = fs::read(&path).expect("it is there")[300] ^ 1;
        let mut file = fs::OpenOptions::new().write(true).open(path).expect("it is there");
        file.seek(SeekFrom::Start(300)).and_then(|_| file.write_all(&[byte])).expect("it can be written");
    };
    flip(".links.prj");
    let backed_up = place.read().backup(&pack, NEW, &Quiet).expect("facts are whole");
    assert!(matches!(&backed_up.left_out[..], [name] if name.ends_with(".links.prj")), "{backed_up:?}");
    let copied = answers(&pack);
    assert!(copied.is_incomplete() && copied.texts == expected.texts);
    assert_eq!(problems(&pack), Vec::<String>::new());
    let snapshot = place.read();
    flip(".seg");
    let error = snapshot.backup(&pack, REPLACE, &Quiet).expect_err("a segment is damaged");
    assert!(matches!(error, BackupError::Damaged(_)), "{error}");
    assert_eq!(answers(&pack), copied);
}

/// Says stop after so many questions.
struct Stop(AtomicU64);

impl Control for Stop {
    fn advance(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        self.0.fetch_sub(1, Ordering::Relaxed) == 0
    }
}

#[test]
fn a_cancelled_backup_or_restore_leaves_what_was_there() {
    let (place, pack, expected) = packed();
    let before = fs::read(&pack).expect("it is there");
    let snapshot = place.read();
    for after in [0, 1, 5] {
        let stop = || Stop(AtomicU64::new(after));
        let error = snapshot.backup(&pack, REPLACE, &stop()).expect_err("it is cancelled");
        assert!(matches!(error, BackupError::Cancelled(Cancelled)), "{error}");
        assert_eq!(fs::read(&pack).expect("it is there"), before);
        let again = place.path().with_extension("again");
        let error = snapshot.restore(&again, &stop()).expect_err("it is cancelled");
        assert!(matches!(error, BackupError::Cancelled(Cancelled)), "{error}");
        assert!(matches!(Snapshot::open(&again), Err(OpenError::NotFound { .. })));
    }
    let again = place.path().with_extension("again");
    snapshot.restore(&again, &Quiet).expect("nothing is in the way");
    assert_eq!(answers(&again), expected);
}

/// A disk that has these bytes as its pack.
fn disk_with(bytes: &[u8]) -> Disk {
    let disk = Disk::default();
    disk.create_new(&FileName::Pack).and_then(|file| file.write_at(bytes, 0)).expect("the disk is sound");
    disk
}

/// What these bytes answer as a pack; and what `verify` says.
fn read_pack(bytes: &[u8]) -> (Result<Answers, String>, Vec<String>) {
    let disk = disk_with(bytes);
    let Ok(pack) = PackDisk::open(&disk, FileName::Pack) else {
        return (Err("it does not open".into()), vec!["it does not open".into()]);
    };
    let answers = Snapshot::open_in(&pack).map_err(|error| error.to_string()).and_then(|pack| answers_of(&pack));
    let verified = verify(&Env::new(Arc::new(pack)), &Quiet);
    (answers, verified.map_or_else(|error| vec![error.to_string()], |verified| verified.problems))
}

#[test]
fn a_pack_of_any_other_length_is_refused() {
    let (_place, pack, _) = packed();
    let bytes = fs::read(&pack).expect("it is there");
    for length in 0..bytes.len() {
        assert!(Pack::parse(&bytes[..length]).is_err(), "{length} bytes");
    }
    assert!(Pack::parse(&[&bytes[..], &[0]].concat()).is_err());
    assert!(Pack::parse(&bytes).is_ok());
}

#[test]
fn a_flipped_bit_of_a_pack_is_an_error_or_changes_nothing_and_verify_finds_it() {
    let (_place, pack, expected) = packed();
    let bytes = fs::read(&pack).expect("it is there");
    let mut numbers = Numbers(5);
    let all = (0..256).chain((0..800).map(|_| numbers.below(bytes.len())).collect::<Vec<_>>());
    // Padding between files, which nothing reads.
    let parsed = Pack::parse(&bytes).expect("it is sound");
    let padding = parsed.entries().iter().map(|entry| usize::try_from(entry.offset).expect("it is small") - 1);
    for at in all.chain(padding.filter(|at| bytes[*at] == 0)) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        let (found, problems) = read_pack(&changed);
        assert!(!problems.is_empty(), "verify does not see the flip at {at}");
        let is_honest = match &found {
            Err(reason) => !reason.is_empty(),
            Ok(found) => *found == expected || (found.is_incomplete() && found.texts == expected.texts),
        };
        assert!(is_honest, "another answer after the flip at {at}: {found:?}");
    }
    assert_eq!(read_pack(&bytes), (Ok(expected), Vec::new()));
}

#[test]
fn the_command_backs_up_reads_packs_and_restores() {
    let (place, expected) = sound();
    let text = |path: &Path| path.to_str().expect("the path is text").to_owned();
    let (store, pack) = (text(&place.path()), text(&pack_of(&place)));
    let again = text(&place.path().with_extension("again"));
    let run = |arguments: &[&str]| {
        let output = command().args(arguments).output().expect("the command starts");
        (output.status.code(), output.stdout, String::from_utf8(output.stderr).expect("it writes text"))
    };
    let (code, out, said) = run(&["backup", &store, &pack, "--json"]);
    assert_eq!(code, Some(0), "{said}");
    let told: serde_json::Value = serde_json::from_slice(&out).expect("it is JSON");
    assert_eq!(told["bytes"], fs::metadata(&pack).expect("it is there").len());
    assert_eq!(told["left_out"], serde_json::json!([]));
    assert_eq!(run(&["backup", &store, &pack]).0, Some(2));
    assert_eq!(run(&["backup", &store, &pack, "--replace"]).0, Some(0));
    for command in [&["ask", "Who owns the old Bridge?"][..], &["stats"], &["ls"], &["show", "d3"], &["expand", "d3"]] {
        let on = |store: &str| run(&[&command[..1], &[store], &command[1..], &["--json"]].concat());
        let (of_pack, of_folder) = (on(&pack), on(&store));
        assert_eq!(of_pack, of_folder, "{command:?}");
        assert_eq!(of_pack.0, Some(0), "{of_pack:?}");
    }
    assert_eq!(run(&["verify", &pack]).0, Some(0));
    let (code, _, said) = run(&["rm", &pack, "d3"]);
    assert!(code == Some(2) && said.contains("restore"), "{said}");
    let (code, _, said) = run(&["restore", &pack, &again]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(answers(Path::new(&again)), expected);
    assert_eq!(run(&["restore", &pack, &again]).0, Some(2));
}
