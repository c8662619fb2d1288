//! What several runs at once tell of their progress together.

use crate::index::control::{Cancelled, Control};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Progress in nodes, each counted once for every iteration that passes over it.
pub(super) struct Watch<'c> {
    control: &'c dyn Control,
    done: AtomicU64,
    total: AtomicU64,
}

impl<'c> Watch<'c> {
    pub(super) fn new(control: &'c dyn Control) -> Self {
        Self { control, done: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    /// So much more is to be done.
    pub(super) fn expect(&self, nodes: usize) {
        self.total.fetch_add(nodes as u64, Relaxed);
    }

    /// So much more is done.
    pub(super) fn advance(&self, nodes: usize) -> Result<(), Cancelled> {
        let done = self.done.fetch_add(nodes as u64, Relaxed) + nodes as u64;
        self.control.advance(done, self.total.load(Relaxed));
        self.ask()
    }

    /// Whether to go on.
    pub(super) fn ask(&self) -> Result<(), Cancelled> {
        if self.control.cancelled() { Err(Cancelled) } else { Ok(()) }
    }
}
