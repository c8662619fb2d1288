//! Several strategies in one option, each with the name that it was given by.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use hedgerow::Strategy;

use crate::command::ask::strategies;
use crate::failure::Failure;

/// A strategy and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// As it is typed.
    pub name: String,
    /// What it stands for.
    pub strategy: Strategy,
}

/// Reads the name of a strategy and keeps it.
pub fn named() -> impl TypedValueParser<Value = Named> {
    Keeping(strategies())
}

/// Refuses a strategy that is given twice: its answers would differ in nothing.
///
/// # Errors
/// [`Failure::Usage`], with the name.
pub fn distinct(strategies: &[Named]) -> Result<(), Failure> {
    let again =
        strategies.iter().enumerate().find(|(place, named)| strategies.iter().take(*place).any(|n| n == *named));
    match again {
        Some((_, Named { name, .. })) => {
            Err(Failure::Usage(format!("the strategy {name} is given twice; name each of them once")))
        }
        None => Ok(()),
    }
}

#[derive(Clone)]
struct Keeping<P>(P);

impl<P: TypedValueParser<Value = Strategy>> TypedValueParser for Keeping<P> {
    type Value = Named;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<Named, Error> {
        let strategy = self.0.parse_ref(command, argument, value)?;
        Ok(Named { name: value.to_string_lossy().into_owned(), strategy })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

#[cfg(test)]
mod tests {
    use hedgerow::Strategy;

    use crate::command::strategies::{Named, distinct};

    #[test]
    fn a_strategy_stands_once() {
        let [flat, graph] = [("flat", Strategy::Flat), ("graph", Strategy::Graph)]
            .map(|(name, strategy)| Named { name: name.to_owned(), strategy });
        assert!(distinct(&[flat.clone(), graph.clone()]).is_ok());
        let error = distinct(&[flat.clone(), graph, flat]).unwrap_err().to_string();
        assert!(error.contains("flat is given twice"), "{error}");
    }
}
