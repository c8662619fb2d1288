//! Opens the store for writing where another writer may hold it: waited for, as others are to be able to write meanwhile.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use hedgerow::{Control, OpenError, Store};

use crate::failure::Failure;

/// Another import may take hours; whoever waits longer is told.
const WAIT_MAX: Duration = Duration::from_hours(1);
const LOOK: Duration = Duration::from_millis(50);

/// Opens a store for writing as soon as no one else does.
///
/// # Errors
/// [`Failure`]; [`Failure::Interrupted`] when `control` says so while another writer holds it.
pub(super) fn open(path: &Path, control: &dyn Control) -> Result<Store, Failure> {
    let start = Instant::now();
    loop {
        match Store::open(path) {
            Err(OpenError::Locked { .. }) if control.cancelled() => return Err(Failure::Interrupted),
            Err(OpenError::Locked { .. }) if start.elapsed() < WAIT_MAX => thread::sleep(LOOK),
            opened => return Ok(opened?),
        }
    }
}
