//! Looking after a store: `verify` checks all bytes and all cross-references, `stats` counts, `backup` and `restore` copy.

mod backup;
mod cross;
mod stats;
mod untrusted;
mod verify;

pub use backup::{BackedUp, BackupError, BackupOptions};
pub use stats::{EdgeStats, SpaceStats, Stats};
pub use untrusted::Limits;
pub use verify::{Verified, VerifyError, verify};
