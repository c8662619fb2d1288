//! The hexadecimal examples of `SPEC.md` are bytes of the store that it describes; `UPDATE_SPEC=1` writes them anew.

use crate::house::source::{expect_none, root};
use hedgerow::{
    BackupOptions, Batch, Certainty, Document, EdgeRules, Embed, Env, Extract, Extraction, FileName, FoundMention,
    GivenChunk, Merging, ModelError, Pipeline, Quiet, StagedDocument, StagedEdge, StagedEdgeList, StagedEnd,
    StagedEntity, StagedExtraction, StagedVector, Store, Target, triple,
};
use hedgerow_durability::Disk;
use hedgerow_format::file::FileKind;
use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

/// Counts bytes by their remainder.
struct Toy;

impl Embed for Toy {
    fn space(&self) -> &'static str {
        "toy"
    }

    fn model(&self) -> &'static str {
        "bytes-18"
    }

    fn dimensions(&self) -> usize {
        18
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        let count = |text: &&str| {
            let mut counts = vec![0.0; 18];
            text.bytes().for_each(|byte| counts[usize::from(byte % 18)] += 1.0);
            Some(counts)
        };
        Ok(texts.iter().map(count).collect())
    }
}

/// Finds runs of words with capitals; Waters is a person.
struct Runs;

impl Extract for Runs {
    fn model(&self) -> &'static str {
        "runs"
    }

    fn extract(&self, _title: &str, text: &str) -> Result<Extraction, ModelError> {
        let mut mentions: Vec<FoundMention> = Vec::new();
        let mut start = 0;
        for word in text.split_inclusive([' ', '.', '\n']) {
            let name = word.trim_end_matches([' ', '.', '\n']);
            let range = start..start + name.len();
            start += word.len();
            if !name.starts_with(char::is_uppercase) {
                continue;
            }
            if let Some(last) = mentions.last_mut().filter(|last| last.range.end + 1 == range.start) {
                last.range.end = range.end;
                last.name = format!("{} {name}", last.name);
                last.certainty = Certainty::Certain;
            } else {
                let kind = if name == "Waters" { "person".into() } else { String::new() };
                let certainty = if range.start == 0 { Certainty::SentenceStart } else { Certainty::Certain };
                mentions.push(FoundMention { name: name.into(), kind, range, certainty });
            }
        }
        Ok(Extraction { mentions, relations: Vec::new() })
    }
}

fn first_documents() -> Vec<Document> {
    let chunk = |text: &str| GivenChunk { text: text.into(), ..GivenChunk::default() };
    let chunks = vec![chunk("Animals is their tenth."), chunk("Waters wrote nearly all.")];
    vec![
        Document::new("wall").title("The Wall (album)").text("The Wall is a rock opera that Waters wrote in 1979."),
        Document::new("band").title("Pink Floyd").text("Pink Floyd was formed in London in 1965."),
        Document { chunks: Some(chunks), ..Document::new("animals") },
    ]
}

/// What generations 1 to 5 of the example do.
fn five_generations(store: &Store) {
    let pipeline = Pipeline { embedder: Some(&Toy), extractor: Some(&Runs), ..Pipeline::default() };
    let place = |document: &str, chunk| Target { document: document.into(), chunk };
    let mut batch = Batch::default();
    let staged = pipeline.stage(&store.snapshot(), first_documents(), &mut batch, &Quiet).expect("no one cancels");
    assert_eq!(staged.staged, 3);
    let released = triple(("Pink Floyd", "band"), "released", ("The Wall", ""), 1.0).expect("it is sound");
    batch.relate(place("band", None), released);
    store.commit(batch).expect("the batch is sound");
    store.refresh(&Quiet).expect("the disk is sound");
    store.build_edges("toy", &EdgeRules::new(50_000, 2), &Quiet).expect("the space is there");
    let again = Document::new("band").title("Pink Floyd").text("Pink Floyd played The Wall in Berlin.");
    let mut batch = Batch::default();
    pipeline.stage(&store.snapshot(), vec![again], &mut batch, &Quiet).expect("no one cancels");
    let member = triple(("Waters", "person"), "member of", ("Pink Floyd", ""), 1.5).expect("it is sound");
    batch.relate(place("wall", Some(0)), member);
    let mut components = vec![0.0; 18];
    (components[0], components[17]) = (0.6, -0.8);
    let other = StagedVector { space: "toy".into(), model: "bytes-18".into(), components };
    batch.set_vector(place("animals", Some(1)), other);
    let waters = StagedEntity::new("Waters", "person").expect("it is a name");
    let waters = StagedEntity { description: "wrote nearly all".into(), range: 25..31, ..waters };
    let (extractor, model) = ("llm".into(), "toy@1".into());
    let found = StagedExtraction { extractor, model, entities: vec![waters], relations: Vec::new() };
    batch.set_extraction(place("animals", Some(1)), found);
    store.commit(batch).expect("the batch is sound");
    store.refresh(&Quiet).expect("the disk is sound");
}

type Files = BTreeMap<String, Vec<u8>>;

/// Adds the files of a disk by kind and number, such as `segment 1`; what is known stays.
fn collect(files: &mut Files, before: &str, disk: &Disk) {
    let state = disk.now();
    for name in state.names() {
        let known = match name {
            FileName::Head => "HEAD".to_owned(),
            FileName::Pack => "pack".to_owned(),
            FileName::Numbered { kind: FileKind::Segment, number, .. } => format!("segment {number}"),
            FileName::Numbered { kind: FileKind::Links, number, .. } => format!("links {number}"),
            FileName::Numbered { kind: FileKind::Edges, number, .. } => format!("edges {number}"),
            FileName::Numbered { kind: FileKind::Manifest, number, .. } => format!("manifest {number}"),
            _ => continue,
        };
        let bytes = state.bytes(&name).unwrap_or_default().to_vec();
        files.entry(format!("{before}{known}")).or_insert(bytes);
    }
}

/// The files of the examples: of generation 5, of the compacted store, of its canonical form, and the pack of a new one.
fn files() -> Files {
    let (mut files, disk, canonical, pack) = (Files::new(), Disk::default(), Disk::default(), Disk::default());
    let mut env = Env::seeded(Arc::new(disk.clone()), 1);
    let merging = std::mem::replace(&mut env.merging, Merging { bytes: 0, ..Merging::default() });
    let store = Store::open_or_create_in(env.clone()).expect("the disk is sound");
    let new = store.snapshot();
    new.backup_in(&Env::seeded(Arc::new(pack.clone()), 1), BackupOptions::default(), &Quiet).expect("it is sound");
    five_generations(&store);
    collect(&mut files, "", &disk);
    let mut batch = Batch::default();
    batch.delete("animals");
    store.commit(batch).expect("the batch is sound");
    drop(store);
    env.merging = merging;
    let store = Store::open_in(env).expect("the disk is sound");
    store.compact(&Quiet).expect("the disk is sound");
    collect(&mut files, "", &disk);
    let fingerprint = store.snapshot().fingerprint().expect("it is whole");
    files.insert("fingerprint".into(), fingerprint.0.to_vec());
    hedgerow::canonical(&store.snapshot(), Arc::new(canonical.clone()), &Quiet).expect("the disk is sound");
    collect(&mut files, "canonical ", &canonical);
    collect(&mut files, "", &pack);
    collect(&mut files, "lists ", &lists());
    files
}

/// A store with one document, which states a graph.
fn lists() -> Disk {
    let disk = Disk::default();
    let store = Store::open_or_create_in(Env::seeded(Arc::new(disk.clone()), 1)).expect("the disk is sound");
    let nodes = ["y", "x"].map(|name| StagedEnd::new(name, "").expect("it is a name"));
    let edge = |subject, object| StagedEdge { subject, object, weight: 1.0 };
    let edges = BTreeMap::from([("links".to_owned(), vec![edge(0, 1), edge(1, 1), edge(0, 1)])]);
    let edge_lists = StagedEdgeList::of_graph(nodes.into(), edges).expect("the graph is sound");
    let mut batch = Batch::default();
    batch.put(StagedDocument { edge_lists, ..StagedDocument::textless("web", [7; 16]) });
    store.commit(batch).expect("the batch is sound");
    disk
}

const MARK: &str = "<!-- hex: ";

/// The specification with the bytes of the files in all its examples, and what is wrong with it.
///
/// An example is a code span after `<!-- hex: FILE, OFFSET -->`, or the lines `OFFSET  BYTES  MEANING` of a block after
/// `<!-- hex: FILE -->`. Outside tables no other code may have eight bytes in a row.
fn with_bytes(spec: &str, files: &Files) -> (String, Vec<String>) {
    let (mut text, mut broken) = (String::new(), Vec::new());
    let (mut file, mut fenced) = (None, false);
    for (number, line) in (1..).zip(spec.split_inclusive('\n')) {
        let mut fault = |reason: &str| broken.push(format!("SPEC.md:{number} {reason}: {}", line.trim_end()));
        if line.starts_with("```") {
            fenced = !fenced;
            file = file.filter(|_| fenced);
            text.push_str(line);
        } else if fenced {
            let (offset, rest) = line.split_at(line.find("  ").unwrap_or(0));
            let bytes = file.and_then(|file| part(files, file, offset));
            if bytes.is_none() && (file.is_some() || hex(rest).len() >= 8) {
                fault("is no place in a file");
            }
            text.push_str(offset);
            text.push_str(&bytes.map_or_else(|| rest.to_owned(), |bytes| replaced(rest, bytes)));
        } else if let Some(name) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->\n")) {
            file = Some(name);
            text.push_str(line);
        } else {
            let mut marked = None;
            for (position, piece) in line.split('`').enumerate() {
                let code = position % 2 == 1;
                text.push_str(if position > 0 { "`" } else { "" });
                let bytes = marked.take().filter(|_| code).and_then(|(file, offset)| part(files, file, offset));
                if bytes.is_none() && code && hex(piece).len() >= 8 && !line.starts_with('|') {
                    fault("has bytes of no place in a file");
                }
                text.push_str(&bytes.map_or_else(|| piece.to_owned(), |bytes| replaced(piece, bytes)));
                let mark = piece.trim_end().strip_suffix(" -->").and_then(|before| before.rsplit_once(MARK));
                marked = mark.filter(|_| !code).and_then(|(_, mark)| mark.split_once(", "));
            }
        }
    }
    (text, broken)
}

/// The bytes of a file from a place on.
fn part<'f>(files: &'f Files, file: &str, offset: &str) -> Option<&'f [u8]> {
    let offset = usize::from_str_radix(offset, 16).ok()?;
    files.get(file)?.get(offset..).filter(|bytes| !bytes.is_empty())
}

/// The places of the bytes with which a text begins.
fn hex(text: &str) -> Vec<usize> {
    let (mut places, mut at) = (Vec::new(), 0);
    for word in text.split(' ') {
        if word.len() == 2 && word.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            places.push(at);
        } else if !word.is_empty() {
            break;
        }
        at += word.len() + 1;
    }
    places
}

/// A text whose first bytes are those of the file.
fn replaced(text: &str, bytes: &[u8]) -> String {
    let mut replaced = text.to_owned();
    for (place, byte) in hex(text).into_iter().zip(bytes) {
        replaced.replace_range(place..place + 2, &format!("{byte:02x}"));
    }
    replaced
}

#[test]
fn the_examples_of_the_specification_are_bytes_of_its_store() {
    let path = root().join("SPEC.md");
    let spec = fs::read_to_string(&path).expect("the project has a SPEC.md");
    let (expected, mut broken) = with_bytes(&spec, &files());
    if broken.is_empty() && expected != spec && std::env::var_os("UPDATE_SPEC").is_some() {
        return fs::write(&path, expected).expect("SPEC.md can be written");
    }
    let lines = (1..).zip(spec.lines().zip(expected.lines()));
    let differing = lines.filter(|(_, (found, expected))| found != expected);
    broken.extend(differing.map(|(number, (_, expected))| format!("SPEC.md:{number} should be: {expected}")));
    expect_none(&broken);
}

#[test]
fn a_byte_that_differs_is_seen_and_so_is_an_example_without_a_place() {
    let files = Files::from([("HEAD".to_owned(), (1..20).collect())]);
    let sound = "a <!-- hex: HEAD, 2 --> `03 04 …`\n<!-- hex: HEAD -->\n```\n0001  02 03   be\n```\n";
    assert_eq!(with_bytes(sound, &files), (sound.to_owned(), Vec::new()));
    assert_eq!(with_bytes(&sound.replace("03 04", "03 05"), &files).0, sound);
    assert_eq!(with_bytes(&sound.replace("02 03", "02 02"), &files).0, sound);
    for wrong in [&sound.replace("0001", "0014"), "`00 00 00 00 00 00 00 00`\n", &sound.replace("HEAD -->", "HEED -->")]
    {
        assert_eq!(with_bytes(wrong, &files).1.len(), 1, "{wrong}");
    }
}
