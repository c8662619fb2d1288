//! Checks the durability of Hedgerow on a simulated disk, on the user's own machine.

mod answers;
mod caller;
mod campaign;
mod check;
mod copies;
mod damage;
mod disk;
pub mod flips;
mod hunt;
pub mod image;
mod life;
mod numbers;
mod pinned;
mod pipeline;
mod playback;
mod rot;
mod scenarios;
mod sloppy;

pub use crate::answers::{answers, compare};
pub use crate::campaign::{Campaign, Failure, Report, ScenarioReport};
pub use crate::check::Life;
pub use crate::disk::{Disk, Fault, FaultKind, State};
pub use crate::hunt::Hunted;
pub use crate::life::{COMMUNITIES, Change, Held, Model, RULES, Step, build, changed, documents, key, live, text};
pub use crate::numbers::Numbers;
pub use crate::pipeline::{Capitals, Letters, MODELS, PIPELINE, document, unit_vector};
pub use crate::scenarios::{Scenario, Tried};
pub use crate::sloppy::Sloppy;
