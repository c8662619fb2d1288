//! Sections of any content, in a file whose checksums are right: all decoders, invariants and views.

use crate::checks::image::Image;
use crate::checks::input::Input;
use crate::checks::segment_reader;
use hedgerow_format::file::{FileBuilder, FileIdentity, FileKind, Finished, Whole};
use hedgerow_format::projection::{
    CommunityReportRow, CommunityRow, CommunitySettingsRow, EdgeReportRow, EdgeRow, EdgeSignalRow, EdgeSpare,
    LinkEntityRow, LinkLeadRow, LinkPredicateRow, LinkWords, NO_PARENT, ReportCitationRow, VectorIndexRow, code_bytes,
    validate_communities, validate_edges, validate_links, validate_vectors,
};
use hedgerow_format::section::{SectionKind, Sections};
use hedgerow_format::segment::{self, SegmentShape};
use hedgerow_format::{FormatError, TextRef, U32s};

const KINDS: [FileKind; 5] =
    [FileKind::Segment, FileKind::Links, FileKind::Edges, FileKind::Communities, FileKind::Vectors];

/// An input: a file's kind, what the manifest says of it, and its sections.
#[derive(Clone, Debug)]
pub struct Sectioned {
    /// What the file is.
    pub kind: FileKind,
    /// What the manifest says of it.
    pub shape: SegmentShape,
    /// The content of each section, by position in the list of all kinds.
    pub sections: Vec<Vec<u8>>,
}

impl Sectioned {
    /// Reads an input: kind, shape, then sections, each with its position and length before it.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut input = Input(bytes);
        let kind = KINDS[usize::from(input.byte()) % KINDS.len()];
        let mut next = || u32::from(input.short());
        let shape = SegmentShape {
            first_document: next(),
            documents_end: next(),
            documents: next(),
            first_chunk: next(),
            chunks_end: next(),
            chunks: next(),
        };
        let mut sections = vec![Vec::new(); SectionKind::ALL.len()];
        while !input.is_empty() {
            let position = usize::from(input.byte()) % sections.len();
            let length = usize::from(input.short());
            sections[position] = input.take(length).to_vec();
        }
        Self { kind, shape, sections }
    }

    /// The input that reads as this.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![KINDS.iter().position(|kind| *kind == self.kind).map_or(0, small)];
        let shape = &self.shape;
        for number in [
            shape.first_document,
            shape.documents_end,
            shape.documents,
            shape.first_chunk,
            shape.chunks_end,
            shape.chunks,
        ] {
            bytes.extend(u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes());
        }
        for (position, section) in self.sections.iter().enumerate().filter(|(_, section)| !section.is_empty()) {
            let length = u16::try_from(section.len()).unwrap_or(u16::MAX);
            bytes.push(small(position));
            bytes.extend(length.to_le_bytes());
            bytes.extend(&section[..usize::from(length)]);
        }
        bytes
    }

    fn file(&self) -> Vec<u8> {
        let identity = FileIdentity { kind: self.kind, store: [7; 16], number: 1, random: 2 };
        let sections = SectionKind::ALL.iter().zip(&self.sections).map(|((kind, _), content)| (*kind, &content[..]));
        built(identity, sections).0
    }
}

fn small(number: usize) -> u8 {
    u8::try_from(number).expect("there are fewer than 256 kinds")
}

/// A whole file of these sections, its header put in place. What is left of the last element of a section is cut.
pub fn built<'s>(
    identity: FileIdentity,
    sections: impl Iterator<Item = (SectionKind, &'s [u8])>,
) -> (Vec<u8>, Finished) {
    let mut file = FileBuilder::new(Vec::new(), identity).expect("a vector takes all bytes");
    for (kind, content) in sections {
        let whole = content.len() - content.len() % kind.element_bytes() as usize;
        file.section(kind, &content[..whole]).expect("the kinds increase");
    }
    let (finished, mut bytes) = file.finish().expect("a vector takes all bytes");
    bytes[..256].copy_from_slice(&finished.header);
    (bytes, finished)
}

/// No decoder panics, and what is valid answers every reader.
pub fn check(bytes: &[u8]) {
    let input = Sectioned::from_bytes(bytes);
    let file = input.file();
    let whole = Whole::open(input.kind, &file).expect("what the builder wrote is a whole file");
    let (valid, read) = match input.kind {
        FileKind::Segment => (segment::validate(&whole, input.shape), segment_reader::read(&whole, input.shape)),
        FileKind::Links => (validate_links(&whole, input.shape.chunks), read_links(&whole, input.shape.chunks)),
        FileKind::Communities => (validate_communities(&whole), read_communities(&whole)),
        FileKind::Vectors => (validate_vectors(&whole), read_vectors(&whole)),
        _ => (validate_edges(&whole, input.shape.chunks), read_edges(&whole, input.shape.chunks)),
    };
    if valid.is_ok() {
        assert_eq!(read, Ok(()), "what is valid can be read");
    }
}

/// Every row of a CSR, its targets below a limit.
fn rows(offsets: U32s<'_>, targets: U32s<'_>, count: usize, below: usize) -> Result<(), String> {
    let mut seen = 0;
    for row in 0..count {
        let found = targets.slice(offsets.row(row));
        seen += found.len();
        if found.iter().any(|target| target as usize >= below) {
            return Err(format!("row {row} names what is not there"));
        }
    }
    if seen == targets.len() { Ok(()) } else { Err(format!("{seen} of {} targets are in a row", targets.len())) }
}

fn read_links(file: &Whole<'_>, chunks: u32) -> Result<(), String> {
    let said = |error: FormatError| error.to_string();
    let entities = file.rows::<LinkEntityRow>(SectionKind::LinkEntities).map_err(said)?;
    let names: Vec<TextRef> = entities.iter().flat_map(|row| [row.name, row.kind]).collect();
    names.into_iter().try_for_each(|place| file.string(place).map(|_| ())).map_err(said)?;
    let (chunks, entities) = (chunks as usize, entities.len());
    for (offsets, targets, count, below) in [
        (SectionKind::LinkMentionOffsets, SectionKind::LinkMentions, chunks, entities),
        (SectionKind::LinkMentioningOffsets, SectionKind::LinkMentioning, entities, chunks),
        (SectionKind::DefinitionOffsets, SectionKind::Definitions, entities, chunks),
        (SectionKind::DefiningOffsets, SectionKind::Defining, chunks, entities),
    ] {
        rows(file.u32s(offsets).map_err(said)?, file.u32s(targets).map_err(said)?, count, below)?;
    }
    let labels = file.rows::<LinkPredicateRow>(SectionKind::LinkPredicates).map_err(said)?;
    labels.iter().try_for_each(|label| file.string(label.name).map(|_| ())).map_err(said)?;
    for [offsets, targets, predicates, weights] in RELATIONS {
        let targets = file.u32s(targets).map_err(said)?;
        rows(file.u32s(offsets).map_err(said)?, targets, entities, entities)?;
        let [predicates, weights] = [file.u32s(predicates).map_err(said)?, file.u32s(weights).map_err(said)?];
        let labelled = predicates.iter().all(|label| (label as usize) < labels.len());
        let weighed = weights.iter().all(|bits| f32::from_bits(bits) > 0.0);
        let beside = [predicates, weights].iter().all(|beside| beside.is_empty() || beside.len() == targets.len());
        if !labelled || !weighed || !beside || (labels.is_empty() && !targets.is_empty()) {
            return Err("a relation has no label or no weight".into());
        }
    }
    let words = LinkWords::of(file).map_err(said)?;
    for row in 0..words.len() {
        let (word, counts) = words.get(row).ok_or_else(|| format!("word {row} is outside"))?;
        let word = std::str::from_utf8(word).map_err(|error| error.to_string())?;
        if words.find(word) != Some(counts) {
            return Err(format!("word {row} is not found"));
        }
    }
    let leads = file.rows::<LinkLeadRow>(SectionKind::LinkLeads).map_err(said)?;
    if leads.iter().any(|lead| lead.chunk as usize >= chunks) { Err("a lead of no chunk".into()) } else { Ok(()) }
}

/// Each node has its codes, and its neighbours are nodes.
fn read_vectors(file: &Whole<'_>) -> Result<(), String> {
    let said = |error: FormatError| error.to_string();
    let row = file.rows::<VectorIndexRow>(SectionKind::VectorIndex).map_err(said)?.get(0).ok_or("there is no row")?;
    [row.space, row.model].into_iter().try_for_each(|place| file.string(place).map(|_| ())).map_err(said)?;
    let codes = file.section(SectionKind::IndexCodes).map_err(said)?;
    let lists = file.u32s(SectionKind::IndexNeighbours).map_err(said)?;
    let entries = file.u32s(SectionKind::IndexEntries).map_err(said)?;
    for node in 0..row.nodes as usize {
        let width = code_bytes(row.dimensions);
        let own = codes.get(node * width..(node + 1) * width).ok_or_else(|| format!("node {node} has no codes"))?;
        let list = lists.slice(node * row.degree as usize..(node + 1) * row.degree as usize);
        if own.contains(&0) || list.len() != row.degree as usize {
            return Err(format!("node {node} is no node"));
        }
    }
    if lists.iter().chain(entries.iter()).any(|node| node >= row.nodes && node != u32::MAX) {
        return Err("a neighbour is no node".into());
    }
    Ok(())
}

/// The sections of relations in each direction.
const RELATIONS: [[SectionKind; 4]; 2] = [
    [
        SectionKind::LinkRelationOffsets,
        SectionKind::LinkRelations,
        SectionKind::LinkRelationPredicates,
        SectionKind::LinkRelationWeights,
    ],
    [
        SectionKind::LinkRelatingOffsets,
        SectionKind::LinkRelating,
        SectionKind::LinkRelatingPredicates,
        SectionKind::LinkRelatingWeights,
    ],
];

fn read_communities(file: &Whole<'_>) -> Result<(), String> {
    let said = |error: FormatError| error.to_string();
    let settings = file.rows::<CommunitySettingsRow>(SectionKind::CommunitySettings).map_err(said)?.get(0);
    let settings = settings.ok_or("there are no settings")?;
    let communities = file.rows::<CommunityRow>(SectionKind::Communities).map_err(said)?;
    let reports = file.rows::<CommunityReportRow>(SectionKind::CommunityReports).map_err(said)?;
    let citations = file.rows::<ReportCitationRow>(SectionKind::ReportCitations).map_err(said)?.len();
    let members = file.section(SectionKind::CommunityMembers).map_err(said)?.len() / 16;
    for (row, community) in communities.iter().enumerate() {
        let report = reports.get(row).ok_or("a community has no report")?;
        for text in [report.title, report.text, report.model, settings.space, settings.model] {
            file.string(text).map_err(said)?;
        }
        let end = u64::from(community.first_member) + u64::from(community.members);
        let cited = u64::from(report.first_citation) + u64::from(report.citations);
        let rooted = (community.parent == NO_PARENT) == (community.level == 0);
        if end > members as u64 || cited > citations as u64 || !rooted {
            return Err(format!("community {row} names what is not there"));
        }
    }
    let vectors = file.u32s(SectionKind::ReportVectors).map_err(said)?.len();
    let order = file.u32s(SectionKind::CommunityOrder).map_err(said)?;
    let sound = order.len() == members && vectors == communities.len() * settings.dimensions as usize;
    if sound && order.iter().all(|place| (place as usize) < members) {
        Ok(())
    } else {
        Err("members or vectors are not those of the communities".into())
    }
}

fn read_edges(file: &Whole<'_>, chunks: u32) -> Result<(), String> {
    let said = |error: FormatError| error.to_string();
    let chunks = chunks as usize;
    let targets = file.u32s(SectionKind::EdgeTargets).map_err(said)?;
    rows(file.u32s(SectionKind::EdgeOffsets).map_err(said)?, targets, chunks, chunks)?;
    let weights = file.u32s(SectionKind::EdgeWeights).map_err(said)?;
    let report = file.rows::<EdgeReportRow>(SectionKind::EdgeReport).map_err(said)?.get(0);
    file.string(report.ok_or("there is no report")?.space).map_err(said)?;
    if weights.len() != targets.len() {
        return Err("an edge has no weight".into());
    }
    let origins = file.section(SectionKind::EdgeOrigins).map_err(said)?;
    if !origins.is_empty() && (origins.len() != targets.len() || origins.iter().any(|origin| !(1..4).contains(origin)))
    {
        return Err("an edge has no origin".into());
    }
    for signal in file.rows::<EdgeSignalRow>(SectionKind::EdgeSignals).map_err(said)?.iter() {
        file.string(signal.space).map_err(said)?;
    }
    let known = file.rows::<EdgeRow>(SectionKind::EdgeRows).map_err(said)?;
    let spares = file.rows::<EdgeSpare>(SectionKind::EdgeSpares).map_err(said)?;
    let mut end = 0;
    for row in known.iter() {
        if row.chunk as usize >= chunks || row.spares_end < end {
            return Err("a row of an edge is out of order".into());
        }
        end = row.spares_end;
    }
    let sound = end as usize == spares.len() && spares.iter().all(|spare| (spare.row as usize) < known.len());
    if sound { Ok(()) } else { Err("a spare has no row".into()) }
}

/// Every file of two small stores.
pub fn seeds() -> Vec<Vec<u8>> {
    let images = [Image::settled(), Image::behind()];
    images.iter().flat_map(|image| image.sectioned()).map(|input| input.to_bytes()).collect()
}
