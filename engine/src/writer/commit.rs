//! The commit protocol of `SPEC.md`, step by step.

use crate::catalog::State;
use crate::error::{CommitError, StorageError};
use crate::manifest;
use crate::planted::{Planted, planted};
use crate::projection::{
    CommunitiesData, EdgesData, LinksData, VectorIndexData, build_communities, build_edges, build_links,
    build_vector_index,
};
use crate::segment::{Content, build};
use crate::snapshot::Snapshot;
use crate::storage::{Env, FileFault, FileName, Folder, Vfs, WriteFault, at, at_folder, write_file};
use crate::writer::resolve::Resolved;
use crate::writer::{Compacted, Writer};
use hedgerow_format::FormatError;
use hedgerow_format::file::{FileIdentity, FileKind};
use hedgerow_format::manifest::{FileEntry, Manifest, ProjectionEntry, SegmentEntry};
use std::collections::BTreeSet;
use std::io;

/// What a commit did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// The generation that holds it.
    pub generation: u64,
    /// Documents that were not there before.
    pub added: u64,
    /// Documents that took the place of an older one.
    pub replaced: u64,
    /// Documents that were there just so.
    pub unchanged: u64,
    /// Documents that were deleted.
    pub deleted: u64,
    /// Keys that were to be deleted and are not there.
    pub missing: Vec<String>,
    /// Chunks that were written.
    pub chunks: u64,
    /// Sources of relations that were added by name, apart from those inside documents.
    pub relations: u64,
    /// Vectors that were added by name, apart from those inside documents.
    pub vectors: u64,
    /// Extractions that were set by chunk, apart from those inside documents.
    pub extractions: u64,
    /// What was merged afterwards.
    pub merged: Compacted,
    /// Why nothing could be merged. The commit holds all the same.
    pub merge_fault: Option<String>,
}

/// A projection that is to be published.
#[derive(Debug)]
pub enum Projected {
    /// Definition links.
    Links(Box<LinksData>),
    /// Similarity edges of a space, one a kind of pairs that it has; all of one space and with one set of settings.
    Edges(Vec<EdgesData>),
    /// Communities of entities with their reports.
    Communities(Box<CommunitiesData>),
    /// The index of a vector space.
    Vectors(Box<VectorIndexData>),
    /// No index of a space of this name any more.
    NoVectors(String),
}

/// What goes into one file.
enum Part<'p> {
    Links(&'p LinksData),
    Edges(&'p EdgesData),
    Communities(&'p CommunitiesData),
    Vectors(&'p VectorIndexData),
}

impl Projected {
    fn parts(&self) -> Vec<Part<'_>> {
        match self {
            Self::Links(data) => vec![Part::Links(data)],
            Self::Edges(kinds) => kinds.iter().map(Part::Edges).collect(),
            Self::Communities(data) => vec![Part::Communities(data)],
            Self::Vectors(data) => vec![Part::Vectors(data)],
            Self::NoVectors(_) => Vec::new(),
        }
    }
}

/// A commit in the making: the manifest to be, the files it needs, the files that nothing will need.
pub(super) struct Draft {
    pub manifest: Manifest,
    pub written: Vec<FileName>,
    pub dropped: Vec<FileName>,
}

impl Writer {
    /// Writes a segment and makes it true.
    pub(super) fn commit_facts(
        &mut self,
        env: &Env,
        before: &Snapshot,
        resolved: Resolved,
    ) -> Result<(Committed, Snapshot), CommitError> {
        let mut draft = self.draft(before)?;
        let generation = draft.manifest.generation;
        draft.manifest.facts = generation;
        let (content, committed) = resolved.number(&draft.manifest, env.codec)?;
        (draft.manifest.documents_end, draft.manifest.chunks_end) =
            (content.shape.documents_end, content.shape.chunks_end);
        let entry = self.write_segment(env, before, &content)?;
        draft.written.push(FileName::of(FileKind::Segment, &entry.file));
        draft.manifest.segments.push(entry);
        let snapshot = self.make_true(env, before, draft)?;
        Ok((Committed { generation, ..committed }, snapshot))
    }

    pub(super) fn write_segment(
        &mut self,
        env: &Env,
        before: &Snapshot,
        content: &Content,
    ) -> Result<SegmentEntry, CommitError> {
        let identity = self.name_file(env, before, FileKind::Segment);
        let file = write_file(&*env.disk, identity, |out| build(out, identity, content)).map_err(fault)?;
        Ok(SegmentEntry::new(file, content.shape))
    }

    /// Writes projections and makes them the ones that count; each takes the place of its predecessor.
    pub(super) fn commit_projections(
        &mut self,
        env: &Env,
        before: &Snapshot,
        made_from: &Snapshot,
        projected: &[Projected],
    ) -> Result<Snapshot, CommitError> {
        let mut draft = self.draft(before)?;
        let parts: Vec<Part<'_>> = projected.iter().flat_map(Projected::parts).collect();
        // A kind of pairs that a space had need not be there any more.
        for entry in parts.iter().map(|part| entry_for(part, 0)) {
            draft.drop_projections(|known| known.kind == entry.kind && known.space == entry.space);
        }
        for projected in projected {
            if let Projected::NoVectors(space) = projected {
                draft.drop_projections(|known| known.kind == FileKind::Vectors.number() && known.space == *space);
            }
        }
        for part in parts {
            let mut entry = entry_for(&part, made_from.manifest().facts);
            let kind = FileKind::from_number(entry.kind).unwrap_or(FileKind::Links);
            let identity = self.name_file(env, before, kind);
            let written = write_file(&*env.disk, identity, |out| match part {
                Part::Links(data) => build_links(out, identity, data),
                Part::Edges(data) => build_edges(out, identity, data),
                Part::Communities(data) => build_communities(out, identity, data),
                Part::Vectors(data) => build_vector_index(out, identity, data),
            });
            let file = match written {
                Ok(file) => file,
                Err(error) => return Err(draft.abandon(&*env.disk, fault(error))),
            };
            draft.written.push(FileName::of(kind, &file));
            entry.file = file;
            draft.manifest.projections.push(entry);
        }
        self.make_true(env, before, draft)
    }

    pub(super) fn draft(&self, before: &Snapshot) -> Result<Draft, CommitError> {
        let mut manifest = before.manifest().clone();
        let generation = self.state.manifest.number.max(self.generation_floor).checked_add(1);
        manifest.generation =
            generation.ok_or(FormatError::Limit { what: "the number of commits", limit: u64::MAX })?;
        let dropped = vec![FileName::of(FileKind::Manifest, &self.state.manifest)];
        Ok(Draft { manifest, written: Vec::new(), dropped })
    }

    /// The number is above those of all files that count. A commit that was lost may have used it: what follows it in
    /// the name is new.
    fn name_file(&mut self, env: &Env, before: &Snapshot, kind: FileKind) -> FileIdentity {
        let number = self.state.next_file;
        self.state.next_file = number.saturating_add(1);
        FileIdentity { kind, store: before.manifest().store, number, random: env.random() }
    }

    /// From files that are written and synced to a generation that is published.
    pub(super) fn make_true(
        &mut self,
        env: &Env,
        before: &Snapshot,
        mut draft: Draft,
    ) -> Result<Snapshot, CommitError> {
        let disk = &*env.disk;
        let (entry, snapshot, removed) = match prepare(env, before, &mut draft, self.catalog.pending()) {
            Ok(prepared) => prepared,
            Err(error) => return Err(draft.abandon(disk, error)),
        };
        let state = State { manifest: entry, ..self.state.clone() };
        if planted(Planted::EarlyUnlink) {
            draft.dropped.iter().for_each(|name| drop(remove(disk, name)));
        }
        if planted(Planted::PublishBeforeCommit) {
            manifest::publish(disk, env.random(), draft.manifest.store, &entry)?;
        }
        // The commit point.
        if let Err(error) = self.catalog.commit(&state, &draft.dropped, &removed) {
            return Err(self.poison(error.to_string()));
        }
        self.state = state;
        if planted(Planted::UnlinkBeforePublish) {
            draft.dropped.iter().for_each(|name| drop(remove(disk, name)));
        }
        if planted(Planted::CommitBeforeFolders) {
            draft.written.iter().for_each(|name| drop(disk.sync_folder(name.folder())));
        }
        if let Err(error) = manifest::publish(disk, env.random(), draft.manifest.store, &entry) {
            return Err(self.poison(format!("committed but not published: {error}")));
        }
        Ok(snapshot)
    }

    /// Removes the files that earlier commits dropped, instead of leaving that to the next commit.
    pub(super) fn forget_dropped(&mut self, env: &Env) -> Result<(), CommitError> {
        let disk = &*env.disk;
        let pending = self.catalog.pending().to_vec();
        let removed: Vec<FileName> = pending.into_iter().filter(|name| remove(disk, name).is_ok()).collect();
        for folder in removed.iter().map(FileName::folder).collect::<BTreeSet<Folder>>() {
            disk.sync_folder(folder).map_err(at_folder("sync", folder))?;
        }
        if removed.is_empty() {
            return Ok(());
        }
        self.catalog.commit(&self.state, &[], &removed).map_err(|error| self.poison(error.to_string()))
    }

    fn poison(&mut self, reason: String) -> CommitError {
        self.poisoned = Some(reason.clone());
        CommitError::Unknown { reason }
    }
}

impl Draft {
    fn drop_projections(&mut self, is_dropped: impl Fn(&ProjectionEntry) -> bool) {
        let dropped = &mut self.dropped;
        self.manifest.projections.retain(|entry| {
            let kept = !is_dropped(entry);
            if !kept && let Some(kind) = FileKind::from_number(entry.kind) {
                dropped.push(FileName::of(kind, &entry.file));
            }
            kept
        });
    }

    /// Before the commit point an error leaves no trace: what was written is removed, or swept at the next open.
    fn abandon(&self, disk: &dyn Vfs, error: CommitError) -> CommitError {
        for name in &self.written {
            disk.remove(name).ok();
        }
        error
    }
}

/// Everything before the commit point: removes what earlier commits dropped from the folders that are synced anyway,
/// writes the manifest, syncs the folders, and opens and checks what was written. Says which files were removed; one
/// that the system does not let go stays pending.
fn prepare(
    env: &Env,
    before: &Snapshot,
    draft: &mut Draft,
    pending: &[FileName],
) -> Result<(FileEntry, Snapshot, Vec<FileName>), CommitError> {
    let disk = &*env.disk;
    let entry = manifest::write(disk, env.random(), &draft.manifest).map_err(fault)?;
    draft.written.push(FileName::of(FileKind::Manifest, &entry));
    let folders: BTreeSet<Folder> = draft.written.iter().map(FileName::folder).collect();
    let here = pending.iter().filter(|name| folders.contains(&name.folder()));
    let removed: Vec<FileName> = here.filter(|name| remove(disk, name).is_ok()).copied().collect();
    for folder in folders.into_iter().filter(|_| !planted(Planted::CommitBeforeFolders)) {
        disk.sync_folder(folder).map_err(at_folder("sync", folder))?;
    }
    let opened = manifest::read(disk, draft.manifest.store, &entry)
        .and_then(|manifest| Snapshot::of_manifest(disk, manifest, Some(before)))
        .and_then(|snapshot| snapshot.verify_beside(Some(before)).map(|()| snapshot).map_err(FileFault::Damage));
    Ok((entry, opened.map_err(file_fault)?, removed))
}

/// Removes a file; one that is gone already is no error.
pub(super) fn remove(disk: &dyn Vfs, name: &FileName) -> Result<(), StorageError> {
    match disk.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at("remove", name)(error)),
        _ => Ok(()),
    }
}

/// What the manifest will say of a projection, its file apart. Those of the same kind and space are its predecessors.
fn entry_for(part: &Part<'_>, facts: u64) -> ProjectionEntry {
    let whole = |kind: FileKind, chunks_end| ProjectionEntry {
        kind: kind.number(),
        chunks_end,
        facts,
        ..ProjectionEntry::default()
    };
    match part {
        Part::Links(data) => whole(FileKind::Links, data.chunks_end),
        Part::Communities(data) => whole(FileKind::Communities, data.chunks_end),
        Part::Vectors(data) => {
            ProjectionEntry { space: data.space.clone(), ..whole(FileKind::Vectors, data.chunks_end) }
        }
        Part::Edges(data) => ProjectionEntry {
            kind: FileKind::Edges.number(),
            chunks_end: data.chunks_end,
            facts,
            space: data.space.clone(),
            pairs: data.kind.number(),
            settings: data.settings.clone(),
            ..Default::default()
        },
    }
}

fn fault(error: WriteFault) -> CommitError {
    match error {
        WriteFault::Storage(error) => CommitError::Storage(error),
        WriteFault::Limit(error) => CommitError::Limit(error),
    }
}

fn file_fault(fault: FileFault) -> CommitError {
    match fault {
        FileFault::Storage(error) => CommitError::Storage(error),
        FileFault::Damage(damage) => CommitError::Damaged(damage),
    }
}
