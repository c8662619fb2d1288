//! Locks and flags: the standard library's, or those of a checker that tries one schedule after another.

#[cfg(not(feature = "shuttle"))]
pub use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(feature = "shuttle"))]
pub use std::sync::{Mutex, MutexGuard, RwLock};

#[cfg(feature = "shuttle")]
pub use shuttle::sync::atomic::{AtomicBool, Ordering};
#[cfg(feature = "shuttle")]
pub use shuttle::sync::{Mutex, MutexGuard, RwLock};
