//! Checks the durability of Hedgerow on a simulated disk, on the user's own machine.

mod damage;
mod disk;
mod numbers;

pub use crate::disk::{Disk, Fault, FaultKind, State};
