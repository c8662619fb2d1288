//! What a stranger made: it is opened only after all of it was checked, within limits, and never waited for.
#![cfg(unix)]

use crate::command::command;
use crate::damage::{answers_of, sound};
use crate::stores::{Place, files, put};
use hedgerow::{BackupOptions, Limits, OpenError, Quiet, Reading, RealDisk, Snapshot, Store};
use hedgerow_format::FormatError;
use hedgerow_format::file::{FileBuilder, FileIdentity, FileKind, Whole};
use hedgerow_format::head::Head;
use hedgerow_format::manifest::{EdgeSettings, EdgeSignal, FileEntry, Manifest, ProjectionEntry, SegmentEntry};
use hedgerow_format::pack::Pack;
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::segment::SegmentShape;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// A sound store and its pack.
fn both() -> (Place, [PathBuf; 2]) {
    let (place, _) = sound();
    let pack = place.path().with_extension("pack");
    place.read().backup(&pack, BackupOptions::default(), &Quiet).expect("it can be copied");
    let folder = place.path();
    (place, [folder, pack])
}

/// Opens what must not be waited for.
fn open(path: &Path, limits: Limits) -> Result<Snapshot, OpenError> {
    let (send, receive) = mpsc::channel();
    let path = path.to_owned();
    std::thread::spawn(move || send.send(Snapshot::open_untrusted(path, &limits)).ok());
    receive.recv_timeout(Duration::from_mins(1)).expect("it answers at once")
}

/// Why it is refused.
#[track_caller]
fn refused(path: &Path) -> OpenError {
    open(path, Limits::default()).map(|_| ()).expect_err("it is not to be believed")
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("there is mkfifo").success());
}

/// The first file of a store that ends so.
fn file(store: &Path, ending: &str) -> PathBuf {
    let found = files(store).into_keys().find(|name| name.to_string_lossy().ends_with(ending));
    store.join(found.expect("there is one"))
}

#[test]
fn what_is_sound_answers_as_when_it_is_trusted_and_the_catalog_is_not_looked_at() {
    let (place, paths) = both();
    let expected = answers_of(&place.read());
    fs::remove_file(place.path().join("catalog.redb")).expect("it is there");
    pipe(&place.path().join("catalog.redb"));
    fs::remove_file(place.path().join("LOCK")).expect("it is there");
    for path in paths {
        let snapshot = open(&path, Limits::default()).expect("it is sound");
        assert_eq!(answers_of(&snapshot), expected);
    }
    assert!(!place.path().join("LOCK").exists());
}

#[test]
fn links_are_refused_in_place_of_the_store_of_its_folders_and_of_its_files() {
    let (place, [folder, pack]) = both();
    for target in [&folder, &pack] {
        let link = place.path().with_extension("link");
        symlink(target, &link).expect("it can be made");
        assert!(matches!(refused(&link), OpenError::NotAStore { .. }));
        Snapshot::open(&link).expect("where it is trusted, a link to a store is one");
        fs::remove_file(&link).expect("it is there");
    }
    let elsewhere = place.path().with_extension("elsewhere");
    for name in ["segments", "projections", "manifests"] {
        let inner = folder.join(name);
        fs::rename(&inner, &elsewhere).expect("it can be moved");
        symlink(&elsewhere, &inner).expect("it can be made");
        let said = refused(&folder).to_string();
        assert!(said.contains("is a link"), "{said}");
        // A writer would remove files in it.
        assert!(Store::open(&folder).is_err());
        fs::remove_file(&inner).expect("it is there");
        fs::rename(&elsewhere, &inner).expect("it can be moved");
    }
    for name in [folder.join("HEAD"), file(&folder, ".seg"), file(&folder, ".links.prj"), file(&folder, ".man")] {
        fs::rename(&name, &elsewhere).expect("it can be moved");
        symlink(&elsewhere, &name).expect("it can be made");
        refused(&folder);
        fs::remove_file(&name).expect("it is there");
        fs::rename(&elsewhere, &name).expect("it can be moved");
    }
    open(&folder, Limits::default()).expect("it is as it was");
}

#[test]
fn pipes_and_devices_are_refused_without_waiting() {
    let (place, [folder, _]) = both();
    let alone = place.path().with_extension("pipe");
    pipe(&alone);
    assert!(matches!(refused(&alone), OpenError::NotAStore { .. }));
    assert!(matches!(refused(Path::new("/dev/zero")), OpenError::NotAStore { .. }));
    assert!(Snapshot::open("/dev/zero").is_err() && Snapshot::open(&alone).is_err());
    for name in [folder.join("HEAD"), file(&folder, ".seg"), file(&folder, ".edges.prj"), file(&folder, ".man")] {
        let bytes = fs::read(&name).expect("it is there");
        fs::remove_file(&name).expect("it is there");
        pipe(&name);
        refused(&folder);
        fs::remove_file(&name).expect("it is there");
        fs::write(&name, bytes).expect("it can be written");
    }
    // A writer does not wait for them either.
    fs::remove_file(folder.join("LOCK")).expect("it is there");
    pipe(&folder.join("LOCK"));
    assert!(Store::open(&folder).is_err());
}

#[test]
fn every_flipped_bit_of_a_pack_is_refused() {
    let (_place, [_, pack]) = both();
    let bytes = fs::read(&pack).expect("it is there");
    for at in (0..256).chain((256..bytes.len()).step_by(23)) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&pack, &changed).expect("it can be written");
        assert!(Snapshot::open_untrusted(&pack, &Limits::default()).is_err(), "the flip at {at} is not seen");
    }
    fs::write(&pack, &bytes).expect("it can be written");
    open(&pack, Limits::default()).expect("it is as it was");
}

#[test]
fn a_damaged_or_missing_projection_is_an_error() {
    let (_place, [folder, _]) = both();
    for ending in [".links.prj", ".edges.prj"] {
        let name = file(&folder, ending);
        let bytes = fs::read(&name).expect("it is there");
        let mut changed = bytes.clone();
        changed[300] ^= 1;
        fs::write(&name, changed).expect("it can be written");
        Snapshot::open(&folder).expect("where it is trusted, it answers without it");
        assert!(matches!(refused(&folder), OpenError::Damaged(_)));
        fs::remove_file(&name).expect("it is there");
        assert!(matches!(refused(&folder), OpenError::Damaged(_)));
        fs::write(&name, bytes).expect("it can be written");
    }
}

#[test]
fn each_limit_is_held() {
    let (_place, paths) = both();
    let all = Limits::default();
    let tight = [
        Limits { total_bytes: 4096, ..all },
        Limits { file_bytes: 1000, ..all },
        Limits { manifest_bytes: 255, ..all },
        Limits { files: 3, ..all },
        Limits { documents: 12, ..all },
        Limits { chunks: 12, ..all },
        Limits { entities: 12, ..all },
        Limits { text_bytes: 16 * 1024, ..all },
    ];
    for path in &paths {
        for limits in tight {
            let error = open(path, limits).map(|_| ()).expect_err("there is more");
            let is_told = match &error {
                OpenError::TooMuch { found, limit, .. } => found > limit,
                // A file that is longer than may be is not even read.
                OpenError::Storage(error) => error.source.kind() == std::io::ErrorKind::FileTooLarge,
                _ => false,
            };
            assert!(is_told, "{limits:?}: {error}");
        }
    }
}

#[test]
fn text_that_unpacks_to_much_more_is_refused_before_it_is_unpacked() {
    let place = Place::new();
    put(&place.open(), &[("bomb", &"All work and no play. ".repeat(400_000))]);
    let bytes: u64 = files(&place.path()).values().map(|bytes| bytes.len() as u64).sum();
    let limits = Limits { text_bytes: 4 << 20, ..Limits::default() };
    assert!(bytes < 4 << 20, "{bytes}");
    let error = open(&place.path(), limits).map(|_| ()).expect_err("it unpacks to 8 MB");
    assert!(matches!(error, OpenError::TooMuch { what: "bytes of text", .. }), "{error}");
    open(&place.path(), Limits::default()).expect("it is sound");
}

/// A store of nothing but `HEAD` and a manifest of these bytes, and a pack of the same.
fn forged(place: &Place, manifest: &Manifest, archived: &[u8]) -> [PathBuf; 2] {
    let identity =
        FileIdentity { kind: FileKind::Manifest, store: manifest.store, number: manifest.generation, random: 2 };
    let mut file = FileBuilder::new(Vec::new(), identity).expect("a vector takes all");
    file.section(SectionKind::Manifest, archived).expect("a vector takes all");
    let (finished, mut bytes) = file.finish().expect("a vector takes all");
    bytes[..256].copy_from_slice(&finished.header);
    let head = Head::new(manifest.store, manifest.generation, 2, finished.file_bytes, finished.header_hash);
    let folder = place.path();
    fs::create_dir_all(folder.join("manifests")).expect("it can be made");
    fs::write(folder.join("HEAD"), head.to_bytes()).expect("it can be written");
    let name = format!("manifests/{:016x}-{:016x}.man", manifest.generation, 2);
    fs::write(folder.join(name), &bytes).expect("it can be written");
    let pack = Pack::of(head, &Manifest::default()).expect("it fits");
    let mut packed = pack.front();
    packed.resize(usize::try_from(pack.entries()[0].offset).expect("it is small"), 0);
    packed.extend_from_slice(&bytes);
    let path = folder.with_extension("pack");
    fs::write(&path, packed).expect("it can be written");
    [folder, path]
}

#[test]
fn a_manifest_that_claims_what_is_not_there_is_refused() {
    let place = Place::new();
    let segment = |number: u32, file_bytes: u64| {
        let file = FileEntry { number: number.into(), random: 0, file_bytes, header_hash: [0; 32] };
        let shape = SegmentShape {
            first_document: number,
            documents_end: number + 1,
            documents: 1,
            first_chunk: number,
            chunks_end: number + 1,
            chunks: 1,
        };
        SegmentEntry::new(file, shape)
    };
    let base = Manifest { generation: 1, ..Manifest::default() };
    let many: Vec<SegmentEntry> = (0..5000).map(|number| segment(number, 300)).collect();
    let manifests = [
        Manifest { segments: many, documents_end: 5000, chunks_end: 5000, ..base.clone() },
        Manifest { segments: vec![segment(0, u64::MAX)], documents_end: 1, chunks_end: 1, ..base.clone() },
        Manifest { segments: vec![segment(0, 1 << 40)], documents_end: 1, chunks_end: 1, ..base.clone() },
        Manifest { documents_end: u32::MAX, ..base.clone() },
        Manifest { chunks_end: u32::MAX, ..base.clone() },
    ];
    for manifest in manifests {
        for path in forged(&place, &manifest, &manifest.to_bytes().expect("it fits")) {
            let error = refused(&path);
            assert!(matches!(error, OpenError::TooMuch { .. }), "{error}");
        }
    }
    let small = Manifest { segments: vec![segment(0, 300)], documents_end: 1, chunks_end: 1, ..base.clone() };
    let archived = small.to_bytes().expect("it fits");
    for path in forged(&place, &small, &archived) {
        refused(&path);
    }
    for at in 0..archived.len() {
        for byte in [0, 0x7f, 0x80, 0xff] {
            let mut changed = archived.clone();
            changed[at] = byte;
            // It may be another manifest, of no segments; whatever it is, it is read without harm.
            for path in &forged(&place, &small, &changed) {
                drop(open(path, Limits::default()));
            }
        }
    }
    // Nothing at all is a store as well.
    for path in forged(&place, &base, &base.to_bytes().expect("it fits")) {
        open(&path, Limits::default()).expect("it is an empty store");
    }
}

#[test]
fn files_that_are_whole_and_contradict_each_other_are_refused() {
    let (place, [folder, _]) = both();
    let bytes = fs::read(file(&folder, ".man")).expect("it is there");
    let whole = Whole::open(FileKind::Manifest, &bytes).expect("it is sound");
    let archived = whole.section(SectionKind::Manifest).expect("it has one");
    let mut manifest = Manifest::from_bytes(archived).expect("it is sound");
    let edges = manifest.projections.iter_mut().find(|entry| entry.kind == FileKind::Edges.number());
    edges.expect("there is one").settings.top_m += 1;
    forged(&place, &manifest, &manifest.to_bytes().expect("it fits"));
    Snapshot::open(&folder).expect("where it is trusted, no one asks");
    let error = refused(&folder);
    assert!(matches!(error, OpenError::Contradiction { .. }), "{error}");
}

#[test]
fn settings_of_edges_that_none_can_be_made_by_are_refused() {
    let edges = ProjectionEntry { kind: FileKind::Edges.number(), ..ProjectionEntry::default() };
    let settings = |settings| ProjectionEntry { settings, ..edges.clone() };
    let signal = EdgeSignal { what: 1, percentile: 100_000, weight: 1_000_000, space: "titles".into() };
    let signals = |change: fn(&mut EdgeSignal)| {
        let mut changed = signal.clone();
        change(&mut changed);
        settings(EdgeSettings { signals: vec![changed], ..EdgeSettings::default() })
    };
    let known = EdgeSettings {
        percentiles: [100_000; 3],
        top_m: 1024,
        cap: 1,
        nearest: 1024,
        nearest_by: 0,
        least: 0xff7f_ffff,
        shared_chunks: 1024,
        shared_top_m: 1024,
        weighted: 1,
        signals: vec![signal.clone(); 16],
    };
    let read = |entry: ProjectionEntry| {
        let manifest = Manifest { projections: vec![entry], ..Manifest::default() };
        Manifest::from_bytes(&manifest.to_bytes().expect("it fits"))
    };
    read(settings(known.clone())).expect("these are the most that there may be");
    for entry in [
        ProjectionEntry { pairs: 3, ..edges.clone() },
        settings(EdgeSettings { percentiles: [0, 0, 100_001], ..known.clone() }),
        settings(EdgeSettings { top_m: 1025, ..known.clone() }),
        settings(EdgeSettings { cap: 2, ..known.clone() }),
        settings(EdgeSettings { nearest: 1025, ..known.clone() }),
        settings(EdgeSettings { nearest_by: 1, ..known.clone() }),
        settings(EdgeSettings { nearest_by: 1, nearest: 0, signals: Vec::new(), ..known.clone() }),
        settings(EdgeSettings { nearest_by: 2, ..known.clone() }),
        settings(EdgeSettings { least: u32::MAX, ..known.clone() }),
        settings(EdgeSettings { least: 0x007f_ffff, ..known.clone() }),
        settings(EdgeSettings { shared_chunks: 1025, ..known.clone() }),
        settings(EdgeSettings { shared_top_m: 1025, ..known.clone() }),
        settings(EdgeSettings { shared_chunks: 0, ..known.clone() }),
        settings(EdgeSettings { weighted: 2, ..known.clone() }),
        settings(EdgeSettings { signals: vec![signal.clone(); 17], ..known.clone() }),
        signals(|signal| signal.what = 7),
        signals(|signal| signal.what = 0),
        signals(|signal| signal.percentile = 100_001),
        signals(|signal| signal.weight = 1_000_001),
        signals(|signal| signal.space = String::new()),
        signals(|signal| signal.space = "x".repeat(4097)),
        ProjectionEntry { kind: FileKind::Links.number(), ..settings(known) },
        ProjectionEntry { kind: FileKind::Links.number(), pairs: 1, ..edges.clone() },
    ] {
        let refused = read(entry.clone()).expect_err("no edges are made so");
        assert!(matches!(refused, FormatError::Invariant { rule: "S-MAN-6", .. }), "{entry:?}: {refused}");
    }
}

#[test]
fn lengths_that_nothing_bears_out_are_refused_before_memory_is_asked_for() {
    let (place, [folder, pack]) = both();
    let head = Head::from_bytes(&fs::read(folder.join("HEAD")).expect("it is there")).expect("it is sound");
    for manifest_bytes in [1 << 19, 1 << 40, u64::MAX] {
        fs::write(folder.join("HEAD"), Head { manifest_bytes, ..head }.to_bytes()).expect("it can be written");
        refused(&folder);
    }
    // A terabyte of nothing.
    for name in [pack.clone(), folder.join("HEAD"), file(&folder, ".seg")] {
        fs::write(folder.join("HEAD"), head.to_bytes()).expect("it can be written");
        let opened = fs::OpenOptions::new().write(true).open(&name).expect("it is there");
        opened.set_len(1 << 40).expect("the file system has files with holes");
        refused(if name == pack { &pack } else { &folder });
    }
    drop(place);
}

#[test]
fn a_store_that_is_read_into_memory_stays_whole_whatever_happens_to_its_files() {
    let (place, [folder, _]) = both();
    let expected = answers_of(&place.read());
    let disk = RealDisk::new(&folder).reading(Reading::Heap { bytes_max: 1 << 30 });
    let snapshot = Snapshot::open_in(&disk).expect("it opens");
    for name in files(&folder).into_keys() {
        fs::write(folder.join(name), []).expect("it can be cut");
    }
    assert_eq!(answers_of(&snapshot), expected);
}

#[test]
fn the_command_distrusts_what_it_reads_and_refuses_to_write_there() {
    let (place, [folder, pack]) = both();
    let text = |path: &Path| path.to_str().expect("the path is text").to_owned();
    let run = |arguments: &[&str]| {
        let output = command().args(arguments).output().expect("the command starts");
        (output.status.code(), output.stdout, String::from_utf8(output.stderr).expect("it writes text"))
    };
    for store in [text(&folder), text(&pack)] {
        let ask = ["ask", &store, "Who owns the old Bridge?", "--json"];
        let distrusting = run(&[&ask[..], &["--untrusted"]].concat());
        assert_eq!(distrusting, run(&ask));
        assert_eq!(run(&["--untrusted", "verify", &store]).0, Some(0));
        let (code, _, said) = run(&["rm", &store, "d3", "--untrusted"]);
        assert!(code == Some(2) && said.contains("--untrusted"), "{said}");
    }
    let again = text(&place.path().with_extension("again"));
    assert_eq!(run(&["restore", &text(&pack), &again, "--untrusted"]).0, Some(0));
    let name = file(&folder, ".links.prj");
    fs::write(&name, "nothing").expect("it can be written");
    let (code, _, said) = run(&["ask", &text(&folder), "Who owns the old Bridge?", "--untrusted"]);
    assert_eq!(code, Some(4), "{said}");
}
