//! How communities are found.

use hedgerow_format::TextRef;
use hedgerow_format::projection::CommunitySettingsRow;

/// How communities are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommunityRules {
    /// Communities with more members are divided into smaller ones, a level below.
    pub members_max: u32,
    /// Of modularity, in thousandths; more gives smaller communities. Above zero.
    pub resolution: u32,
    /// Levels at most.
    pub levels_max: u32,
    /// Whether chunks that mention two entities join them, beside relations.
    pub co_mentions: bool,
}

impl Default for CommunityRules {
    fn default() -> Self {
        Self { members_max: 32, resolution: 1000, levels_max: 8, co_mentions: true }
    }
}

impl CommunityRules {
    /// As they are recorded beside reports whose vectors have so many components.
    #[must_use]
    pub fn row(&self, dimensions: u32) -> CommunitySettingsRow {
        CommunitySettingsRow {
            community_max: self.members_max,
            resolution: self.resolution,
            levels_max: self.levels_max,
            dimensions,
            space: TextRef::default(),
            model: TextRef::default(),
            co_mentions: u32::from(self.co_mentions),
        }
    }

    /// As they were recorded.
    #[must_use]
    pub fn of(row: &CommunitySettingsRow) -> Self {
        let CommunitySettingsRow { community_max, resolution, levels_max, co_mentions, .. } = *row;
        Self { members_max: community_max, resolution, levels_max, co_mentions: co_mentions == 1 }
    }
}
