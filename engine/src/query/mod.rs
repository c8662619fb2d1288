//! Questions, walks and look-ups over one snapshot.

mod analysis;
mod answer;
mod ask;
mod calls;
mod communities;
mod describe;
mod expand;
mod explain;
pub mod filter;
mod graph;
mod legs;
mod listed;
mod names;
mod nearest;
mod node;
mod rank;
mod reach;
mod search;
mod together;
mod verdicts;

pub use analysis::{
    Betweenness, ComponentLine, Components, DegreeLine, Degrees, Following, FoundPath, FoundPaths, GraphDumped,
    GraphPart, Measure, NeighbourLine, NeighbourOptions, Neighbours, NodeSet, PathCost, PathOptions, PlanError, Ranked,
    RankedKind, Ranking, RankingOptions, ScoreLine, Selected, SelectedLine,
};
pub use answer::{
    Comparison, Context, Dropped, Legs, LinkTrace, NameTrace, Passage, ReportPassage, Role, Step, TermTrace, Trace,
    VectorTrace,
};
pub use ask::{Question, Recipe, Sage, Strategy};
pub use communities::{CommunityDescription, CommunityLine};
pub use describe::{
    Description, DescriptionLine, DocumentLine, EntityEdges, EntityLine, ExtractionLine, Listing, MentionLine,
    RelationLine,
};
pub use expand::{ExpandOptions, Expansion, PathEdge, Reached, Returned};
pub use explain::{EdgeRule, Explanation, Reason};
pub use graph::{Direction, EdgeKind};
pub use nearest::Recall;
pub use node::Node;
pub use reach::Reach;
pub use search::{ChunkSet, Found, VectorSearch};
pub use verdicts::Verdict;
