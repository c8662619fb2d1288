//! Pure algorithms over slices: no file, no clock.

/// Progress and cancellation of long computations.
pub mod control;
/// Similarity edges between vectors, exact and pruned by percentile.
pub mod edges;
/// Graphs: how they are read, and algorithms over them.
pub mod graph;
/// Deadlines, memory budgets and cancellation of queries.
pub mod guard;
/// Which words of a corpus are names, and where known names stand in a text.
pub mod names;
/// Which scripts are written without spaces.
pub mod scripts;
/// How similar rows are by what they share.
pub mod signals;
/// Terms of a text and how they score.
pub mod terms;
/// Nearest neighbours of vectors, by a graph.
pub mod vector;
