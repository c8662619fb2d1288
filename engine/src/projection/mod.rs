//! One immutable file made from the whole corpus: links or similarity edges.

mod edges;
mod links;

pub use edges::{Edges, EdgesData, build_edges};
pub use links::{LinkEntity, Links, LinksData, build_links};
