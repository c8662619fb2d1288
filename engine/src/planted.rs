//! Faults that can be put in on purpose, so that what looks for faults can be seen to find them.
//!
//! Without the feature `planted` none of them exists: the question is always answered with no.

use std::cell::Cell;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// The catalog is committed before the folders of the new files are synced.
    CommitBeforeFolders,
    /// `HEAD` is published before the catalog is committed.
    PublishBeforeCommit,
    /// Files that a commit drops are removed before it is true.
    EarlyUnlink,
    /// The catalog is committed in one phase, and one that was not closed is used as it is.
    OnePhase,
    /// A new catalog is made under its final name.
    CatalogInPlace,
    /// Opening does not publish what the catalog says.
    NoPublishAtOpen,
    /// Opening does not remove orphans.
    NoSweep,
    /// The sweep takes projections for orphans.
    SweepsProjections,
    /// A writer goes on after an unknown outcome.
    PoisonIgnored,
    /// Checksums are not looked at.
    ChecksumIgnored,
    /// A projection that is behind is taken for one in step.
    StaleBelieved,
    /// Tombstones are not written.
    TombstonesLost,
    /// What `HEAD` names is made true without looking at it.
    AdoptUnverified,
    /// The number of a generation that was lost is given again.
    GenerationReused,
    /// Files that a commit drops are removed when it is true, and before it is published.
    UnlinkBeforePublish,
    /// A compaction forgets what was said later about older documents.
    OverlayForgotten,
    /// A compaction keeps the dead.
    DeadKept,
    /// A compaction numbers its rows anew.
    Renumbered,
    /// A compaction loses the last document.
    DocumentDropped,
    /// Vectors that no index covers are not compared.
    UncoveredSkipped,
    /// Vectors in an index count after they were replaced.
    ReplacedCount,
    /// A section is marked as checked before it is.
    BelievedTooEarly,
    /// A commit looks at what there is before it has the lock.
    LockedTooLate,
}

#[cfg(feature = "planted")]
impl Planted {
    /// All that one thread by itself can show.
    pub const ALL: [Self; 21] = [
        Self::CommitBeforeFolders,
        Self::PublishBeforeCommit,
        Self::EarlyUnlink,
        Self::OnePhase,
        Self::CatalogInPlace,
        Self::NoPublishAtOpen,
        Self::NoSweep,
        Self::SweepsProjections,
        Self::PoisonIgnored,
        Self::ChecksumIgnored,
        Self::StaleBelieved,
        Self::TombstonesLost,
        Self::AdoptUnverified,
        Self::GenerationReused,
        Self::UnlinkBeforePublish,
        Self::OverlayForgotten,
        Self::DeadKept,
        Self::Renumbered,
        Self::DocumentDropped,
        Self::UncoveredSkipped,
        Self::ReplacedCount,
    ];
    /// Those that only a schedule of several threads shows.
    pub const SCHEDULED: [Self; 2] = [Self::BelievedTooEarly, Self::LockedTooLate];
}

thread_local! {
    static NOW: Cell<Option<Planted>> = const { Cell::new(None) };
}

/// Puts a fault into all that this thread does from now on, or takes it out.
#[cfg(feature = "planted")]
pub fn plant(fault: Option<Planted>) {
    NOW.set(fault);
}

/// Whether a fault is put in.
pub(crate) fn planted(fault: Planted) -> bool {
    cfg!(feature = "planted") && NOW.get() == Some(fault)
}
