//! Edges: a graph between named nodes, whose evidence is the file that states it.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use hedgerow::{Batch, Control, StagedDocument, StagedEdge, StagedEdgeList, StagedEnd};
use hedgerow_format::limits;
use rayon::prelude::*;
use serde::Serialize;

use crate::command::import::asserted::{Hashed, file_document};
use crate::command::import::{Committed, Input, READ_BYTES, Run};
use crate::command::intake::{Origin, Rejections};
use crate::command::render::layout::{counted, grouped};
use crate::failure::Failure;
use crate::read::edges::{Columns, edge_from_line, is_comment};
use crate::read::lines::{LineError, Lines};
use crate::read::npy::Pairs;

/// What tells where the edges are.
#[derive(Debug, clap::Args)]
pub(super) struct EdgeArgs {
    /// Edges of a graph: pairs of node numbers in .npy, or lines of names between tabs
    #[arg(long, value_name = "F.npy|F.tsv")]
    edges: Option<PathBuf>,
    /// Label of edges that bring none
    #[arg(long, value_name = "NAME", requires = "edges")]
    predicate: Option<String>,
    /// Names of the nodes of a .npy file, one a line, that of node 0 first [default: their numbers]
    #[arg(long, value_name = "F.txt", requires = "edges")]
    names: Option<PathBuf>,
    /// What stands between the tabs: subject, predicate, object, weight [default: as many as the first line has; three are spo, or sow with
    /// --predicate]
    #[arg(long, value_name = "COLUMNS", requires = "edges")]
    columns: Option<Columns>,
}

/// A file of edges and the names of its nodes, open.
#[derive(Debug)]
pub(super) struct EdgeFiles<'a> {
    input: Input<'a>,
    names: Option<Input<'a>>,
    predicate: Option<&'a str>,
    columns: Option<Columns>,
}

impl EdgeArgs {
    /// Opens the files, if there are any.
    ///
    /// # Errors
    /// [`Failure`].
    pub(super) fn open(&self) -> Result<Option<EdgeFiles<'_>>, Failure> {
        let Some(path) = &self.edges else { return Ok(None) };
        let predicate = self.predicate.as_deref().map(str::trim);
        if let Some(given) = predicate
            && (given.is_empty() || given.len() > limits::NAME_BYTES)
        {
            let most = limits::NAME_BYTES;
            return Err(Failure::Usage(format!("--predicate has 1 to {most} bytes, and this one has {}", given.len())));
        }
        let names = self.names.as_deref().map(Input::open).transpose()?;
        Ok(Some(EdgeFiles { input: Input::open(path)?, names, predicate, columns: self.columns }))
    }
}

/// What became of the edges.
#[derive(Debug, Default, Serialize)]
pub struct EdgesTally {
    /// Edges that are new.
    pub added: u64,
    /// Records that say an edge of the file again: their weights are added to its own.
    pub merged: u64,
    /// Records of a file that was imported just so.
    pub unchanged: u64,
}

impl EdgesTally {
    pub(super) fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let (merged, unchanged) = (grouped(self.merged), grouped(self.unchanged));
        writeln!(out, "{}; {merged} merged; {unchanged} unchanged", counted(self.added, "edge", "edges"))
    }
}

/// What a file says: its nodes, and by label its edges between them.
#[derive(Debug, Default)]
struct Graph {
    nodes: Vec<StagedEnd>,
    edges: BTreeMap<String, Vec<StagedEdge>>,
    /// How its columns were read.
    columns: &'static str,
}

/// Imports a file of edges. They are held in memory until its end, 12 bytes each; some 20 while they are sorted.
///
/// # Errors
/// [`Failure`].
pub(super) fn import(run: &Run<'_>, files: EdgeFiles<'_>, rejections: &mut Rejections) -> Result<EdgesTally, Failure> {
    run.progress.say("edges");
    let EdgeFiles { input, names, predicate, columns } = files;
    let Input { path, file, bytes } = input;
    let hasher = Rc::default();
    let mut source = BufReader::with_capacity(READ_BYTES, Hashed { source: file, hasher: Rc::clone(&hasher) });
    let is_matrix = source.fill_buf().map_err(Failure::io("read", path))?.starts_with(b"\x93NUMPY");
    let names_hash = Rc::default();
    let mut reading = Reading { run, path, rejections, file: path.to_string_lossy().into(), bytes };
    let graph = if is_matrix {
        let label = label(predicate)?;
        if columns.is_some() {
            return Err(Failure::Usage("--columns is for lines between tabs, and this is a .npy file".into()));
        }
        let names = names.map(|input| read_names(input, &names_hash)).transpose()?;
        reading.matrix(source, label, names)?
    } else if names.is_some() {
        return Err(Failure::Usage("--names is for a .npy file, and this has lines between tabs".into()));
    } else {
        reading.lines(source, predicate, columns)?
    };
    let given: u64 = graph.edges.values().map(|edges| edges.len() as u64).sum();
    if given == 0 {
        return Ok(EdgesTally::default());
    }
    let hash = hasher.borrow().finalize();
    let mut told = blake3::Hasher::new();
    told.update(hash.as_bytes()).update(names_hash.borrow().finalize().as_bytes());
    told.update(graph.columns.as_bytes()).update(&[0]).update(predicate.unwrap_or_default().as_bytes());
    // The name is that of the bytes; read in another way they are another version of the document.
    let fingerprint = told.finalize().as_bytes().first_chunk().copied().unwrap_or_default();
    let document = StagedDocument { source: reading.file.to_string(), fingerprint, ..file_document(&hash) };
    let known = run.store.snapshot().find_document(&document.name)?.map(|known| known.fingerprint());
    if known == Some(fingerprint) {
        return Ok(EdgesTally { unchanged: given, ..EdgesTally::default() });
    }
    run.progress.say("sorting edges");
    put(run, document, graph, given)
}

fn label(predicate: Option<&str>) -> Result<&str, Failure> {
    let missing = || Failure::Usage("these edges have no label of their own: give them one by --predicate".into());
    predicate.ok_or_else(missing)
}

/// Commits the document that stands for the file, with all edges.
fn put(run: &Run<'_>, document: StagedDocument, graph: Graph, given: u64) -> Result<EdgesTally, Failure> {
    let name = document.name.clone();
    let edge_lists = StagedEdgeList::of_graph(graph.nodes, graph.edges).map_err(Failure::Usage)?;
    let added = edge_lists.iter().map(|list| list.len() as u64).sum();
    let mut batch = Batch::default();
    batch.put(StagedDocument { edge_lists, ..document });
    if run.progress.cancelled() {
        return Err(Failure::Interrupted);
    }
    let generation = run.store.commit(batch)?.generation;
    let committed = Committed { generation, edges: Some(added), total: added, last: &name, ..Committed::default() };
    committed.acknowledge(run.session, &run.progress)?;
    Ok(EdgesTally { added, merged: given.saturating_sub(added), unchanged: 0 })
}

/// Names of nodes by number; none where a line gives none.
type Names = Vec<Option<StagedEnd>>;

fn read_names(input: Input<'_>, hasher: &Rc<std::cell::RefCell<blake3::Hasher>>) -> Result<Names, Failure> {
    let source = Hashed { source: input.file, hasher: Rc::clone(hasher) };
    let mut names = Names::new();
    for line in Lines::new(BufReader::with_capacity(READ_BYTES, source)) {
        let (number, name) = match line {
            Ok(line) => (line.number, StagedEnd::new(&line.text, "").ok()),
            Err(LineError::Io { source, .. }) => return Err(Failure::io("read", input.path)(source)),
            Err(LineError::TooLong { line } | LineError::NotText { line, .. }) => (line, None),
        };
        // Lines that are passed over have numbers all the same.
        names.resize(usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1), None);
        names.push(name);
    }
    Ok(names)
}

/// A file that is read.
struct Reading<'r, 'a> {
    run: &'r Run<'a>,
    path: &'r Path,
    file: Arc<str>,
    rejections: &'r mut Rejections,
    bytes: u64,
}

impl Reading<'_, '_> {
    fn reject(&mut self, line: u64, reason: String) {
        let origin = Origin { file: self.file.clone(), line: Some(line) };
        self.rejections.add(self.run.session, &self.run.progress, origin.rejected(reason));
    }

    fn go_on(&self, done: u64, total: u64) -> Result<(), Failure> {
        self.run.progress.advance(done, total);
        if self.run.progress.cancelled() { Err(Failure::Interrupted) } else { Ok(()) }
    }

    /// Reads pairs of node numbers. A node is called as the names say, or by its number.
    fn matrix(&mut self, source: BufReader<Hashed<File>>, label: &str, names: Option<Names>) -> Result<Graph, Failure> {
        let mut pairs = Pairs::read(self.path, source, self.bytes)?;
        let rows = pairs.row_count();
        let mut edges = Vec::with_capacity(usize::try_from(rows).unwrap_or(0).min(usize::MAX / 16));
        for (row, pair) in (1_u64..).zip(pairs.by_ref()) {
            if row.is_multiple_of(1 << 16) {
                self.go_on(row, rows)?;
            }
            match pair?.map(|number| node(number, names.as_ref())) {
                [Ok(subject), Ok(object)] => edges.push(StagedEdge { subject, object, weight: 1.0 }),
                [Err(reason), _] | [_, Err(reason)] => self.reject(row, reason),
            }
        }
        // What follows the last row has no meaning and belongs to the file all the same.
        io::copy(&mut pairs.into_source(), &mut io::sink()).map_err(Failure::io("read", self.path))?;
        let nodes = match names {
            // Nodes without a name have no edges.
            Some(names) => named(names, &mut edges),
            None => numbered(&mut edges)?,
        };
        Ok(Graph { nodes, edges: BTreeMap::from([(label.to_owned(), edges)]), columns: "" })
    }

    /// Reads lines of names.
    fn lines(
        &mut self,
        source: impl Read,
        predicate: Option<&str>,
        mut columns: Option<Columns>,
    ) -> Result<Graph, Failure> {
        let (mut graph, mut known) = (Graph::default(), HashMap::<String, u32>::new());
        let mut bytes_read = 0;
        for line in Lines::new(BufReader::with_capacity(READ_BYTES, source)) {
            let line = match line {
                Ok(line) => line,
                Err(LineError::Io { source, .. }) => return Err(Failure::io("read", self.path)(source)),
                Err(error @ (LineError::TooLong { line } | LineError::NotText { line, .. })) => {
                    self.reject(line, error.to_string());
                    continue;
                }
            };
            bytes_read += line.text.len() as u64 + 1;
            self.go_on(bytes_read, self.bytes)?;
            if is_comment(&line.text) {
                continue;
            }
            columns = columns.or_else(|| Columns::of(&line.text, predicate.is_some()));
            let Some(columns) = columns else {
                self.reject(line.number, "expected 2 to 4 columns between tabs".to_owned());
                continue;
            };
            if columns.has_predicate() && predicate.is_some() {
                let reason = "lines have a label of their own, and --predicate gives another";
                return Err(Failure::Usage(reason.into()));
            }
            let label = if columns.has_predicate() { "" } else { label(predicate)? };
            graph.columns = columns.name();
            if let Err(reason) = graph.add(&line.text, columns, label, &mut known) {
                self.reject(line.number, reason);
            }
        }
        Ok(graph)
    }
}

impl Graph {
    fn add(
        &mut self,
        line: &str,
        columns: Columns,
        label: &str,
        known: &mut HashMap<String, u32>,
    ) -> Result<(), String> {
        let record = edge_from_line(line, columns)?;
        let label = record.predicate.unwrap_or(label);
        if label.len() > limits::NAME_BYTES {
            return Err(format!("predicate: has {} bytes, and may have {}", label.len(), limits::NAME_BYTES));
        }
        let mut node = |name: &str| -> Result<u32, String> {
            if let Some(number) = known.get(name) {
                return Ok(*number);
            }
            let end = StagedEnd::new(name, "")?;
            let number =
                u32::try_from(self.nodes.len()).map_err(|_| format!("there are more than {} nodes", u32::MAX))?;
            known.insert(name.to_owned(), number);
            self.nodes.push(end);
            Ok(number)
        };
        let edge = StagedEdge { subject: node(record.subject)?, object: node(record.object)?, weight: record.weight };
        match self.edges.get_mut(label) {
            Some(edges) => edges.push(edge),
            None => drop(self.edges.insert(label.to_owned(), vec![edge])),
        }
        Ok(())
    }
}

/// The graph of a file of pairs of node numbers, whose nodes are called by these.
///
/// # Errors
/// [`Failure`], also where a pair is none of a graph.
pub fn numbered_graph(path: &Path) -> Result<(Vec<StagedEnd>, Vec<StagedEdge>), Failure> {
    let Input { file, bytes, .. } = Input::open(path)?;
    let pairs = Pairs::read(path, BufReader::with_capacity(READ_BYTES, file), bytes)?;
    let mut edges = Vec::with_capacity(usize::try_from(pairs.row_count()).unwrap_or(0).min(usize::MAX / 16));
    for (row, pair) in (1_u64..).zip(pairs) {
        match pair?.map(|number| node(number, None)) {
            [Ok(subject), Ok(object)] => edges.push(StagedEdge { subject, object, weight: 1.0 }),
            [Err(reason), _] | [_, Err(reason)] => {
                return Err(Failure::Usage(format!("{}: row {row}: {reason}", path.display())));
            }
        }
    }
    let nodes = numbered(&mut edges)?;
    Ok((nodes, edges))
}

/// The number of a node that can be named.
fn node(number: i128, names: Option<&Names>) -> Result<u32, String> {
    let Some(node) = u32::try_from(number).ok().filter(|node| *node < u32::MAX) else {
        return Err(format!("expected the number of a node, 0 to {}, found {number}", u32::MAX - 1));
    };
    let Some(names) = names else { return Ok(node) };
    match usize::try_from(node).ok().and_then(|node| names.get(node)) {
        Some(Some(_)) => Ok(node),
        Some(None) => Err(format!("line {} of the names gives node {node} no name", number + 1)),
        None => Err(format!("there is no name of node {node}: the names have {} lines", names.len())),
    }
}

/// The nodes that have names, and edges between them.
fn named(names: Names, edges: &mut [StagedEdge]) -> Vec<StagedEnd> {
    let mut places = Vec::with_capacity(names.len());
    let mut nodes = Vec::with_capacity(names.len());
    for name in names {
        places.push(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
        nodes.extend(name);
    }
    let place = |node: u32| usize::try_from(node).ok().and_then(|node| places.get(node)).copied().unwrap_or(u32::MAX);
    edges.par_iter_mut().for_each(|edge| {
        (edge.subject, edge.object) = (place(edge.subject), place(edge.object));
    });
    nodes
}

/// The nodes of edges, called by their numbers, and edges between them.
fn numbered(edges: &mut [StagedEdge]) -> Result<Vec<StagedEnd>, Failure> {
    let mut numbers: Vec<u32> = edges.iter().flat_map(|edge| [edge.subject, edge.object]).collect();
    numbers.par_sort_unstable();
    numbers.dedup();
    let place = |node: u32| numbers.binary_search(&node).ok().and_then(|place| u32::try_from(place).ok());
    edges.par_iter_mut().for_each(|edge| {
        let placed = [edge.subject, edge.object].map(|node| place(node).unwrap_or(u32::MAX));
        [edge.subject, edge.object] = placed;
    });
    let ends: Result<Vec<StagedEnd>, String> =
        numbers.par_iter().map(|number| StagedEnd::new(&number.to_string(), "")).collect();
    ends.map_err(Failure::Usage)
}
