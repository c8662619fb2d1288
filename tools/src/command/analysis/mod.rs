//! The commands that ask about the graph of relations as a whole, and what they share.

pub mod components;
pub mod graph;
pub mod hubs;
pub mod neighbours;
pub mod pagerank;
pub mod path;
pub mod select;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use hedgerow::{Bounded, Direction, Following, Key, Node};

use crate::command::find;
use crate::failure::Failure;

/// Which relations are followed.
#[derive(Clone, Debug, clap::Args)]
pub struct FollowingOptions {
    /// Label of relations that are followed; may be given several times [default: all]
    #[arg(long, value_name = "LABEL")]
    predicate: Vec<String>,
    /// Which way relations are followed
    #[arg(long, default_value = "both", value_parser = directions())]
    direction: Direction,
}

impl FollowingOptions {
    fn following(&self) -> Following {
        Following { predicates: self.predicate.clone(), direction: self.direction }
    }
}

/// The values of an option for a direction.
pub fn directions() -> impl TypedValueParser<Value = Direction> {
    PossibleValuesParser::new(["out", "in", "both"]).map(|name| match name.as_str() {
        "out" => Direction::Out,
        "in" => Direction::In,
        _ => Direction::Both,
    })
}

/// The entity that a name stands for, with or without its kind before it.
fn entity(store: &Bounded<'_>, key: &str) -> Result<Key, Failure> {
    let name = key.strip_prefix("entity:").unwrap_or(key);
    match find(store, &format!("entity:{name}"))? {
        Node::Entity(entity) => Ok(entity),
        _ => Err(Failure::NotFound(format!("{key} is no entity of this store"))),
    }
}

fn number(given: u32) -> usize {
    usize::try_from(given).unwrap_or(usize::MAX)
}

/// A share of a walk in enough digits to tell it from others.
fn share(score: f64) -> String {
    format!("{score:.3e}")
}
