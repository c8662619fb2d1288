//! Which files are read: those of the newest generation that a manifest still names, or else all segments.

use crate::catalog::Catalog;
use crate::error::{OpenError, StorageError};
use crate::index::control::{Cancelled, Control};
use crate::maintain::salvage::part::Part;
use crate::maintain::salvage::{Lost, SalvageError};
use crate::manifest;
use crate::storage::{Env, FileFault, FileName, Folder, VerifiedFile, Wreck, at_folder};
use hedgerow_format::file::FileKind;
use hedgerow_format::manifest::{FileEntry, Manifest, ProjectionEntry};
use std::collections::BTreeSet;
use std::io;

/// The files that are read.
#[derive(Debug)]
pub(super) struct Chosen {
    manifest: Option<Manifest>,
    /// Segments that the manifest does not name and that may be newer, ascending by number.
    others: Vec<FileName>,
    /// Whether the manifest is the newest that `HEAD` and the catalog tell of.
    is_published: bool,
}

impl Chosen {
    /// Looks at `HEAD`, the catalog, all manifests and all names of segments; none where there is nothing.
    pub fn find(env: &Env, control: &dyn Control) -> Result<Option<Self>, SalvageError> {
        let leading = leading(env)?;
        let above = leading.as_ref().map_or(0, |(manifest, _)| manifest.generation + 1);
        let mut manifest = leading.as_ref().map(|(manifest, _)| manifest.clone());
        let mut newer = manifests(env, above)?;
        newer.retain(|found| leading.as_ref().is_none_or(|(manifest, _)| manifest.store == found.store));
        for found in newer {
            // Above the published generation only one that is whole may have been committed. Without one, the newest of
            // which all segments are there is the best guess, and any is better than none.
            let is_good = if leading.is_some() { is_whole(env, &found, control)? } else { is_there(env, &found)? };
            if is_good || (manifest.is_none() && leading.is_none()) {
                manifest = Some(found);
            }
            if is_good {
                break;
            }
        }
        let is_published = leading.is_some_and(|(_, is_published)| is_published);
        let others = if is_published { Vec::new() } else { unnamed(env, manifest.as_ref())? };
        let is_nothing = manifest.is_none() && others.is_empty();
        Ok((!is_nothing).then_some(Self { manifest, others, is_published }))
    }

    /// The generation of the manifest that is read.
    pub fn generation(&self) -> Option<u64> {
        self.manifest.as_ref().map(|manifest| manifest.generation)
    }

    /// The projections that the manifest names.
    pub fn projections(&self) -> impl Iterator<Item = &ProjectionEntry> {
        self.manifest.iter().flat_map(|manifest| &manifest.projections)
    }

    /// The files of communities: the one that the manifest names, or else, where that may not be the newest, all, newest first.
    pub fn communities(&self, env: &Env) -> Result<Vec<FileName>, StorageError> {
        let kind = FileKind::Communities;
        let named = self.projections().filter(|entry| entry.kind == kind.number());
        let mut names: Vec<FileName> = named.map(|entry| FileName::of(kind, &entry.file)).collect();
        if !self.is_published {
            let listed = env.disk.list(Folder::Projections).map_err(at_folder("list", Folder::Projections))?;
            let listed = listed.iter().rev().filter_map(|name| FileName::parse(Folder::Projections, name));
            let listed = listed.filter(|name| matches!(name, FileName::Numbered { kind: found, .. } if *found == kind));
            let listed: Vec<FileName> = listed.filter(|name| !names.contains(name)).collect();
            names.extend(listed);
            names.sort_unstable_by_key(|name| std::cmp::Reverse(name.file_number()));
        }
        Ok(names)
    }

    /// Opens the segments, oldest first; what cannot be opened is lost.
    pub fn open(&self, env: &Env, lost: &mut Vec<Lost>) -> Result<Vec<Part>, SalvageError> {
        let mut parts = Vec::new();
        for entry in self.manifest.iter().flat_map(|manifest| &manifest.segments) {
            let name = FileName::of(FileKind::Segment, &entry.file);
            let documents = entry.documents;
            parts.extend(open(env, name, Some(documents), lost)?.map(|wreck| Part::named(wreck, entry)));
        }
        let mut next_chunk = self.manifest.as_ref().map_or(0, |manifest| manifest.chunks_end);
        for name in &self.others {
            let Some(wreck) = open(env, *name, None, lost)? else { continue };
            let part = Part::guessed(wreck, next_chunk);
            next_chunk = next_chunk.max(part.chunks_end().unwrap_or_default());
            parts.push(part);
        }
        if self.manifest.is_none() {
            let reason = "no manifest can be read, so all segments were: what was deleted or replaced may be back";
            lost.push(Lost { file: String::new(), document: None, what: "deletions", reason: reason.into() });
        } else if !self.others.is_empty() {
            let reason = "the newest manifest cannot be read: what was deleted or replaced since may be back";
            lost.push(Lost { file: String::new(), document: None, what: "deletions", reason: reason.into() });
        }
        Ok(parts)
    }
}

fn open(
    env: &Env,
    name: FileName,
    documents: Option<u32>,
    lost: &mut Vec<Lost>,
) -> Result<Option<Wreck>, SalvageError> {
    let reason = match Wreck::open(&*env.disk, FileKind::Segment, name) {
        Ok(wreck) => return Ok(Some(wreck)),
        Err(FileFault::Damage(damage)) => damage.to_string(),
        Err(FileFault::Storage(error)) if error.source.kind() == io::ErrorKind::NotFound => error.to_string(),
        Err(FileFault::Storage(error)) => return Err(error.into()),
    };
    let count = documents.map_or_else(|| "its documents".to_owned(), |count| format!("its {count} documents"));
    let loss = |what, reason| Lost { file: name.to_string(), document: None, what, reason };
    lost.push(loss("documents", format!("{count}: {reason}")));
    lost.push(loss("deletions", "its deletions and replacements cannot be read; documents may be back".into()));
    Ok(None)
}

/// The manifest of the published generation, as far as `HEAD` and the catalog still tell; and whether it is the newest that
/// they tell of, which it is not where that one's manifest cannot be read.
fn leading(env: &Env) -> Result<Option<(Manifest, bool)>, OpenError> {
    let mut told: Vec<([u8; 16], FileEntry)> = Vec::new();
    match manifest::read_head(&*env.disk) {
        Ok(head) => told.extend(head.map(|head| (head.store, manifest::entry_of(&head)))),
        Err(OpenError::Damaged(_)) => {}
        Err(error) => return Err(error),
    }
    match Catalog::read(env) {
        Ok(state) => told.push((state.store, state.manifest)),
        Err(OpenError::Storage(error)) => return Err(error.into()),
        Err(_) => {}
    }
    told.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.number));
    for (position, (store, entry)) in told.iter().enumerate() {
        if let Some(manifest) = read(env, *store, entry)? {
            return Ok(Some((manifest, position == 0)));
        }
    }
    Ok(None)
}

fn read(env: &Env, store: [u8; 16], entry: &FileEntry) -> Result<Option<Manifest>, OpenError> {
    match manifest::read(&*env.disk, store, entry) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(FileFault::Storage(error)) if error.source.kind() != io::ErrorKind::NotFound => Err(error.into()),
        Err(_) => Ok(None),
    }
}

/// The manifests from a generation on that can be read, newest first.
fn manifests(env: &Env, from: u64) -> Result<Vec<Manifest>, OpenError> {
    let mut found = Vec::new();
    let names = env.disk.list(Folder::Manifests).map_err(at_folder("list", Folder::Manifests))?;
    for name in names.iter().rev().filter_map(|name| FileName::parse(Folder::Manifests, name)) {
        let FileName::Numbered { number, random, .. } = name else { continue };
        if number < from {
            break;
        }
        match manifest::identify(&*env.disk, number, random) {
            Ok((store, entry)) => found.extend(read(env, store, &entry)?),
            Err(FileFault::Storage(error)) => return Err(error.into()),
            Err(FileFault::Damage(_)) => {}
        }
    }
    Ok(found)
}

/// Whether every segment of a generation is there.
fn is_there(env: &Env, manifest: &Manifest) -> Result<bool, OpenError> {
    let names = env.disk.list(Folder::Segments).map_err(at_folder("list", Folder::Segments))?;
    let names: BTreeSet<FileName> = names.iter().filter_map(|name| FileName::parse(Folder::Segments, name)).collect();
    Ok(manifest.segments.iter().all(|entry| names.contains(&FileName::of(FileKind::Segment, &entry.file))))
}

/// Whether every byte of every segment of a generation is as it was written.
fn is_whole(env: &Env, manifest: &Manifest, control: &dyn Control) -> Result<bool, SalvageError> {
    for entry in &manifest.segments {
        if control.cancelled() {
            return Err(Cancelled.into());
        }
        let opened = VerifiedFile::open(&*env.disk, FileKind::Segment, manifest.store, &entry.file);
        match opened.and_then(|file| file.check_all().map_err(FileFault::Damage)) {
            Ok(()) => {}
            Err(FileFault::Storage(error)) if error.source.kind() != io::ErrorKind::NotFound => {
                return Err(error.into());
            }
            Err(_) => return Ok(false),
        }
    }
    Ok(true)
}

/// Segment files that a manifest does not name and that are younger than all that it does, ascending by number.
fn unnamed(env: &Env, manifest: Option<&Manifest>) -> Result<Vec<FileName>, OpenError> {
    let newest = manifest.and_then(|manifest| manifest.segments.iter().map(|entry| entry.file.number).max());
    let names = env.disk.list(Folder::Segments).map_err(at_folder("list", Folder::Segments))?;
    let younger = |name: &FileName| matches!(name, FileName::Numbered { number, .. } if Some(*number) > newest);
    Ok(names.iter().filter_map(|name| FileName::parse(Folder::Segments, name)).filter(younger).collect())
}
