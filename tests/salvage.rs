//! `salvage` saves everything that damage does not touch, never another text, and says what is lost.

mod communities;

use crate::stores::{Numbers, PIPELINE, Place, change, document, files, put, texts, vector};
use hedgerow::{
    Batch, Document, EdgeRules, Env, Quiet, SalvageError, Salvaged, Snapshot, Store, Target, salvage, triple, verify,
};
use hedgerow_format::checksum::BLOCK_BYTES;
use hedgerow_format::file::{FileKind, Layout};
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::segment::{ChunkRow, DocumentRow};
use hedgerow_format::text::{TEXT_BLOCK_BYTES, TextBlock};
use hedgerow_format::{Record, TextRef};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

fn env(path: &Path) -> Env {
    Env::folder(path).expect("it is a folder")
}

/// What was saved, with its own place.
struct Saved {
    place: Place,
    found: Salvaged,
}

#[track_caller]
fn salvaged(path: &Path, what: &str) -> Saved {
    let place = Place::new();
    let (store, found) =
        salvage(&env(path), env(&place.path()), &Quiet).unwrap_or_else(|error| panic!("{what}: {error}"));
    store.refresh(&Quiet).unwrap_or_else(|error| panic!("{what}: {error}"));
    for (space, rules) in &found.edges {
        store.build_edges(space, rules, &Quiet).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    if let Some(former) = &found.communities {
        store.follow_communities(former, &[], &Quiet).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    drop(store);
    let problems = verify(&env(&place.path()), &Quiet).expect("there is a store").problems;
    assert_eq!(problems, Vec::<String>::new(), "{what}");
    Saved { place, found }
}

/// Words that don't compress, so that a segment has several blocks.
fn noise(numbers: &mut Numbers, words: usize) -> String {
    (0..words).map(|_| format!("W{:x} ", numbers.draw())).collect::<Vec<_>>().concat()
}

/// Segments with replacements, deletions, relations and vectors that are added to older documents; links and edges.
fn fill(store: &Store, words: usize) {
    let mut numbers = Numbers(3);
    let mut documents = |keys: Range<usize>| -> Vec<Document> {
        let told = |row: usize, text: String| {
            let mut given = document(&format!("d{row}"), &format!("Alice{row} owns Bridge{}. {text}", row % 7));
            given.metadata.insert("row".into(), row.into());
            given
        };
        keys.map(|row| told(row, noise(&mut numbers, words))).collect()
    };
    change(store, documents(0..60), &[]);
    change(store, documents(30..80), &["d3", "d4"]);
    let mut batch = Batch::default();
    PIPELINE.stage(&store.snapshot(), documents(80..120), &mut batch, &Quiet).expect("no one cancels");
    batch.relate(
        Target { document: "d7".into(), chunk: Some(0) },
        triple(("Alice7", ""), "knows", ("Carol", "person"), 0.5).expect("it is a triple"),
    );
    batch.relate(
        Target { document: "d8".into(), chunk: None },
        triple(("Carol", ""), "knows", ("Dover", ""), 2.0).expect("it is a triple"),
    );
    batch.set_vector(Target { document: "d9".into(), chunk: None }, vector(&[0.6, 0.8]));
    store.commit(batch).expect("the batch is sound");
    change(store, vec![], &["d90", "d40"]);
    store.build_edges("letters", &EdgeRules::new(50_000, 2), &Quiet).expect("edges can be built");
    store.refresh(&Quiet).expect("the store can be brought in step");
}

fn sound(words: usize) -> Place {
    let place = Place::new();
    fill(&place.open(), words);
    // Opening sweeps what no generation names any more.
    drop(place.open());
    place
}

/// Content, whatever history led to it.
fn content(snapshot: &Snapshot) -> String {
    format!("{:?}", snapshot.fingerprint().expect("the store can be read"))
}

fn segments(store: &Path) -> Vec<PathBuf> {
    files(store).into_keys().filter(|name| name.extension().is_some_and(|ending| ending == "seg")).collect()
}

#[test]
fn a_sound_store_is_saved_whole() {
    let place = sound(3);
    let saved = salvaged(&place.path(), "a sound store");
    assert_eq!(saved.found.lost, []);
    assert_eq!(saved.found.generation, Some(place.read().generation()));
    let (before, after) = (place.read(), saved.place.read());
    assert_eq!(content(&before), content(&after));
    assert_eq!(before.stats().expect("it counts").edges, after.stats().expect("it counts").edges);
    assert!(after.incomplete().is_empty());
}

#[test]
fn without_head_catalog_and_manifests_everything_of_a_sound_store_is_saved() {
    let place = sound(3);
    let before = content(&place.read());
    for gone in ["HEAD", "catalog.redb"] {
        fs::remove_file(place.path().join(gone)).expect("the file is there");
        let saved = salvaged(&place.path(), gone);
        assert_eq!((saved.found.lost.len(), content(&saved.place.read())), (0, before.clone()), "without {gone}");
    }
    fs::remove_dir_all(place.path().join("manifests")).expect("the folder is there");
    let saved = salvaged(&place.path(), "without manifests");
    assert_eq!(content(&saved.place.read()), before);
    assert_eq!(saved.found.generation, None);
    // No one can know that nothing is missing.
    assert_eq!(saved.found.lost.iter().map(|lost| lost.what).collect::<Vec<_>>(), ["deletions"]);
}

#[test]
fn a_damaged_manifest_loses_nothing_that_segments_tell() {
    let place = sound(3);
    let before = texts(&place.read());
    for name in files(&place.path()).into_keys().filter(|name| name.starts_with("manifests")) {
        let path = place.path().join(name);
        let mut bytes = fs::read(&path).expect("the file is there");
        bytes[300] ^= 1;
        fs::write(&path, bytes).expect("the file can be written");
    }
    let saved = salvaged(&place.path(), "a damaged manifest");
    assert!(texts(&saved.place.read()) == before, "{:?}", saved.found.lost);
    assert!(!saved.found.lost.is_empty());
}

/// The bytes of a segment file that a document is made of.
fn needs(layout: &Layout, bytes: &[u8], slot: usize) -> Vec<Range<usize>> {
    let file = hedgerow_format::file::Whole::open(FileKind::Segment, bytes).expect("the file is sound");
    let start = |kind| layout.section(kind).expect("it has the section").start;
    let row_at = |kind, row: usize, size: usize| start(kind) + row * size..start(kind) + (row + 1) * size;
    let place = |number: u32| usize::try_from(number).expect("it fits");
    let string = |place_of: TextRef| {
        let first = start(SectionKind::Strings) + place(place_of.offset);
        first..first + place(place_of.length)
    };
    let row = file.rows::<DocumentRow>(SectionKind::Documents).expect("it has rows").get(slot).expect("it is there");
    let mut needed = vec![row_at(SectionKind::Documents, slot, DocumentRow::SIZE)];
    needed.extend([row.name, row.title, row.source, row.media_type, row.metadata].map(string));
    for slot in place(row.first_chunk)..place(row.first_chunk + row.chunks) {
        let chunk = file.rows::<ChunkRow>(SectionKind::Chunks).expect("it has rows").get(slot).expect("it is there");
        needed.push(row_at(SectionKind::Chunks, slot, ChunkRow::SIZE));
        needed.extend([chunk.heading, chunk.metadata].map(string));
    }
    let first = usize::try_from(row.text_offset).expect("it fits");
    for block in first / TEXT_BLOCK_BYTES..=(first + place(row.text_bytes) - 1) / TEXT_BLOCK_BYTES {
        let text = file.rows::<TextBlock>(SectionKind::TextBlocks).expect("it has rows").get(block);
        let text = text.expect("it is there");
        needed.push(row_at(SectionKind::TextBlocks, block, TextBlock::SIZE));
        let offset = start(SectionKind::Text) + usize::try_from(text.offset).expect("it fits");
        needed.push(offset..offset + place(text.length));
    }
    needed
}

/// Keys of the documents of a segment that a block of it is part of.
fn touched(bytes: &[u8], block: Range<usize>) -> BTreeSet<String> {
    let layout = Layout::parse(FileKind::Segment, bytes).expect("the file is sound");
    let file = hedgerow_format::file::Whole::open(FileKind::Segment, bytes).expect("the file is sound");
    let rows = file.rows::<DocumentRow>(SectionKind::Documents).expect("it has rows");
    let meets = |range: &Range<usize>| !range.is_empty() && range.start < block.end && block.start < range.end;
    let touched = rows.iter().enumerate().filter(|(slot, _)| needs(&layout, bytes, *slot).iter().any(meets));
    touched.map(|(_, row)| file.string(row.name).expect("it is a name").to_owned()).collect()
}

#[test]
fn a_damaged_block_loses_only_documents_that_lie_in_it_and_never_changes_a_text() {
    let place = sound(90);
    let (before, whole) = (texts(&place.read()), content(&place.read()));
    let block_bytes = usize::try_from(BLOCK_BYTES).expect("it fits");
    let (mut blocks, mut partly) = (0, 0);
    for name in segments(&place.path()) {
        let path = place.path().join(&name);
        let bytes = fs::read(&path).expect("the file is there");
        let count = Layout::parse(FileKind::Segment, &bytes).expect("it is sound").block_count();
        blocks += count;
        for block in 0..count {
            let range = (block * block_bytes).max(256)..((block + 1) * block_bytes).min(bytes.len());
            let mut changed = bytes.clone();
            // Bytes that might be read for something else than what was written.
            for at in range.clone().step_by(97) {
                changed[at] = changed[at].wrapping_add(1);
            }
            fs::write(&path, &changed).expect("the file can be written");
            let what = format!("block {block} of {}", name.display());
            let saved = salvaged(&place.path(), &what);
            let after = texts(&saved.place.read());
            // Terms are counted anew: damage there loses nothing.
            let is_same = content(&saved.place.read()) == whole;
            assert!(is_same || !saved.found.lost.is_empty(), "{what}: nothing says that something is lost");
            let lost: BTreeSet<&String> = before.keys().filter(|key| !after.contains_key(*key)).collect();
            // The last block's range holds the tables, too: without them nothing of the file can be read.
            let allowed = touched(&bytes, range);
            assert!(
                block + 1 == count || lost.iter().all(|key| allowed.contains(*key)),
                "{what}: {lost:?} are lost, of which {allowed:?} lie in it"
            );
            for (key, text) in &after {
                let is_back = !before.contains_key(key) || saved.found.lost.iter().any(|lost| lost.what == "deletions");
                assert!(before.get(key) == Some(text) || is_back, "{what}: {key} has another text");
            }
            partly +=
                usize::from(saved.found.lost.iter().any(|lost| lost.document.is_some() && lost.what != "document"));
        }
        fs::write(&path, bytes).expect("the file can be written");
    }
    assert!(blocks > 8 && partly > 0, "{blocks} blocks, {partly} of which lost a part of a document");
}

#[test]
fn a_damaged_section_or_header_never_changes_a_text() {
    let place = sound(3);
    let before = texts(&place.read());
    for name in segments(&place.path()) {
        let path = place.path().join(&name);
        let bytes = fs::read(&path).expect("the file is there");
        let layout = Layout::parse(FileKind::Segment, &bytes).expect("it is sound");
        let end = layout.sections().last().expect("it has sections").range.end;
        let mut ranges: Vec<(String, Range<usize>)> = vec![
            ("the header".into(), 0..256),
            ("one bit of the header".into(), 17..18),
            ("the tables".into(), end..bytes.len()),
            ("one bit of the tables".into(), end + 70..end + 71),
            ("a block's checksum".into(), bytes.len() - 2..bytes.len() - 1),
        ];
        ranges.extend(layout.sections().iter().map(|found| (found.kind.name().to_owned(), found.range.clone())));
        for ((part, range), number) in ranges.into_iter().zip(0..) {
            let value = [0, 0xff, 0x40][number % 3];
            let mut changed = bytes.clone();
            changed[range.clone()].iter_mut().for_each(|byte| *byte = if value == 0x40 { *byte ^ 0x40 } else { value });
            fs::write(&path, &changed).expect("the file can be written");
            let what = format!("{part} of {}, {value:#x}", name.display());
            let saved = salvaged(&place.path(), &what);
            let after = texts(&saved.place.read());
            let whole = part.contains("header");
            assert!(!whole || after == before, "{what}: something is lost");
            let is_back =
                |key: &String| saved.found.lost.iter().any(|lost| lost.what == "deletions") && key.starts_with('d');
            for (key, text) in &after {
                assert!(before.get(key) == Some(text) || is_back(key), "{what}: {key} has another text");
            }
            assert!(after == before || !saved.found.lost.is_empty(), "{what}: nothing says that something is lost");
        }
        for changed in [&bytes[..bytes.len() / 2], &[], &[&bytes[..], &[0; 64]].concat()] {
            fs::write(&path, changed).expect("the file can be written");
            let what = format!("{} bytes of {}", changed.len(), name.display());
            let saved = salvaged(&place.path(), &what);
            assert!(saved.found.lost.iter().any(|lost| lost.what == "documents"), "{what}");
        }
        fs::remove_file(&path).expect("the file is there");
        let saved = salvaged(&place.path(), "a missing segment");
        assert!(saved.found.lost.iter().any(|lost| name.to_string_lossy() == lost.file), "{:?}", saved.found.lost);
        fs::write(&path, bytes).expect("the file can be written");
    }
}

#[test]
fn a_document_that_lost_its_vector_is_kept_and_read_anew_when_it_comes_again() {
    let place = Place::new();
    let mut numbers = Numbers(5);
    let given: BTreeMap<String, String> = (0..30).map(|row| (format!("d{row}"), noise(&mut numbers, 250))).collect();
    let documents = || given.iter().map(|(key, text)| document(key, text)).collect::<Vec<_>>();
    change(&place.open(), documents(), &[]);
    drop(place.open());
    let before = content(&place.read());
    let path = place.path().join(segments(&place.path()).remove(0));
    let mut bytes = fs::read(&path).expect("the file is there");
    let layout = Layout::parse(FileKind::Segment, &bytes).expect("it is sound");
    let vectors = layout.section(SectionKind::Vectors).expect("it has vectors");
    bytes[vectors.start] ^= 1;
    fs::write(&path, bytes).expect("the file can be written");
    let saved = salvaged(&place.path(), "a damaged vector");
    let snapshot = saved.place.read();
    assert!(texts(&snapshot) == given, "{:?}", saved.found.lost);
    assert!(saved.found.lost.iter().any(|lost| lost.what == "vectors"), "{:?}", saved.found.lost);
    let vectors: u64 = snapshot.spaces().expect("they can be read").iter().map(|space| space.vectors).sum();
    assert!(vectors < 30, "no vector is lost");
    let (staged, _) = change(&saved.place.open(), documents(), &[]);
    assert!(staged.staged > 0 && content(&saved.place.read()) == before);
}

#[test]
fn the_new_store_must_have_a_place_of_its_own_and_there_must_be_something_to_save() {
    let place = sound(3);
    let (taken, empty) = (Place::new(), Place::new());
    put(&taken.open(), &[("a", "Alice owns Bridge.")]);
    let refused = salvage(&env(&place.path()), env(&taken.path()), &Quiet).expect_err("it is taken");
    assert!(matches!(refused, SalvageError::Taken { .. }), "{refused}");
    assert_eq!(texts(&taken.read()).len(), 1);
    let new = Place::new();
    let refused = salvage(&env(&empty.path()), env(&new.path()), &Quiet).expect_err("there is nothing");
    assert!(matches!(refused, SalvageError::Nothing { .. }), "{refused}");
    assert!(!new.path().exists() && !empty.path().exists());
}
