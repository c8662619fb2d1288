//! What each fuzz target checks: plain functions over bytes, so that the tests replay the corpus with them.

mod catalog;
mod database;
pub mod documents;
mod edits;
mod filter;
mod head;
mod header;
pub mod image;
mod importers;
mod input;
mod manifest;
mod names;
mod operations;
mod pack;
pub mod pdf;
mod questions;
pub mod sections;
mod segment_reader;
mod tiles;

/// A target of the fuzzer.
pub struct Check {
    /// Its name, and that of its corpus.
    pub name: &'static str,
    /// What must hold for any bytes.
    pub run: fn(&[u8]),
    /// Inputs that it starts from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const ALL: &[Check] = &[
    Check { name: "sections", run: sections::check, seeds: sections::seeds },
    Check { name: "header", run: header::check, seeds: header::seeds },
    Check { name: "manifest", run: manifest::check, seeds: manifest::seeds },
    Check { name: "head", run: head::check, seeds: head::seeds },
    Check { name: "filter", run: filter::check, seeds: filter::seeds },
    Check { name: "names", run: names::check, seeds: names::seeds },
    Check { name: "importers", run: importers::check, seeds: importers::seeds },
    Check { name: "documents", run: documents::check, seeds: documents::seeds },
    Check { name: "pdf", run: pdf::check, seeds: pdf::seeds },
    Check { name: "database_and_query", run: database::check, seeds: database::seeds },
    Check { name: "catalog", run: catalog::check, seeds: catalog::seeds },
    Check { name: "pack", run: pack::check, seeds: pack::seeds },
    Check { name: "operations", run: operations::check, seeds: operations::seeds },
    Check { name: "tiles", run: tiles::check, seeds: tiles::seeds },
];

/// Runs the check of a target.
///
/// # Panics
/// Where the check does not hold, and where there is no such target.
pub fn run(name: &str, bytes: &[u8]) {
    let check = ALL.iter().find(|check| check.name == name).expect("the target is in the table");
    (check.run)(bytes);
}
