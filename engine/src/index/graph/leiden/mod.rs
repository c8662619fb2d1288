//! Communities of a graph by the Leiden algorithm (Traag, Waltman and van Eck 2019, doi:10.1038/s41598-019-41695-z).

mod graph;
mod hierarchy;
mod iteration;
mod merging;
mod moving;
mod partition;
mod random;
mod refining;
mod search;
mod sums;
mod watch;

#[cfg(test)]
mod tests;

pub use graph::{GraphFault, Undirected};
pub use hierarchy::{HierarchySettings, Level, hierarchy};
pub use partition::{Resolution, modularity};
pub use search::{Communities, communities};
