//! The communities projection: clusters of entities, level by level, with what is said of each.

use crate::error::Damage;
use crate::index::graph::rules::CommunityRules;
use crate::projection::Opened;
use crate::segment::Strings;
use hedgerow_format::file::{FileBuilder, FileIdentity, Finished};
use hedgerow_format::projection::{
    CommunityLevelRow, CommunityReportRow, CommunityRow, CommunitySettingsRow, NO_PARENT, ReportCitationRow,
    communities_findings, validate_communities,
};
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::{EntitySlot, FormatError, Key, Record, Rows, TextRef, U32s};
use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::{Deref, Range};

/// An open communities projection.
#[derive(Debug)]
pub struct Communities(Opened);

impl Deref for Communities {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        &self.0
    }
}

/// What a communities projection is made of.
#[derive(Debug)]
pub struct CommunitiesData {
    /// How the communities were made; names are filled in.
    pub settings: CommunitySettingsRow,
    /// Name of the vector space of the reports and identity of its model; empty where they have no vectors.
    pub space: (String, String),
    /// The modularity of each level, and its communities.
    pub levels: Vec<(f64, Vec<CommunityData>)>,
    /// Members; those of a community stand together.
    pub members: Vec<Key>,
    /// One above the highest chunk id.
    pub chunks_end: u32,
}

/// A community.
#[derive(Clone, Debug, PartialEq)]
pub struct CommunityData {
    /// Hash of what it is made of.
    pub hash: [u8; 16],
    /// Which community of the level before it is a part of; none at the first level.
    pub parent: Option<u32>,
    /// Its members.
    pub members: Range<u32>,
    /// Its share of the weight of all edges.
    pub rank: f32,
    /// What is said of it.
    pub report: CommunityReport,
}

/// What is said of a community.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommunityReport {
    /// Its title.
    pub title: String,
    /// Its text.
    pub text: String,
    /// Identity of what wrote it; empty for what is drawn from the store alone.
    pub model: String,
    /// The chunks that it is drawn from: keys of documents and places in them.
    pub citations: Vec<(Key, u32)>,
    /// Its vector; empty where it has none.
    pub vector: Vec<f32>,
}

/// Communities that there were: how they were found, and their reports by the hash of what these are made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FormerCommunities {
    pub(crate) rules: CommunityRules,
    /// Name of the vector space of the reports and identity of its model; empty where they had no vectors, none where nothing tells.
    pub(crate) space: Option<(String, String)>,
    pub(crate) dimensions: usize,
    pub(crate) reports: HashMap<[u8; 16], CommunityReport>,
}

impl FormerCommunities {
    /// Those of a projection.
    pub(crate) fn of(communities: &Communities) -> Result<Self, Damage> {
        let settings = communities.settings()?;
        let space = (communities.text(settings.space)?.to_owned(), communities.text(settings.model)?.to_owned());
        let mut reports = HashMap::new();
        for (row, community) in communities.communities()?.iter().enumerate() {
            reports.insert(community.hash, communities.report(row)?);
        }
        let dimensions = EntitySlot(settings.dimensions).index();
        Ok(Self { rules: CommunityRules::of(&settings), space: Some(space), dimensions, reports })
    }

    /// How many of the reports a model wrote.
    #[must_use]
    pub fn by_models(&self) -> u64 {
        self.reports.values().filter(|report| !report.model.is_empty()).count() as u64
    }
}

impl Communities {
    /// The projection in an open file.
    #[must_use]
    pub fn new(opened: Opened) -> Self {
        Self(opened)
    }

    fn rows<R: Record>(&self, kind: SectionKind) -> Result<Rows<'_, R>, Damage> {
        self.file.rows(kind).map_err(|error| self.file.damage(error))
    }

    fn u32s(&self, kind: SectionKind) -> Result<U32s<'_>, Damage> {
        self.file.u32s(kind).map_err(|error| self.file.damage(error))
    }

    fn no_row(&self, kind: SectionKind, row: usize) -> Damage {
        let expected = format!("a row {row}");
        self.file.damage(FormatError::Shape { section: kind.name(), expected, found: "no such row".into() })
    }

    /// How they were made.
    ///
    /// # Errors
    /// [`Damage`], as for everything below.
    pub fn settings(&self) -> Result<CommunitySettingsRow, Damage> {
        let kind = SectionKind::CommunitySettings;
        self.rows(kind)?.get(0).ok_or_else(|| self.no_row(kind, 0))
    }

    /// The levels, the coarsest first.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn levels(&self) -> Result<Rows<'_, CommunityLevelRow>, Damage> {
        self.rows(SectionKind::CommunityLevels)
    }

    /// All communities, level by level.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn communities(&self) -> Result<Rows<'_, CommunityRow>, Damage> {
        self.rows(SectionKind::Communities)
    }

    /// Keys of the members of a community.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn members(&self, community: &CommunityRow) -> Result<impl ExactSizeIterator<Item = Key>, Damage> {
        let kind = SectionKind::CommunityMembers;
        let keys = self.file.section(kind).map_err(|error| self.file.damage(error))?.as_chunks::<16>().0;
        let first = EntitySlot(community.first_member).index();
        let range = first..first.saturating_add(EntitySlot(community.members).index());
        let found = keys.get(range).ok_or_else(|| self.no_row(kind, first))?;
        Ok(found.iter().map(|key| Key(*key)))
    }

    /// The rows of the communities that an entity is a member of, the coarsest first.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn of_entity(&self, entity: Key) -> Result<Vec<usize>, Damage> {
        let kind = SectionKind::CommunityMembers;
        let keys = self.file.section(kind).map_err(|error| self.file.damage(error))?.as_chunks::<16>().0;
        let order = self.u32s(SectionKind::CommunityOrder)?;
        let key = |place: usize| keys.get(EntitySlot(order.get(place)?).index()).map(|key| Key(*key));
        let Some(found) = crate::segment::find_key(order.len(), entity, key) else { return Ok(Vec::new()) };
        let Some(place) = order.get(found) else { return Ok(Vec::new()) };
        let (communities, mut rows) = (self.communities()?, Vec::new());
        for level in self.levels()?.iter() {
            let begins_before = |row: usize| communities.get(row).is_some_and(|row| row.first_member <= place);
            let (mut low, end) = (EntitySlot(level.first).index(), level.first.saturating_add(level.communities));
            let (first, mut high) = (low, EntitySlot(end).index());
            while low < high {
                let middle = low.midpoint(high);
                if begins_before(middle) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            let last = low.checked_sub(1).filter(|last| *last >= first);
            let holds = |row: &usize| {
                communities.get(*row).is_some_and(|row| place < row.first_member.saturating_add(row.members))
            };
            // What a level leaves out is in no finer one.
            let Some(row) = last.filter(holds) else { break };
            rows.push(row);
        }
        Ok(rows)
    }

    /// What is said of a community.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn report(&self, community: usize) -> Result<CommunityReport, Damage> {
        let kind = SectionKind::CommunityReports;
        let rows: Rows<'_, CommunityReportRow> = self.rows(kind)?;
        let row = rows.get(community).ok_or_else(|| self.no_row(kind, community))?;
        let text = |place: TextRef| self.text(place).map(str::to_owned);
        let first = EntitySlot(row.first_citation).index();
        let citations: Rows<'_, ReportCitationRow> = self.rows(SectionKind::ReportCitations)?;
        let cited = citations.range(first..first.saturating_add(EntitySlot(row.citations).index()));
        Ok(CommunityReport {
            title: text(row.title)?,
            text: text(row.text)?,
            model: text(row.model)?,
            citations: cited.map(|citation| (Key(citation.document), citation.ordinal)).collect(),
            vector: self.vector(community)?,
        })
    }

    /// Whether a model wrote a report.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn is_by_model(&self, community: usize) -> Result<bool, Damage> {
        let kind = SectionKind::CommunityReports;
        let row = self.rows::<CommunityReportRow>(kind)?.get(community).ok_or_else(|| self.no_row(kind, community))?;
        Ok(row.model.length > 0)
    }

    /// The vector of a report; empty where it has none.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn vector(&self, community: usize) -> Result<Vec<f32>, Damage> {
        let dimensions = EntitySlot(self.settings()?.dimensions).index();
        let start = community.saturating_mul(dimensions);
        let vector = self.u32s(SectionKind::ReportVectors)?.slice(start..start.saturating_add(dimensions));
        let vector: Vec<f32> = vector.iter().map(f32::from_bits).collect();
        Ok(if vector.iter().all(|component| *component == 0.0) { Vec::new() } else { vector })
    }

    /// A string that a row refers to.
    ///
    /// # Errors
    /// [`Damage`].
    pub fn text(&self, place: TextRef) -> Result<&str, Damage> {
        self.file.string(place).map_err(|error| self.file.damage(error))
    }

    /// Everything that is wrong with its bytes, and the first broken invariant of each group of its sections.
    #[must_use]
    pub fn findings(&self) -> Vec<FormatError> {
        let broken = communities_findings(&self.file).into_iter();
        let broken = broken.filter(|error| !matches!(error, FormatError::Block { .. }));
        self.file.faults().into_iter().chain(broken).collect()
    }

    /// Checks every byte and every invariant. One that fails does not count from then on.
    ///
    /// # Errors
    /// The first that is wrong.
    pub fn verify(&self) -> Result<(), Damage> {
        let valid = || validate_communities(&self.file).map_err(|error| self.file.damage(error));
        self.conclude(self.file.check_all().and_then(|()| valid()))
    }
}

/// Writes a communities projection to `out`.
///
/// # Errors
/// Those of `out`; [`FormatError::Limit`] inside when there is too much for one file.
pub fn build_communities<W: Write>(
    out: W,
    identity: FileIdentity,
    data: &CommunitiesData,
) -> io::Result<(Finished, W)> {
    let invalid = |error: FormatError| io::Error::new(io::ErrorKind::InvalidInput, error);
    let sections = sections(data).map_err(invalid)?;
    let mut file = FileBuilder::new(out, identity)?;
    for (kind, bytes) in sections {
        file.section(kind, &bytes)?;
    }
    file.finish()
}

fn sections(data: &CommunitiesData) -> Result<Vec<(SectionKind, Vec<u8>)>, FormatError> {
    let mut strings = Strings::default();
    let (mut settings, mut levels, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let (mut reports, mut citations, mut vectors) = (Vec::new(), Vec::new(), Vec::new());
    let (space, model) = (strings.place(&data.space.0)?, strings.place(&data.space.1)?);
    CommunitySettingsRow { space, model, ..data.settings }.encode(&mut settings);
    let (mut first, mut before) = (0_u32, 0_u32);
    for (level, (modularity, communities)) in (0_u32..).zip(&data.levels) {
        let count = number(communities.len())?;
        CommunityLevelRow { first, communities: count, modularity: *modularity }.encode(&mut levels);
        for CommunityData { hash, parent, members, rank, report } in communities {
            let parent = parent.map_or(NO_PARENT, |parent| before.saturating_add(parent));
            let (first_member, members) = (members.start, members.end.saturating_sub(members.start));
            CommunityRow { hash: *hash, parent, level, first_member, members, rank: *rank }.encode(&mut rows);
            let (title, text) = (strings.place(&report.title)?, strings.place(&report.text)?);
            let model = strings.place(&report.model)?;
            let first_citation = number(citations.len() / ReportCitationRow::SIZE)?;
            let cited = number(report.citations.len())?;
            CommunityReportRow { title, text, model, first_citation, citations: cited }.encode(&mut reports);
            for (document, ordinal) in &report.citations {
                ReportCitationRow { document: document.0, ordinal: *ordinal }.encode(&mut citations);
            }
            let dimensions = EntitySlot(data.settings.dimensions).index();
            let mut vector = report.vector.clone();
            vector.resize(dimensions, 0.0);
            vectors.extend(vector.iter().flat_map(|component| component.to_le_bytes()));
        }
        (before, first) = (first, first.saturating_add(count));
    }
    let mut order: Vec<u32> = (0..number(data.members.len())?).collect();
    order.sort_unstable_by_key(|place| data.members[EntitySlot(*place).index()]);
    let members: Vec<u8> = data.members.iter().flat_map(|key| key.0).collect();
    let order: Vec<u8> = order.iter().flat_map(|place| place.to_le_bytes()).collect();
    Ok(vec![
        (SectionKind::Strings, strings.into_bytes()),
        (SectionKind::CommunitySettings, settings),
        (SectionKind::CommunityLevels, levels),
        (SectionKind::Communities, rows),
        (SectionKind::CommunityMembers, members),
        (SectionKind::CommunityOrder, order),
        (SectionKind::CommunityReports, reports),
        (SectionKind::ReportCitations, citations),
        (SectionKind::ReportVectors, vectors),
    ])
}

fn number(count: usize) -> Result<u32, FormatError> {
    let limit = FormatError::Limit { what: "the number of communities", limit: u64::from(u32::MAX) };
    u32::try_from(count).map_err(|_| limit)
}
