//! Communities of entities, and a report of each: made anew where what it is made of has changed.

mod content;
mod extractive;
mod graph;
mod joined;
mod material;
mod reports;
mod tree;

pub use extractive::Extractive;
pub use joined::{JoinedDumped, JoinedPart};

use crate::error::CommitError;
use crate::index::control::Control;
use crate::index::graph::leiden::{HierarchySettings, Level, Resolution, hierarchy};
use crate::index::graph::rules::CommunityRules;
use crate::model::{Embed, Summarize};
use crate::project::communities::content::Contents;
use crate::project::communities::reports::{Reported, Reporting, reports};
use crate::project::communities::tree::Tree;
use crate::project::{Fault, chunks_end};
use crate::projection::{CommunitiesData, CommunityData, FormerCommunities, Links};
use crate::snapshot::Snapshot;
use crate::writer::Store;
use hedgerow_format::{EntitySlot, Key};

/// What a build of communities came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommunitiesBuilt {
    /// Entities that were grouped; those without an edge are in no community.
    pub entities: u64,
    /// How many communities each level has, the coarsest first, and their modularity together with those above that were not divided.
    pub levels: Vec<(u64, f64)>,
    /// Reports that were kept, as nothing has changed that they are made of.
    pub kept: u64,
    /// Reports that were made.
    pub made: u64,
    /// How many of all reports a model wrote.
    pub by_models: u64,
    /// Why a model could not make some of them; these were drawn from the store without it.
    pub failed: Vec<String>,
}

/// Which communities are to be there, and where their reports may come from.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'w> {
    pub rules: &'w CommunityRules,
    /// What is kept of, where nothing is different that a report is made of.
    pub former: &'w FormerCommunities,
    reporting: Reporting<'w>,
}

impl<'w> Wanted<'w> {
    /// Without asking what wrote a report: those whose communities are others are drawn from the store. They get vectors by the
    /// embedder that the others have theirs by, if it is among these; by the first where nothing tells.
    pub(super) fn following(
        former: &'w FormerCommunities,
        embedders: &[&'w dyn Embed],
        control: &'w dyn Control,
    ) -> Self {
        let is_theirs = |embedder: &&&dyn Embed| {
            former.space.as_ref().is_none_or(|(space, model)| {
                (embedder.space(), embedder.model(), embedder.dimensions()) == (space, model, former.dimensions)
            })
        };
        let embedder = embedders.iter().find(is_theirs).copied();
        let reporting = Reporting { summarize: &Extractive, embedder, keep_others: true, control };
        Self { rules: &former.rules, former, reporting }
    }
}

impl Store {
    /// Finds communities of entities and makes a report of each, in place of those that there are; brings all projections in step. A
    /// report is kept where members, relations and chunks that it is made of are the same and `summarize` made it.
    ///
    /// Memory: about 40 bytes for each pair of entities in a chunk and each relation.
    ///
    /// # Errors
    /// [`CommitError`]; [`CommitError::Cancelled`] leaves the store as it was.
    pub fn build_communities(
        &self,
        rules: &CommunityRules,
        summarize: &dyn Summarize,
        embedder: Option<&dyn Embed>,
        control: &dyn Control,
    ) -> Result<CommunitiesBuilt, CommitError> {
        let reporting = Reporting { summarize, embedder, keep_others: false, control };
        let former = self.snapshot().former_communities()?.unwrap_or_default();
        self.bring_in_step(Some(Wanted { rules, former: &former, reporting }), &[], control)
    }

    /// Finds the communities that another store had, such as one that was salvaged, with its reports where nothing is different that
    /// they are made of; others are drawn from the store without a model, and get vectors as by [`Store::refresh_with`]. Brings all
    /// projections in step.
    ///
    /// # Errors
    /// [`CommitError`]; [`CommitError::Cancelled`] leaves the store as it was.
    pub fn follow_communities(
        &self,
        former: &FormerCommunities,
        embedders: &[&dyn Embed],
        control: &dyn Control,
    ) -> Result<CommunitiesBuilt, CommitError> {
        self.bring_in_step(Some(Wanted::following(former, embedders, control)), embedders, control)
    }
}

/// Communities of a snapshot by links of its facts.
pub(super) fn communities(
    snapshot: &Snapshot,
    links: &Links,
    Wanted { rules, former, reporting }: Wanted<'_>,
) -> Result<(CommunitiesData, CommunitiesBuilt), Fault> {
    let graph = graph::entity_graph(snapshot, links, rules.co_mentions)?;
    let settings = HierarchySettings {
        community_max: EntitySlot(rules.members_max).index(),
        resolution: Resolution::new(f64::from(rules.resolution) / 1000.0).unwrap_or_default(),
        seed: 0,
        levels_max: EntitySlot(rules.levels_max).index(),
    };
    let found: Vec<Level> = hierarchy(&graph, settings, reporting.control)?;
    let tree = Tree::of(&found);
    let contents = Contents::new(snapshot, links, &graph, &tree)?;
    let reported = reports(&contents, former, reporting)?;
    let mut members = Vec::with_capacity(tree.members.len());
    for member in &tree.members {
        members.push(Key(links.entity(EntitySlot(*member))?.key));
    }
    let (space, dimensions) = reporting.embedder.map_or_else(
        || (former.space.clone().unwrap_or_default(), former.dimensions),
        |embedder| ((embedder.space().to_owned(), embedder.model().to_owned()), embedder.dimensions()),
    );
    let built = CommunitiesBuilt {
        entities: members.len() as u64,
        levels: tree.levels.iter().zip(&found).map(|(level, found)| (level.len() as u64, found.modularity())).collect(),
        kept: reported.kept,
        made: reported.made,
        by_models: reported.by_models,
        failed: reported.failed,
    };
    let levels = levels(&contents, &found, reported.levels);
    let settings = rules.row(u32::try_from(dimensions).unwrap_or(0));
    Ok((CommunitiesData { settings, space, levels, members, chunks_end: chunks_end(snapshot) }, built))
}

/// The levels as they are written.
fn levels(contents: &Contents<'_>, found: &[Level], reported: Vec<Vec<Reported>>) -> Vec<(f64, Vec<CommunityData>)> {
    let place = |member: usize| u32::try_from(member).unwrap_or(u32::MAX);
    let mut levels = Vec::with_capacity(reported.len());
    for (level, (placed, reported)) in contents.tree.levels.iter().zip(reported).enumerate() {
        let communities =
            placed.iter().zip(reported).enumerate().map(|(number, (placed, (hash, report)))| CommunityData {
                hash,
                parent: placed.parent,
                members: place(placed.members.start)..place(placed.members.end),
                rank: contents.rank((level, number)),
                report,
            });
        levels.push((found[level].modularity(), communities.collect()));
    }
    levels
}
