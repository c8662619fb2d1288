//! The records of communities of entities with their reports, and the proof that their sections fit together.

use crate::record::{record, to_usize};
use crate::section::{SectionKind, Sections};
use crate::{FormatError, Key, TextRef, limits};

/// In a [`CommunityRow`]: the community is part of no other.
pub const NO_PARENT: u32 = u32::MAX;

record! {
    /// How communities were made.
    CommunitySettingsRow: 36 bytes {
        0 community_max: u32 = "Communities with more members were divided.";
        4 resolution: u32 = "Of modularity, in thousandths; above zero.";
        8 levels_max: u32 = "How many levels there may be.";
        12 dimensions: u32 = "Components of a report's vector; 0 where reports have none.";
        16 space: TextRef = "Name of the vector space of the reports; else empty.";
        24 model: TextRef = "Identity of the model of their vectors; else empty.";
        32 co_mentions: u32 = "1 chunks that mention two entities join them, 0 only relations do.";
    }
}

record! {
    /// A level of communities.
    CommunityLevelRow: 16 bytes {
        0 first: u32 = "First of its communities.";
        4 communities: u32 = "Number of its communities, at least 1.";
        8 modularity: f64 = "Of its communities together with those of coarser levels that were not divided.";
    }
}

record! {
    /// A community.
    CommunityRow: 36 bytes {
        0 hash: [u8; 16] = "First 16 bytes of the BLAKE3 hash of what its report is drawn from.";
        16 parent: u32 = "The community of the level before that it is a part of, or 4,294,967,295.";
        20 level: u32 = "Its level, from 0.";
        24 first_member: u32 = "First of its members.";
        28 members: u32 = "Number of its members, at least 2.";
        32 rank: f32 = "Its share of the weight of all edges, by the degrees of its members.";
    }
}

record! {
    /// What is said of a community.
    CommunityReportRow: 32 bytes {
        0 title: TextRef = "Its title.";
        8 text: TextRef = "Its text.";
        16 model: TextRef = "Identity of what wrote it; empty for what is drawn from names, relations and sentences alone.";
        24 first_citation: u32 = "First of the chunks that it is drawn from.";
        28 citations: u32 = "Number of these.";
    }
}

record! {
    /// A chunk that a report is drawn from.
    ReportCitationRow: 20 bytes {
        0 document: [u8; 16] = "Key of its document.";
        16 ordinal: u32 = "Its place there, from 0.";
    }
}

fn broken(section: SectionKind, rule: &'static str, row: usize) -> FormatError {
    FormatError::Invariant { section: section.name(), rule, row: row as u64 }
}

/// Checks every invariant of a communities projection.
///
/// # Errors
/// The first that is broken.
pub fn validate_communities<S: Sections>(file: &S) -> Result<(), FormatError> {
    communities_findings(file).into_iter().next().map_or(Ok(()), Err)
}

/// What is wrong with a communities projection: the first finding of its settings, its tree, its members and its reports.
pub fn communities_findings<S: Sections>(file: &S) -> Vec<FormatError> {
    [settings(file), levels(file), tree(file), members(file), reports(file), vectors(file)]
        .into_iter()
        .filter_map(Result::err)
        .collect()
}

/// S-COM-1: there is one row of settings, with a resolution and at most as many components as a vector may have.
fn settings<S: Sections>(file: &S) -> Result<(), FormatError> {
    let rows = file.rows::<CommunitySettingsRow>(SectionKind::CommunitySettings)?;
    let fits = |row: &CommunitySettingsRow| {
        row.resolution > 0 && to_usize(row.dimensions) <= limits::DIMENSIONS && row.co_mentions <= 1
    };
    match rows.get(0).filter(fits) {
        Some(row) if rows.len() == 1 => {
            [row.space, row.model].into_iter().try_for_each(|text| file.string(text).map(drop))
        }
        _ => Err(broken(SectionKind::CommunitySettings, "S-COM-1", 0)),
    }
}

/// S-COM-2: levels follow one another, none is empty, together they have all communities; modularity is finite.
fn levels<S: Sections>(file: &S) -> Result<(), FormatError> {
    let mut next = 0_u32;
    let communities = file.rows::<CommunityRow>(SectionKind::Communities)?.len();
    let levels = file.rows::<CommunityLevelRow>(SectionKind::CommunityLevels)?;
    for (row, level) in levels.iter().enumerate() {
        let end = level.first.checked_add(level.communities);
        let follows = level.first == next && level.communities > 0 && level.modularity.is_finite();
        next = end.filter(|_| follows).ok_or_else(|| broken(SectionKind::CommunityLevels, "S-COM-2", row))?;
    }
    if to_usize(next) == communities {
        Ok(())
    } else {
        Err(broken(SectionKind::CommunityLevels, "S-COM-2", levels.len()))
    }
}

/// S-COM-3: communities of a level don't overlap and ascend by their first member; each has two members or more, lies in its
/// parent, which is of the level before, and has a rank from 0 to 1.
fn tree<S: Sections>(file: &S) -> Result<(), FormatError> {
    let communities = file.rows::<CommunityRow>(SectionKind::Communities)?;
    let members = file.section(SectionKind::CommunityMembers)?.as_chunks::<16>().0.len();
    let levels = file.rows::<CommunityLevelRow>(SectionKind::CommunityLevels)?;
    for (number, level) in (0_u32..).zip(levels.iter()) {
        let mut free = 0;
        for row in to_usize(level.first)..to_usize(level.first.saturating_add(level.communities)) {
            let broken = || broken(SectionKind::Communities, "S-COM-3", row);
            let found = communities.get(row).ok_or_else(broken)?;
            let (first, end) = (found.first_member, found.first_member.saturating_add(found.members));
            let inside = match (number.checked_sub(1), communities.get(to_usize(found.parent))) {
                (None, _) => found.parent == NO_PARENT,
                (Some(before), Some(parent)) => {
                    parent.level == before
                        && parent.first_member <= first
                        && end <= parent.first_member.saturating_add(parent.members)
                }
                (Some(_), None) => false,
            };
            let ranked = (0.0..=1.0).contains(&found.rank);
            let placed = first >= free && found.members >= 2 && to_usize(end) <= members;
            if found.level != number || !inside || !ranked || !placed {
                return Err(broken());
            }
            free = end;
        }
    }
    Ok(())
}

/// S-COM-4: the order has every place once, and keys strictly increase in it.
fn members<S: Sections>(file: &S) -> Result<(), FormatError> {
    let section = file.section(SectionKind::CommunityMembers)?;
    let (keys, rest) = section.as_chunks::<16>();
    let order = file.u32s(SectionKind::CommunityOrder)?;
    if !rest.is_empty() || order.len() != keys.len() {
        return Err(broken(SectionKind::CommunityOrder, "S-COM-4", order.len()));
    }
    let mut before = None;
    for (row, place) in order.iter().enumerate() {
        let key = keys.get(to_usize(place)).map(|key| Key(*key));
        if key.is_none() || before >= key {
            return Err(broken(SectionKind::CommunityOrder, "S-COM-4", row));
        }
        before = key;
    }
    Ok(())
}

/// S-COM-5: each community has a report, whose citations follow those of the one before.
fn reports<S: Sections>(file: &S) -> Result<(), FormatError> {
    let communities = file.rows::<CommunityRow>(SectionKind::Communities)?.len();
    let reports = file.rows::<CommunityReportRow>(SectionKind::CommunityReports)?;
    let citations = file.rows::<ReportCitationRow>(SectionKind::ReportCitations)?.len();
    let mut next = 0_u32;
    for (row, report) in reports.iter().enumerate() {
        [report.title, report.text, report.model].into_iter().try_for_each(|text| file.string(text).map(drop))?;
        let end = report.first_citation.checked_add(report.citations).filter(|_| report.first_citation == next);
        next = end.ok_or_else(|| broken(SectionKind::CommunityReports, "S-COM-5", row))?;
    }
    if reports.len() == communities && to_usize(next) == citations {
        Ok(())
    } else {
        Err(broken(SectionKind::CommunityReports, "S-COM-5", reports.len()))
    }
}

/// S-COM-6: there is a vector a report, finite, where the settings say that reports have any.
fn vectors<S: Sections>(file: &S) -> Result<(), FormatError> {
    let settings = file.rows::<CommunitySettingsRow>(SectionKind::CommunitySettings)?;
    let dimensions = settings.get(0).map_or(0, |row| to_usize(row.dimensions));
    let vectors = file.u32s(SectionKind::ReportVectors)?;
    let reports = file.rows::<CommunityReportRow>(SectionKind::CommunityReports)?.len();
    let place = vectors.iter().position(|bits| !f32::from_bits(bits).is_finite());
    match place {
        None if Some(vectors.len()) == reports.checked_mul(dimensions) => Ok(()),
        place => Err(broken(SectionKind::ReportVectors, "S-COM-6", place.unwrap_or(vectors.len()))),
    }
}
