//! Two small stores in memory, taken apart into sections and put together again with checksums that are right.

use crate::checks::sections::{Sectioned, built};
use hedgerow::{
    Batch, CommunityRules, Document, EdgeRules, Env, Extractive, FileName, GivenChunk, Merging, Quiet, StagedDocument,
    StagedEdge, StagedEdgeList, StagedEnd, Store, Target, Vfs, triple,
};
use hedgerow_durability::{Disk, Letters, PIPELINE, State, document, unit_vector};
use hedgerow_format::file::{FileIdentity, FileKind, Whole};
use hedgerow_format::head::Head;
use hedgerow_format::manifest::Manifest;
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::segment::SegmentShape;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// A store: its manifest, its files and its catalog.
#[derive(Clone, Debug)]
pub struct Image {
    /// What the manifest says.
    pub manifest: Manifest,
    /// Second half of the manifest's name.
    pub random: u64,
    /// Segments and projections, in the order in which the manifest names them.
    pub files: Vec<Stored>,
    /// The catalog's bytes.
    pub catalog: Vec<u8>,
}

/// A file in its sections.
#[derive(Clone, Debug)]
pub struct Stored {
    /// What it is.
    pub kind: FileKind,
    /// Its sections, in the order of kinds.
    pub sections: Vec<(SectionKind, Vec<u8>)>,
}

impl Image {
    /// A store with compacted and later segments, tombstones, overlays and projections that are in step.
    pub fn settled() -> &'static Self {
        static IMAGE: OnceLock<Image> = OnceLock::new();
        IMAGE.get_or_init(|| Self::of(&life(false)))
    }

    /// The same store after one more commit, so that its projections are behind.
    pub fn behind() -> &'static Self {
        static IMAGE: OnceLock<Image> = OnceLock::new();
        IMAGE.get_or_init(|| Self::of(&life(true)))
    }

    fn of(state: &State) -> Self {
        let bytes = |name: FileName| state.bytes(&name).expect("the store has it");
        let head = Head::from_bytes(bytes(FileName::Head)).expect("it was written");
        let sections = |kind, number, random| {
            let whole = Whole::open(kind, bytes(FileName::Numbered { kind, number, random })).expect("it was written");
            let kinds = whole.layout.sections().iter().map(|section| section.kind);
            let content = |kind| whole.section(kind).expect("it is whole").to_vec();
            Stored { kind, sections: kinds.map(|kind| (kind, content(kind))).collect() }
        };
        let stored = sections(FileKind::Manifest, head.generation, head.random);
        let manifest = Manifest::from_bytes(&stored.sections[0].1).expect("it was written");
        let segments = manifest.segments.iter().map(|entry| (FileKind::Segment, entry.file));
        let projections = manifest
            .projections
            .iter()
            .map(|entry| (FileKind::from_number(entry.kind).expect("it is one of two"), entry.file));
        let files = segments.chain(projections).map(|(kind, file)| sections(kind, file.number, file.random)).collect();
        Self { manifest, random: head.random, files, catalog: bytes(FileName::Catalog).to_vec() }
    }

    /// Writes the store to a new disk: every checksum is right, whatever the sections hold. `mutate` changes the bytes of
    /// the manifest last.
    pub fn disk(&self, mutate: impl FnOnce(&mut Vec<u8>)) -> Disk {
        let disk = Disk::default();
        let mut manifest = self.manifest.clone();
        let store = manifest.store;
        let segments = manifest.segments.iter_mut().map(|entry| &mut entry.file);
        let entries = segments.chain(manifest.projections.iter_mut().map(|entry| &mut entry.file));
        for (entry, stored) in entries.zip(&self.files) {
            let identity = FileIdentity { kind: stored.kind, store, number: entry.number, random: entry.random };
            let sections = stored.sections.iter().map(|(kind, content)| (*kind, &content[..]));
            let (bytes, finished) = built(identity, sections);
            (entry.file_bytes, entry.header_hash) = (finished.file_bytes, finished.header_hash);
            put(&disk, FileName::of(stored.kind, entry), &bytes);
        }
        let mut archived = manifest.to_bytes().expect("it is small");
        mutate(&mut archived);
        let (number, random) = (manifest.generation, self.random);
        let identity = FileIdentity { kind: FileKind::Manifest, store, number, random };
        let (bytes, finished) = built(identity, std::iter::once((SectionKind::Manifest, &archived[..])));
        put(&disk, FileName::Numbered { kind: FileKind::Manifest, number, random }, &bytes);
        let head = Head::new(store, number, random, finished.file_bytes, finished.header_hash);
        put(&disk, FileName::Head, &head.to_bytes());
        put(&disk, FileName::Catalog, &self.catalog);
        disk
    }

    /// Its files as inputs of the target for sections.
    pub fn sectioned(&self) -> impl Iterator<Item = Sectioned> {
        let shapes = self.manifest.segments.iter().map(hedgerow_format::manifest::SegmentEntry::shape);
        let covered = self.manifest.projections.iter().map(|entry| entry.chunks_end);
        let shapes = shapes.chain(covered.map(|chunks| SegmentShape { chunks, ..SegmentShape::default() }));
        self.files.iter().zip(shapes).map(|(stored, shape)| {
            let content = |kind: SectionKind| stored.sections.iter().find(|(known, _)| *known == kind);
            let sections =
                SectionKind::ALL.iter().map(|(kind, _)| content(*kind).map_or(Vec::new(), |found| found.1.clone()));
            Sectioned { kind: stored.kind, shape, sections: sections.collect() }
        })
    }

    /// Its files with every section cut to a few elements.
    pub fn small_files(&self) -> Vec<Vec<u8>> {
        let identity = |kind| FileIdentity { kind, store: self.manifest.store, number: 1, random: 2 };
        let cut = |kind: SectionKind, content: &[u8]| content.len().min(2 * kind.element_bytes() as usize);
        let file = |stored: &Stored| {
            let sections = stored.sections.iter().map(|(kind, content)| (*kind, &content[..cut(*kind, content)]));
            built(identity(stored.kind), sections).0
        };
        self.files.iter().map(file).collect()
    }
}

/// Puts a file on a disk.
pub fn put(disk: &Disk, name: FileName, bytes: &[u8]) {
    let file = disk.create_new(&name).expect("names differ");
    file.write_at(bytes, 0).expect("nothing fails on this disk");
}

/// An environment whose names follow from a seed.
pub fn environment(disk: &Disk, seed: u64) -> Env {
    let mut env = Env::seeded(Arc::new(disk.clone()), seed);
    env.merging = Merging { fanout: 3, ..Merging::default() };
    env.index_from = 2;
    env
}

const TEXTS: [(&str, &str); 6] = [
    ("a", "Alice owns Bridge. The old Bridge of Dover is long."),
    ("b", "Carol met ALICE in Ely, where the Bridge is."),
    ("c", "Ely owns Dover. Alice owns Ely and Carol owns Bridge."),
    ("d", "Nothing is known of Fay but that Fay owns Ely."),
    ("e", "東京 is far from Dover; Carol was there."),
    ("f", "Gone tomorrow: Zoe owns Dover."),
];

fn life(behind: bool) -> State {
    let disk = Disk::default();
    let mut env = environment(&disk, 11);
    env.merging = Merging { fanout: 64, bytes: 1 };
    let store = Store::open_or_create_in(env).expect("the disk is sound");
    for (key, text) in TEXTS {
        commit(&store, vec![rich(key, text)], &[], |_| ());
    }
    commit(&store, vec![document("b", "Carol met Alice in Dover.")], &["f"], |batch| {
        batch.put(graph("graph"));
    });
    store.compact(&Quiet).expect("the disk is sound");
    commit(&store, vec![document("g", "Bridge owns Zoe.")], &["d"], |batch| {
        let at = |document: &str, chunk| Target { document: document.into(), chunk };
        let relation = triple(("Alice", ""), "knows", ("Carol", "person"), 0.5).expect("the names differ");
        batch.relate(at("a", Some(0)), relation.clone());
        batch.relate(at("c", None), relation);
        let other = hedgerow::StagedVector { space: "other".into(), ..unit_vector(&[0.6, 0.8]) };
        batch.set_vector(at("c", Some(0)), other);
        batch.set_vector(at("a", Some(0)), unit_vector(&[0.6, 0.8]));
        batch.put(graph("later graph"));
    });
    store.refresh(&Quiet).expect("the disk is sound");
    for space in ["letters", "other"] {
        store.build_edges(space, &EdgeRules::new(30_000, 3), &Quiet).expect("the space is there");
    }
    let rules = CommunityRules { members_max: 3, ..CommunityRules::default() };
    store.build_communities(&rules, &Extractive, Some(&Letters), &Quiet).expect("the disk is sound");
    if behind {
        commit(&store, vec![document("h", "Ely owns Alice."), document("a", "Alice owns nothing.")], &["e"], |_| ());
    }
    drop(store);
    disk.now()
}

/// A document that states a graph with two labels, of which one has weights.
fn graph(key: &str) -> StagedDocument {
    let nodes = ["Alice", "Mill", "ely", "Quay"].map(|name| StagedEnd::new(name, "place").expect("it is a name"));
    let edge = |(subject, object, weight)| StagedEdge { subject, object, weight };
    let edges = BTreeMap::from([
        ("leads to".to_owned(), [(0, 1, 1.0), (2, 1, 1.0), (1, 1, 1.0), (0, 3, 1.0)].map(edge).to_vec()),
        ("near".to_owned(), [(3, 0, 0.5), (2, 3, 2.0)].map(edge).to_vec()),
    ]);
    let edge_lists = StagedEdgeList::of_graph(nodes.into(), edges).expect("the graph is sound");
    StagedDocument { edge_lists, ..StagedDocument::textless(key, [9; 16]) }
}

fn rich(key: &str, text: &str) -> Document {
    let mut given = document(key, text);
    given.source = format!("{key}.txt");
    given.metadata.insert("year".into(), json!(1979));
    if let Some((first, second)) = text.split_once(". ") {
        let chunk = |text: &str| GivenChunk { text: text.into(), metadata: given.metadata.clone() };
        given.chunks = Some(vec![chunk(first), chunk(second)]);
        given.text = String::new();
    }
    given
}

fn commit(store: &Store, put: Vec<Document>, delete: &[&str], more: impl FnOnce(&mut Batch)) {
    let mut batch = Batch::default();
    let staged = PIPELINE.stage(&store.snapshot(), put, &mut batch, &Quiet).expect("no one cancels");
    assert_eq!(staged.rejected, [], "the documents are sound");
    for key in delete {
        batch.delete(key);
    }
    more(&mut batch);
    store.commit(batch).expect("the batch is sound");
}
