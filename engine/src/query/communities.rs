//! Communities as people see them: listed by level, found by their names, described with their reports.

use crate::error::{Damage, QueryError};
use crate::projection::Communities;
use crate::query::{Listing, Node};
use crate::snapshot::Bounded;
use hedgerow_format::Key;
use hedgerow_format::projection::{CommunityRow, NO_PARENT};
use serde::Serialize;

/// Hexadecimal digits of a community's hash in its key.
const DIGITS: usize = 12;
/// Bytes that a line takes beside its texts.
const LINE_BYTES: u64 = 256;

/// A community in a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommunityLine {
    /// The first digits of the hash of what it is made of: the same as long as nothing of that changes.
    pub id: String,
    /// Its level; 0 is the coarsest.
    pub level: u32,
    /// How many entities are its members.
    pub members: u64,
    /// Its share of the weight of all edges between entities.
    pub rank: f32,
    /// Title of its report.
    pub title: String,
    /// Identity of the model that wrote the report; empty where it is drawn from the store without one.
    pub model: String,
    /// Whether the store has changed since, so that the report may be out of date.
    pub stale: bool,
}

/// A community with its report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CommunityDescription {
    /// As in a list.
    #[serde(flatten)]
    pub line: CommunityLine,
    /// Its report.
    pub text: String,
    /// Keys of the chunks that the report is drawn from.
    pub citations: Vec<String>,
    /// The community that it is a part of.
    pub parent: Option<String>,
    /// The communities into which it is divided.
    pub parts: Vec<CommunityLine>,
    /// Names of its members, those that most chunks mention first.
    pub entities: Vec<String>,
}

impl Bounded<'_> {
    /// See [`Snapshot::list_communities`](crate::Snapshot::list_communities).
    ///
    /// # Errors
    /// [`QueryError`].
    pub fn list_communities(&self, level: Option<u32>, limit: usize) -> Result<Listing, QueryError> {
        self.guard.scope(|| {
            let Some(communities) = self.communities() else { return Ok(Listing::Communities(Vec::new())) };
            let rows = communities.communities()?;
            self.guard.hold::<(usize, CommunityRow)>(rows.len())?;
            let of_level = rows.iter().enumerate().filter(|(_, row)| level.is_none_or(|level| row.level == level));
            self.community_lines(communities, of_level.collect(), limit).map(Listing::Communities)
        })
    }

    /// Lines of some communities: level by level, those of higher rank first.
    fn community_lines(
        &self,
        communities: &Communities,
        mut rows: Vec<(usize, CommunityRow)>,
        limit: usize,
    ) -> Result<Vec<CommunityLine>, QueryError> {
        rows.sort_by(|(_, a), (_, b)| {
            a.level.cmp(&b.level).then_with(|| b.rank.total_cmp(&a.rank)).then_with(|| a.hash.cmp(&b.hash))
        });
        rows.truncate(limit);
        rows.into_iter().map(|(row, community)| self.community_line(communities, row, &community)).collect()
    }

    fn community_line(
        &self,
        communities: &Communities,
        row: usize,
        community: &CommunityRow,
    ) -> Result<CommunityLine, QueryError> {
        self.guard.poll()?;
        let report = communities.report(row)?;
        self.guard.hold_bytes(report.title.len() as u64 + LINE_BYTES)?;
        Ok(CommunityLine {
            id: id(community),
            level: community.level,
            members: community.members.into(),
            rank: community.rank,
            title: report.title,
            model: report.model,
            stale: communities.entry().facts != self.manifest().facts,
        })
    }

    /// The row of the community whose hash begins with some digits, if it is the only one.
    pub(super) fn find_community(&self, digits: &str) -> Result<Option<u32>, QueryError> {
        let Some(communities) = self.communities().filter(|_| !digits.is_empty()) else { return Ok(None) };
        let (mut found, mut pace) = (None, self.guard.pace());
        for (row, community) in (0_u32..).zip(communities.communities()?.iter()) {
            pace.step()?;
            if format!("{:?}", Key(community.hash)).starts_with(digits) && found.replace(row).is_some() {
                return Ok(None);
            }
        }
        Ok(found)
    }

    /// A community and the projection that has it.
    pub(super) fn community(&self, row: u32) -> Result<(&Communities, CommunityRow), QueryError> {
        let not_found = || QueryError::NotFound { key: format!("community {row}") };
        let communities = self.communities().ok_or_else(not_found)?;
        let found = usize::try_from(row).ok().and_then(|row| Some(communities.communities().ok()?.get(row)));
        Ok((communities, found.flatten().ok_or_else(not_found)?))
    }

    pub(super) fn community_key(&self, row: u32) -> Result<String, QueryError> {
        Ok(format!("community:{}", id(&self.community(row)?.1)))
    }

    /// The live members of a community.
    pub(super) fn members_of(&self, row: u32) -> Result<Vec<Node>, QueryError> {
        let (communities, community) = self.community(row)?;
        let (mut members, mut pace) = (Vec::new(), self.guard.pace());
        for member in communities.members(&community)? {
            pace.step()?;
            if self.is_live_entity(member)? {
                self.guard.hold::<Node>(1)?;
                members.push(Node::Entity(member));
            }
        }
        Ok(members)
    }

    pub(super) fn describe_community(&self, row: u32, limit: usize) -> Result<CommunityDescription, QueryError> {
        let (communities, community) = self.community(row)?;
        let place = usize::try_from(row).unwrap_or(usize::MAX);
        let report = communities.report(place)?;
        self.guard.hold_bytes(report.text.len() as u64)?;
        let parts = communities.communities()?.iter().enumerate().filter(|(_, part)| part.parent == row);
        let mut citations = Vec::new();
        for (document, ordinal) in report.citations.iter().take(limit) {
            citations.extend(self.cited(*document, *ordinal)?);
        }
        let parent = if community.parent == NO_PARENT { None } else { Some(id(&self.community(community.parent)?.1)) };
        Ok(CommunityDescription {
            line: self.community_line(communities, place, &community)?,
            text: report.text,
            citations,
            parent,
            parts: self.community_lines(communities, parts.collect(), limit)?,
            entities: self.foremost(row, limit)?,
        })
    }

    /// The key of a chunk that a report cites, if it still lives.
    fn cited(&self, document: Key, ordinal: u32) -> Result<Option<String>, Damage> {
        let Some(found) = self.document_with_key(document)? else { return Ok(None) };
        let chunk = usize::try_from(ordinal).ok().and_then(|ordinal| found.chunks().nth(ordinal));
        chunk.map(|chunk| self.chunk(chunk)?.key()).transpose()
    }

    /// Names of the members that most chunks mention.
    fn foremost(&self, row: u32, limit: usize) -> Result<Vec<String>, QueryError> {
        let mut named = Vec::new();
        for member in self.members_of(row)? {
            let Node::Entity(key) = member else { continue };
            let mark = self.guard.mark();
            let mentions = self.chunks_mentioning(key)?.len();
            self.guard.release(mark);
            let name = self.entity_name(key)?.unwrap_or_default();
            self.guard.hold_bytes(name.len() as u64 + LINE_BYTES)?;
            named.push((std::cmp::Reverse(mentions), name));
        }
        named.sort_unstable();
        Ok(named.into_iter().take(limit).map(|(_, name)| name).collect())
    }
}

fn id(community: &CommunityRow) -> String {
    let mut digits = format!("{:?}", Key(community.hash));
    digits.truncate(DIGITS);
    digits
}
