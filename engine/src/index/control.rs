//! How a long computation reports its progress and learns that it should stop.

/// What a long computation calls now and then, from any of its threads.
pub trait Control: Sync {
    /// So much of the work is done; values may arrive out of order, and `total` may grow.
    fn advance(&self, done: u64, total: u64);
    /// Whether to stop; the computation then ends with [`Cancelled`].
    fn cancelled(&self) -> bool;
}

/// No one watches and no one stops it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Control for Quiet {
    fn advance(&self, _done: u64, _total: u64) {}

    fn cancelled(&self) -> bool {
        false
    }
}

/// The computation was stopped by its [`Control`]; nothing of it remains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the computation was cancelled; run it again to get its result")]
pub struct Cancelled;
