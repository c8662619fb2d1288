//! Looking after a store: `verify` checks all bytes and all cross-references, `stats` counts, `backup` and `restore` copy,
//! `salvage` saves what can still be read.

mod backup;
mod cross;
mod salvage;
mod stats;
mod untrusted;
mod verify;

pub use backup::{BackedUp, BackupError, BackupOptions};
pub use salvage::{Lost, SalvageError, Salvaged, salvage};
pub use stats::{CommunityStats, EdgeStats, ExtractionStats, SpaceStats, Stats};
pub use untrusted::Limits;
pub use verify::{Verified, VerifyError, verify};
