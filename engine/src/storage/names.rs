//! Names of files, made from integers only.

use hedgerow_format::file::FileKind;
use hedgerow_format::manifest::FileEntry;
use hedgerow_format::pack::PackEntry;
use std::fmt;

/// A folder of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Folder {
    /// The store's own.
    Root,
    /// Facts.
    Segments,
    /// What is made from facts.
    Projections,
    /// One manifest a generation.
    Manifests,
}

impl Folder {
    /// The folders inside the store's own.
    pub const INNER: [Self; 3] = [Self::Segments, Self::Projections, Self::Manifests];

    /// Its path, relative to the store.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Root => ".",
            Self::Segments => "segments",
            Self::Projections => "projections",
            Self::Manifests => "manifests",
        }
    }
}

/// A file of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileName {
    /// `HEAD`.
    Head,
    /// What will be renamed to `HEAD`.
    NewHead(u64),
    /// `catalog.redb`.
    Catalog,
    /// What will be renamed to `catalog.redb`.
    NewCatalog(u64),
    /// `LOCK`.
    Lock,
    /// What a computation can't hold in memory, while it runs; numbered from 0.
    Scratch(u64),
    /// A store in one file, on a disk that is made for it: see [`Env::pack`](crate::Env::pack). No file of a folder.
    Pack,
    /// What will be renamed to a pack.
    NewPack(u64),
    /// A file of one of the folders.
    Numbered {
        /// What it is.
        kind: FileKind,
        /// First half of its name.
        number: u64,
        /// Second half of its name.
        random: u64,
    },
}

impl FileName {
    /// The file of this kind that a manifest names.
    #[must_use]
    pub fn of(kind: FileKind, entry: &FileEntry) -> Self {
        Self::Numbered { kind, number: entry.number, random: entry.random }
    }

    /// The file that a pack has at this place.
    #[must_use]
    pub fn of_pack(entry: &PackEntry) -> Option<Self> {
        let kind = FileKind::from_number(entry.kind)?;
        Some(Self::Numbered { kind, number: entry.number, random: entry.random })
    }

    /// The number that it shares with no other file of its store, if it is a segment or a projection; a manifest's
    /// generation.
    #[must_use]
    pub fn file_number(&self) -> Option<u64> {
        match self {
            Self::Numbered { number, .. } => Some(*number),
            _ => None,
        }
    }

    /// Where it lies.
    #[must_use]
    pub fn folder(&self) -> Folder {
        match self {
            Self::Numbered { kind: FileKind::Segment, .. } => Folder::Segments,
            Self::Numbered {
                kind: FileKind::Links | FileKind::Edges | FileKind::Communities | FileKind::Vectors,
                ..
            } => Folder::Projections,
            Self::Numbered { kind: FileKind::Manifest, .. } => Folder::Manifests,
            _ => Folder::Root,
        }
    }

    /// Its name inside its folder.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Head => "HEAD".into(),
            Self::NewHead(random) => format!("HEAD-{random:016x}.new"),
            Self::Catalog => "catalog.redb".into(),
            Self::NewCatalog(random) => format!("catalog-{random:016x}.new"),
            Self::Lock => "LOCK".into(),
            Self::Scratch(number) => format!("scratch-{number:016x}.new"),
            Self::Pack => "pack".into(),
            Self::NewPack(random) => format!("pack-{random:016x}.new"),
            Self::Numbered { kind, number, random } => format!("{number:016x}-{random:016x}.{}", extension(*kind)),
        }
    }

    /// The file that a name inside a store's folder stands for, if it is one of ours.
    #[must_use]
    pub fn parse(folder: Folder, name: &str) -> Option<Self> {
        if folder == Folder::Root {
            let random = |prefix: &str| hex(name.strip_prefix(prefix)?.strip_suffix(".new")?);
            return match name {
                "HEAD" => Some(Self::Head),
                "catalog.redb" => Some(Self::Catalog),
                "LOCK" => Some(Self::Lock),
                _ => {
                    let new = random("HEAD-").map(Self::NewHead).or_else(|| random("catalog-").map(Self::NewCatalog));
                    new.or_else(|| random("scratch-").map(Self::Scratch))
                }
            };
        }
        let (stem, ending) = name.split_once('.')?;
        let (number, random) = stem.split_once('-')?;
        let kind = FileKind::ALL.into_iter().find(|kind| extension(*kind) == ending)?;
        let parsed = Self::Numbered { kind, number: hex(number)?, random: hex(random)? };
        (parsed.folder() == folder).then_some(parsed)
    }
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.folder() {
            Folder::Root => f.write_str(&self.name()),
            folder => write!(f, "{}/{}", folder.path(), self.name()),
        }
    }
}

fn extension(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Segment => "seg",
        FileKind::Links => "links.prj",
        FileKind::Edges => "edges.prj",
        FileKind::Manifest => "man",
        FileKind::Communities => "communities.prj",
        FileKind::Vectors => "vectors.prj",
    }
}

fn hex(digits: &str) -> Option<u64> {
    let plain = digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if plain { u64::from_str_radix(digits, 16).ok() } else { None }
}
