//! What a query may take: time, memory, and whether someone stops it; asked in every loop that a store's size drives.

use crate::error::QueryError;
use crate::index::control::{Control, Quiet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Steps of a loop between two questions whether to stop.
const STEPS: u32 = 1024;
/// Bytes that a query may hold unless its caller says otherwise.
const MEMORY_BYTES: u64 = 4 << 30;

/// What one query may take.
#[derive(Clone, Copy)]
pub struct QueryLimits<'c> {
    /// When it must be done; none for any time.
    pub deadline: Option<Deadline<'c>>,
    /// Bytes that it may hold at a time, beside the mapped files of the store; counted before they are allocated.
    pub memory_bytes: u64,
    /// Who may stop it.
    pub control: &'c dyn Control,
}

/// An end of time. The caller brings the clock, as the engine has none.
#[derive(Clone, Copy)]
pub struct Deadline<'c> {
    /// The time that has passed since the caller began to count.
    pub elapsed: &'c (dyn Fn() -> Duration + Sync),
    /// The time at which a query stops.
    pub after: Duration,
}

impl Default for QueryLimits<'_> {
    /// No deadline, 4 GiB, and no one who stops it.
    fn default() -> Self {
        Self { deadline: None, memory_bytes: MEMORY_BYTES, control: &Quiet }
    }
}

impl fmt::Debug for QueryLimits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("QueryLimits");
        shown.field("deadline", &self.deadline).field("memory_bytes", &self.memory_bytes).finish_non_exhaustive()
    }
}

impl fmt::Debug for Deadline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deadline").field("after", &self.after).finish_non_exhaustive()
    }
}

/// Holds a query to its limits.
#[derive(Debug)]
pub struct Guard<'c> {
    limits: QueryLimits<'c>,
    held: AtomicU64,
}

impl<'c> Guard<'c> {
    /// A guard that has counted nothing yet.
    #[must_use]
    pub fn new(limits: QueryLimits<'c>) -> Self {
        Self { limits, held: AtomicU64::new(0) }
    }

    /// Whether the query may go on.
    ///
    /// # Errors
    /// [`QueryError::Cancelled`] and [`QueryError::Deadline`].
    pub fn poll(&self) -> Result<(), QueryError> {
        if self.limits.control.cancelled() {
            return Err(QueryError::Cancelled);
        }
        match self.limits.deadline {
            Some(Deadline { elapsed, after }) if elapsed() >= after => Err(QueryError::Deadline { after }),
            _ => Ok(()),
        }
    }

    /// Counts so many values of a type that are about to be allocated.
    ///
    /// # Errors
    /// [`QueryError::Memory`] where they don't fit; nothing is counted then.
    pub fn hold<T>(&self, count: usize) -> Result<(), QueryError> {
        self.hold_bytes((count as u64).saturating_mul(size_of::<T>() as u64))
    }

    /// Counts bytes that are about to be allocated.
    ///
    /// # Errors
    /// [`QueryError::Memory`] where they don't fit; nothing is counted then.
    pub fn hold_bytes(&self, bytes: u64) -> Result<(), QueryError> {
        let budget = self.limits.memory_bytes;
        let within = |held: u64| held.checked_add(bytes).filter(|needed| *needed <= budget);
        match self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within) {
            Ok(_) => Ok(()),
            Err(held) => Err(QueryError::Memory { needed: held.saturating_add(bytes), budget }),
        }
    }

    /// Bytes that are counted now; [`Self::release`] goes back to them once what was counted since is freed.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// What was counted since a mark has been freed.
    pub fn release(&self, mark: u64) {
        self.held.store(mark, Ordering::Relaxed);
    }

    /// Runs one query: what it counts is freed at its end, whatever that is.
    ///
    /// # Errors
    /// Those of [`Self::poll`] and of the query.
    pub fn scope<T>(&self, query: impl FnOnce() -> Result<T, QueryError>) -> Result<T, QueryError> {
        self.poll()?;
        let mark = self.mark();
        let result = query();
        self.release(mark);
        result
    }

    /// The pace of a loop that begins: it polls now and then.
    #[must_use]
    pub fn pace(&self) -> Pace<'_> {
        Pace { guard: self, steps: 0 }
    }
}

/// Counts the steps of one loop.
#[derive(Debug)]
pub struct Pace<'g> {
    guard: &'g Guard<'g>,
    steps: u32,
}

impl Pace<'_> {
    /// One step of the loop; the first of every 1,024 polls.
    ///
    /// # Errors
    /// Those of [`Guard::poll`].
    #[inline]
    pub fn step(&mut self) -> Result<(), QueryError> {
        let polls = self.steps.is_multiple_of(STEPS);
        self.steps = self.steps.wrapping_add(1);
        if polls { self.guard.poll() } else { Ok(()) }
    }

    /// So many steps at once, which poll at most once.
    ///
    /// # Errors
    /// Those of [`Guard::poll`].
    #[inline]
    pub fn steps(&mut self, count: usize) -> Result<(), QueryError> {
        let since = self.steps % STEPS;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.steps = self.steps.wrapping_add(count);
        let polls = count > 0 && (since == 0 || since.saturating_add(count) > STEPS);
        if polls { self.guard.poll() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[derive(Default)]
    struct Counting(AtomicU32);

    impl Control for Counting {
        fn advance(&self, _: u64, _: u64) {}

        fn cancelled(&self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed);
            false
        }
    }

    #[test]
    fn a_loop_polls_at_its_first_step_and_every_1024_after_it() {
        let counting = Counting::default();
        let guard = Guard::new(QueryLimits { control: &counting, ..QueryLimits::default() });
        let mut pace = guard.pace();
        for (steps, polls) in [(1, 1), (1023, 1), (1, 2), (2048, 4)] {
            (0..steps).for_each(|_| pace.step().unwrap());
            assert_eq!(counting.0.load(Ordering::Relaxed), polls);
        }
    }

    #[test]
    fn steps_at_once_poll_where_single_ones_would_but_only_once() {
        let counting = Counting::default();
        let guard = Guard::new(QueryLimits { control: &counting, ..QueryLimits::default() });
        let mut pace = guard.pace();
        for (count, polls) in [(0, 0), (1, 1), (1023, 1), (1, 2), (1022, 2), (2, 3), (1 << 20, 4), (usize::MAX, 5)] {
            pace.steps(count).unwrap();
            assert_eq!(counting.0.load(Ordering::Relaxed), polls, "after {count}");
        }
    }

    #[test]
    fn memory_is_refused_before_it_is_counted() {
        let guard = Guard::new(QueryLimits { memory_bytes: 100, ..QueryLimits::default() });
        guard.hold::<u32>(20).unwrap();
        let mark = guard.mark();
        assert!(matches!(guard.hold_bytes(21), Err(QueryError::Memory { needed: 101, budget: 100 })));
        assert!(matches!(guard.hold::<u64>(usize::MAX), Err(QueryError::Memory { needed: u64::MAX, .. })));
        guard.hold_bytes(20).unwrap();
        guard.release(mark);
        guard.hold_bytes(20).unwrap();
    }

    #[test]
    fn a_deadline_is_told_by_the_clock_of_the_caller() {
        let now = AtomicU64::new(0);
        let elapsed = || Duration::from_secs(now.load(Ordering::Relaxed));
        let deadline = Some(Deadline { elapsed: &elapsed, after: Duration::from_secs(2) });
        let guard = Guard::new(QueryLimits { deadline, ..QueryLimits::default() });
        guard.poll().unwrap();
        now.store(2, Ordering::Relaxed);
        assert!(matches!(guard.poll(), Err(QueryError::Deadline { .. })));
    }
}
