//! Small stores of every kind, made in memory: the same bytes for the same seed.

use crate::image::Image;
use crate::life::COMMUNITIES;
use crate::numbers::Numbers;
use crate::pipeline::{PIPELINE, document, unit_vector};
use hedgerow::{
    BackupOptions, Batch, Document, EdgeRules, Env, Extractive, Merging, Quiet, Snapshot, Store, Target, triple,
};
use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Anything that can go wrong where nothing may.
pub type Fault = Box<dyn Error + Send + Sync>;

/// What a small store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One segment, no projection.
    Facts,
    /// A second segment: tombstones, vectors and relations for documents of the first.
    Overlay,
    /// That, with the links projection.
    Links,
    /// That, with similarity edges.
    Edges,
    /// Compacted, so that ids have gaps, with links and edges.
    Compacted,
    /// A segment of several blocks, so that a query reads some and not others; with links and edges.
    Blocks,
    /// A compacted store with links and edges in one file.
    Pack,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Facts, Self::Overlay, Self::Links, Self::Edges, Self::Compacted, Self::Blocks, Self::Pack];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Facts => "facts",
            Self::Overlay => "overlay",
            Self::Links => "links",
            Self::Edges => "edges",
            Self::Compacted => "compacted",
            Self::Blocks => "blocks",
            Self::Pack => "pack",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("there is no kind of store {name}"))
    }
}

/// The store of a kind, and what it was one generation before.
#[derive(Debug)]
pub struct Made {
    /// Its files, swept.
    pub image: Image,
    /// Its files one generation before.
    pub older: Image,
}

/// Makes the store of a kind; another seed gives another UUID and other names for the same content.
///
/// # Errors
/// Those of the engine.
pub fn make(kind: Kind, seed: u64) -> Result<Made, Fault> {
    let image = Image::default();
    let mut env = Env::seeded(Arc::new(image.clone()), seed);
    env.merging = Merging { fanout: usize::MAX, ..Merging::default() };
    env.index_from = 2;
    let store = Store::open_or_create_in(env.clone())?;
    let mut older = image.fork();
    let mut batch = Batch::default();
    put(&store, (0..14).map(|row| page(kind, row)).collect(), &mut batch)?;
    store.commit(batch)?;
    if kind > Kind::Facts {
        older = image.fork();
        let mut batch = Batch::default();
        put(&store, vec![page(kind, 3).text("Carol met Alice3 on the Bridge."), page(kind, 14)], &mut batch)?;
        batch.delete("d1");
        batch.set_vector(Target { document: "d5".into(), chunk: None }, unit_vector(&[0.6, 0.8]));
        let relation = triple(("Alice5", "name"), "knows", ("Carol", "name"), 1.5)?;
        batch.relate(Target { document: "d5".into(), chunk: Some(0) }, relation);
        store.commit(batch)?;
    }
    if kind >= Kind::Compacted {
        older = image.fork();
        store.compact(&Quiet)?;
    }
    if kind > Kind::Links {
        older = image.fork();
        store.build_edges("letters", &EdgeRules::new(50_000, 4), &Quiet)?;
        store.build_communities(&COMMUNITIES, &Extractive, None, &Quiet)?;
    }
    if kind > Kind::Overlay {
        older = image.fork();
        store.refresh(&Quiet)?;
    }
    drop(store);
    // Opening sweeps the files that no generation names any more.
    drop(Store::open_in(env)?);
    if kind == Kind::Pack {
        return Ok(Made { image: pack(&image)?, older: pack(&older)? });
    }
    Ok(Made { image, older })
}

fn pack(image: &Image) -> Result<Image, Fault> {
    let packed = Image::default();
    let env = Env::seeded(Arc::new(packed.clone()), 1);
    Snapshot::open_in(image)?.backup_in(&env, BackupOptions::default(), &Quiet)?;
    Ok(packed)
}

/// Adds a document on top of what the store holds.
///
/// # Errors
/// Those of the engine.
pub fn add(kind: Kind, store: &Store) -> Result<(), Fault> {
    let mut batch = Batch::default();
    put(store, vec![page(kind, 99)], &mut batch)?;
    store.commit(batch)?;
    Ok(())
}

fn put(store: &Store, documents: Vec<Document>, batch: &mut Batch) -> Result<(), Fault> {
    let staged = PIPELINE.stage(&store.snapshot(), documents, batch, &Quiet)?;
    if staged.rejected.is_empty() { Ok(()) } else { Err(format!("{:?}", staged.rejected).into()) }
}

fn page(kind: Kind, row: u64) -> Document {
    let mut text = format!("Alice{row} owns Bridge. The old Bridge of Dover is number {row}.");
    if kind == Kind::Blocks && row.is_multiple_of(2) {
        // One long word that hardly shrinks, and is one term.
        let (letters, mut numbers) = (('a'..='z').chain('0'..='9').collect::<Vec<_>>(), Numbers(row));
        text.push_str(" x");
        text.extend((0..30_000).filter_map(|_| letters.get(numbers.below(letters.len()))));
        text.push('.');
    }
    document(&format!("d{row}"), &text)
}
