//! `verify` finds everything that is wrong, says where, and sees what files with right checksums say about each other.

mod edges;
mod graph;
mod vectors;

use crate::stores::{Place, change, document, put};
use hedgerow::{
    Access, Document, EdgeRules, Env, FileName, Folder, Mapping, Quiet, RealDisk, VFile, Verified, Vfs, verify,
};
use hedgerow_format::checksum::BLOCK_BYTES;
use hedgerow_format::file::{FileBuilder, FileIdentity, FileKind, Layout};
use hedgerow_format::head::Head;
use hedgerow_format::manifest::{FileEntry, Manifest};
use hedgerow_format::projection::EdgeReportRow;
use hedgerow_format::section::SectionKind;
use hedgerow_format::segment::{EntityRow, EvidenceRow, ExtractedRow, ExtractionRow};
use hedgerow_format::{Record, TextRef};
use std::fmt::Debug;
use std::fs;
use std::io::{self, Cursor, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn verified(place: &Place) -> Verified {
    verify(&Env::folder(&place.path()).expect("it is a folder"), &Quiet).expect("there is a store")
}

/// Two segments of which the second replaces a document, a relation and metadata in each; links and edges.
fn filled() -> Place {
    let place = Place::new();
    let store = place.open_unmerged();
    let told = |key: &str, text: &str| {
        let mut given = document(key, text);
        given.metadata.insert("n".into(), 1.into());
        given
    };
    change(&store, vec![told("a", "Alice owns Bridge."), told("b", "The old Bridge of Dover.")], &[]);
    change(&store, vec![told("b", "Carol owns Ely."), told("c", "Dover owns Ely.")], &[]);
    store.build_edges("letters", &EdgeRules::new(0, 4), &Quiet).expect("edges can be built");
    store.refresh(&Quiet).expect("the store can be brought in step");
    drop(store);
    drop(place.open());
    assert_eq!(verified(&place), Verified { problems: Vec::new(), orphans: Vec::new(), ..verified(&place) });
    place
}

type Parts = Vec<(SectionKind, Vec<u8>)>;

/// Changes the sections of one file and makes all checksums on the way to it right again.
fn forge(place: &Place, kind: FileKind, position: usize, change: impl FnOnce(&mut Parts)) -> PathBuf {
    let root = place.path();
    let head_path = root.join("HEAD");
    let head = Head::from_bytes(&fs::read(&head_path).expect("HEAD is there")).expect("it is sound");
    let path = |folder: &str, number: u64, random: u64, ending: &str| {
        root.join(folder).join(format!("{number:016x}-{random:016x}.{ending}"))
    };
    let manifest_path = path("manifests", head.generation, head.random, "man");
    let mut manifest = Manifest::from_bytes(&parts(&manifest_path, FileKind::Manifest)[0].1).expect("it is sound");
    let (entry, folder, ending) = if kind == FileKind::Segment {
        (&mut manifest.segments[position].file, "segments", "seg")
    } else {
        let mut of_kind = manifest.projections.iter_mut().filter(|entry| entry.kind == kind.number());
        let ending = match kind {
            FileKind::Edges => "edges.prj",
            FileKind::Communities => "communities.prj",
            FileKind::Vectors => "vectors.prj",
            _ => "links.prj",
        };
        (&mut of_kind.nth(position).expect("it is there").file, "projections", ending)
    };
    let file = path(folder, entry.number, entry.random, ending);
    let mut sections = parts(&file, kind);
    change(&mut sections);
    *entry = build(&file, kind, manifest.store, *entry, &sections);
    let known = FileEntry { number: head.generation, random: head.random, ..FileEntry::default() };
    let bytes = manifest.to_bytes().expect("it fits");
    let entry = build(&manifest_path, FileKind::Manifest, manifest.store, known, &[(SectionKind::Manifest, bytes)]);
    let head = Head::new(manifest.store, entry.number, entry.random, entry.file_bytes, entry.header_hash);
    fs::write(head_path, head.to_bytes()).expect("HEAD can be written");
    file
}

fn parts(path: &Path, kind: FileKind) -> Parts {
    let bytes = fs::read(path).expect("the file is there");
    let layout = Layout::parse(kind, &bytes).expect("it is sound");
    let part = |section: &hedgerow_format::file::Section| (section.kind, bytes[section.range.clone()].to_vec());
    layout.sections().iter().map(part).collect()
}

fn build(
    path: &Path,
    kind: FileKind,
    store: [u8; 16],
    entry: FileEntry,
    sections: &[(SectionKind, Vec<u8>)],
) -> FileEntry {
    let identity = FileIdentity { kind, store, number: entry.number, random: entry.random };
    let mut file = FileBuilder::new(Cursor::new(Vec::new()), identity).expect("memory takes it");
    for (kind, bytes) in sections {
        file.section(*kind, bytes).expect("memory takes it");
    }
    let (finished, out) = file.finish().expect("memory takes it");
    let mut bytes = out.into_inner();
    bytes[..256].copy_from_slice(&finished.header);
    fs::write(path, bytes).expect("the file can be written");
    FileEntry { file_bytes: finished.file_bytes, header_hash: finished.header_hash, ..entry }
}

fn section(parts: &mut Parts, kind: SectionKind) -> &mut Vec<u8> {
    &mut parts.iter_mut().find(|(found, _)| *found == kind).expect("it has the section").1
}

/// The only problem names the file and says what is wrong.
#[track_caller]
fn check_forged(kind: FileKind, position: usize, said: &[&str], change: impl FnOnce(&mut Parts)) {
    let place = filled();
    let file = forge(&place, kind, position, change);
    let problems = verified(&place).problems;
    assert_eq!(problems.len(), 1, "{said:?}: {problems:?}");
    let name = file.file_name().expect("it has a name").to_string_lossy().into_owned();
    let where_it_is = if said[0].contains("the generation") { "the generation".to_owned() } else { name };
    assert!(problems[0].contains(&where_it_is), "{problems:?}");
    assert!(said.iter().all(|said| problems[0].contains(said)), "{said:?}: {problems:?}");
}

#[test]
fn a_forged_store_that_changes_nothing_is_sound() {
    let place = filled();
    for kind in [FileKind::Segment, FileKind::Links, FileKind::Edges] {
        forge(&place, kind, 0, |_| {});
    }
    assert_eq!(verified(&place).problems, Vec::<String>::new());
}

#[test]
fn what_one_file_cannot_know_is_found() {
    check_forged(FileKind::Segment, 0, &["evidence outside", "section evidence; offset "], |parts| {
        let rows = section(parts, SectionKind::Evidence);
        let row = EvidenceRow { end: 5000, ..EvidenceRow::decode(rows).expect("there is a row") };
        rows.clear();
        row.encode(rows);
    });
    check_forged(FileKind::Segment, 1, &["another document's", "section evidence"], |parts| {
        let rows = section(parts, SectionKind::Evidence);
        let mut all: Vec<EvidenceRow> =
            rows.chunks(EvidenceRow::SIZE).map(|row| EvidenceRow::decode(row).expect("it is whole")).collect();
        let chunks: Vec<u32> = all.iter().rev().map(|row| row.chunk).collect();
        all.iter_mut().zip(chunks).for_each(|(row, chunk)| row.chunk = chunk);
        rows.clear();
        for row in &all {
            row.encode(rows);
        }
    });
    check_forged(FileKind::Segment, 0, &["length one", "section vectors; offset "], |parts| {
        section(parts, SectionKind::Vectors)[0..4].copy_from_slice(&3_f32.to_le_bytes());
    });
    check_forged(FileKind::Segment, 0, &["length is not that of its terms", "section chunk lengths"], |parts| {
        section(parts, SectionKind::ChunkLengths)[0] += 1;
    });
    check_forged(FileKind::Segment, 1, &["not JSON", "section documents", "1 more like it"], |parts| {
        let strings = section(parts, SectionKind::Strings);
        let at = strings.windows(7).position(|bytes| bytes == b"{\"n\":1}").expect("it is there");
        strings[at + 5] = b',';
    });
    check_forged(FileKind::Segment, 1, &["another model", "letters-17"], |parts| {
        let strings = section(parts, SectionKind::Strings);
        let at = strings.windows(10).position(|bytes| bytes == b"letters-16").expect("it is there");
        strings[at + 9] = b'7';
    });
    check_forged(FileKind::Segment, 1, &["no segment has", "section defining"], |parts| {
        parts.push((SectionKind::Defining, vec![0; 4]));
    });
}

#[test]
fn extractions_that_contradict_what_they_are_bound_to_are_found() {
    check_forged(FileKind::Segment, 0, &["S-REL-7"], |parts| {
        let rows = section(parts, SectionKind::Evidence);
        let row = EvidenceRow { extraction: 0, ..EvidenceRow::decode(rows).expect("there is a row") };
        rows.clear();
        row.encode(rows);
    });
    for (extraction, end, said) in [(0, 5000, "extracted entity outside"), (1, 1, "S-EXT-2")] {
        check_forged(FileKind::Segment, 1, &[said, "extracted"], |parts| {
            let entities = section(parts, SectionKind::Entities).len() / EntityRow::SIZE;
            let [mut row, mut found, mut offsets] = [Vec::new(), Vec::new(), vec![0; 4]];
            let (extractor, nothing) = (TextRef { offset: 0, length: 1 }, TextRef::default());
            ExtractionRow { chunk: 2, extractor, model: nothing }.encode(&mut row);
            ExtractedRow { extraction, spelling: 0, description: nothing, start: 0, end }.encode(&mut found);
            offsets.extend(1_u32.to_le_bytes().repeat(entities));
            parts.push((SectionKind::Extractions, row));
            parts.push((SectionKind::ExtractedOffsets, offsets));
            parts.push((SectionKind::Extracted, found));
        });
    }
}

#[test]
fn a_key_with_two_live_documents_is_found() {
    let place = filled();
    forge(&place, FileKind::Segment, 1, |parts| parts.retain(|(kind, _)| *kind != SectionKind::DeadDocuments));
    let problems = verified(&place).problems;
    assert!(problems.iter().any(|problem| problem.contains("two live documents") && problem.contains("\"b\"")));
}

#[test]
fn edges_that_disagree_are_found() {
    check_forged(FileKind::Edges, 0, &["two weights"], |parts| section(parts, SectionKind::EdgeWeights)[0] ^= 1);
    check_forged(FileKind::Edges, 0, &["another report"], |parts| {
        let report = section(parts, SectionKind::EdgeReport);
        let row = EdgeReportRow::decode(report).expect("there is a row");
        report.clear();
        EdgeReportRow { top_m: 9, ..row }.encode(report);
    });
    check_forged(FileKind::Edges, 0, &["to itself"], |parts| {
        let offsets = section(parts, SectionKind::EdgeOffsets);
        offsets[..8].fill(0);
        offsets.chunks_mut(4).skip(2).for_each(|row| row.copy_from_slice(&1_u32.to_le_bytes()));
        *section(parts, SectionKind::EdgeTargets) = 1_u32.to_le_bytes().to_vec();
        *section(parts, SectionKind::EdgeWeights) = 1_f32.to_le_bytes().to_vec();
    });
}

#[test]
fn a_projection_that_speaks_of_the_dead_is_found() {
    // Chunk 0 is that of the document that was replaced.
    check_forged(FileKind::Edges, 0, &["not live", "chunk 0"], |parts| {
        let offsets = section(parts, SectionKind::EdgeOffsets);
        for (row, offset) in offsets.chunks_mut(4).zip([0_u32, 1, 2, 2, 2]) {
            row.copy_from_slice(&offset.to_le_bytes());
        }
        *section(parts, SectionKind::EdgeTargets) = [1_u32, 0].iter().flat_map(|chunk| chunk.to_le_bytes()).collect();
        *section(parts, SectionKind::EdgeWeights) = 1_f32.to_le_bytes().repeat(2);
    });
}

#[test]
fn every_damaged_block_of_every_file_is_told_with_section_and_offset() {
    let place = Place::new();
    let store = place.open();
    // Letters that don't compress, so that texts and vectors take several blocks.
    let mut numbers = crate::stores::Numbers(7);
    for segment in 0..2 {
        let documents = (0..400).map(|row| {
            let words: Vec<String> = (0..40).map(|_| format!("W{:x}", numbers.draw())).collect();
            Document::new(format!("{segment}-{row}")).text(words.join(" "))
        });
        change(&store, documents.collect(), &[]);
    }
    put(&store, &[("last", "Alice owns Bridge.")]);
    drop(store);
    drop(place.open());
    let mut expected = Vec::new();
    for (name, mut bytes) in crate::stores::files(&place.path()) {
        let name = name.to_string_lossy().into_owned();
        let kind = match name.rsplit('.').next() {
            Some("seg") => FileKind::Segment,
            Some("prj") => FileKind::Links,
            _ => continue,
        };
        let layout = Layout::parse(kind, &bytes).expect("it is sound");
        let step = usize::try_from(BLOCK_BYTES).expect("a block fits into memory");
        for block in (0..layout.block_count()).step_by(2) {
            let at = (block * step).max(256);
            bytes[at] ^= 4;
            let end = ((block + 1) * step).min(layout.sections().last().expect("it has sections").range.end);
            for section in layout.sections().iter().filter(|found| found.range.start < end && found.range.end > at) {
                expected.push((name.clone(), at, section.kind.name()));
            }
        }
        fs::write(place.path().join(&name), &bytes).expect("the file can be written");
    }
    let problems = verified(&place).problems;
    let told = |(name, at, section): &(String, usize, &str)| {
        let offset = format!("offset {at})");
        problems.iter().any(|told| told.contains(name) && told.contains(&offset) && told.contains(section))
    };
    let missing: Vec<_> = expected.iter().filter(|found| !told(found)).collect();
    assert!(expected.len() > 20 && missing.is_empty(), "of {} are missing {missing:?}\n{problems:#?}", expected.len());
}

#[test]
fn orphans_are_told_and_are_no_problem() {
    let place = filled();
    let orphans = ["segments/00000000000000ff-00000000000000aa.seg", "HEAD-00000000000000ad.new"];
    for name in orphans {
        fs::write(place.path().join(name), b"half a file").expect("the file can be written");
    }
    fs::write(place.path().join("segments/notes.txt"), b"not ours").expect("the file can be written");
    let found = verified(&place);
    assert_eq!(found.problems, Vec::<String>::new());
    assert_eq!(found.orphans, ["HEAD-00000000000000ad.new", "segments/00000000000000ff-00000000000000aa.seg"]);
}

#[test]
fn without_head_the_catalogs_generation_is_checked() {
    let place = filled();
    let files = verified(&place).files;
    fs::remove_file(place.path().join("HEAD")).expect("the file is there");
    let found = verified(&place);
    assert_eq!((found.files, found.problems.len()), (files, 1), "{found:?}");
    assert!(found.problems[0].contains("HEAD is missing"), "{found:?}");
}

/// A disk whose catalog is read in the middle of a commit the first time: the first half of it is not written yet.
#[derive(Debug)]
struct InCommit {
    disk: RealDisk,
    torn: Arc<AtomicBool>,
}

/// A file of it.
#[derive(Debug)]
struct Torn {
    file: Box<dyn VFile>,
    torn: Option<Arc<AtomicBool>>,
}

impl VFile for Torn {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(out, offset)?;
        let half = out.len() / 2;
        if self.torn.as_ref().is_some_and(|torn| torn.swap(false, Ordering::Relaxed)) {
            out[..half].fill(0xA5);
        }
        Ok(())
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn set_len(&self, _length: u64) -> io::Result<()> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn map(&self) -> io::Result<Mapping> {
        self.file.map()
    }
}

impl Vfs for InCommit {
    fn describe(&self) -> String {
        self.disk.describe()
    }

    fn create_new(&self, _name: &FileName) -> io::Result<Box<dyn VFile>> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn open(&self, name: &FileName, access: Access) -> io::Result<Box<dyn VFile>> {
        let torn = (*name == FileName::Catalog).then(|| Arc::clone(&self.torn));
        Ok(Box::new(Torn { file: self.disk.open(name, access)?, torn }))
    }

    fn remove(&self, _name: &FileName) -> io::Result<()> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn rename(&self, _from: &FileName, _to: &FileName) -> io::Result<()> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn list(&self, folder: Folder) -> io::Result<Vec<String>> {
        self.disk.list(folder)
    }

    fn make_folder(&self, _folder: Folder) -> io::Result<()> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn sync_folder(&self, _folder: Folder) -> io::Result<()> {
        Err(ErrorKind::PermissionDenied.into())
    }

    fn try_lock(&self, _name: &FileName) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        Err(ErrorKind::PermissionDenied.into())
    }
}

#[test]
fn a_catalog_that_is_read_while_it_is_written_is_read_again() {
    let place = filled();
    let torn = Arc::new(AtomicBool::new(true));
    let env = Env::new(Arc::new(InCommit { disk: RealDisk::new(&place.path()), torn: Arc::clone(&torn) }));
    let verified = verify(&env, &Quiet).expect("there is a store");
    assert!(!torn.load(Ordering::Relaxed), "the torn bytes were read");
    assert_eq!(verified.problems, Vec::<String>::new());
}
