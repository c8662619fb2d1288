//! Signals of edges, as they are written on the command line and told.

use std::io::{self, Write};

use hedgerow::{Signal, SignalKind};
use serde::Serialize;

use crate::command::edges::percentile;
use crate::command::render::field;
use crate::command::render::layout::decimal;

/// A signal as `--json` prints it.
#[derive(Debug, Serialize)]
pub struct SignalTold {
    /// What it compares, as `--signal` names it.
    pub what: String,
    /// Its weight; none where all have to agree.
    pub weight: Option<f64>,
    /// The share of pairs below its threshold, in per cent.
    pub percentile: f64,
    /// Its threshold; none where it takes no part in pairs of the kind.
    pub threshold: Option<f32>,
}

impl SignalTold {
    /// What is told of a signal with a threshold.
    pub fn of(signal: &Signal, threshold: Option<f32>, weighted: bool) -> Self {
        Self {
            what: name(&signal.what),
            weight: weighted.then(|| f64::from(signal.weight) / 1000.0),
            percentile: f64::from(signal.percentile) / 1000.0,
            threshold,
        }
    }

    /// Prints it with its threshold and, where a pair is explained, what it says of that.
    pub fn human(&self, out: &mut dyn Write, verdict: Option<&str>) -> io::Result<()> {
        let Self { what, weight, percentile, threshold } = self;
        let weight = weight.map_or_else(String::new, |weight| format!(", weight {weight}"));
        let Some(threshold) = threshold else {
            return field(out, "signal", &format!("{what}{weight}: takes no part in pairs of this kind"));
        };
        let threshold =
            format!("threshold {}: {percentile} per cent of the pairs lie below it", decimal(*threshold, 4));
        let verdict = verdict.map_or_else(String::new, |verdict| format!("{verdict}, "));
        field(out, "signal", &format!("{what}{weight}: {verdict}{threshold}"))
    }
}

/// What a signal compares, as it is written.
fn name(what: &SignalKind) -> String {
    match what {
        SignalKind::Content => "content".to_owned(),
        SignalKind::Vectors(space) => format!("vectors:{space}"),
        SignalKind::Entities => "entities".to_owned(),
        SignalKind::RareEntities => "rare-entities".to_owned(),
        SignalKind::Columns => "columns".to_owned(),
        SignalKind::Words => "words".to_owned(),
        SignalKind::Titles => "titles".to_owned(),
    }
}

/// Reads a signal: `WHAT`, its weight after `=`, its percentile after `@`; 1 and 95 where they are not given.
///
/// # Errors
/// What was expected.
pub fn signal(text: &str) -> Result<Signal, String> {
    let (text, share) = text.split_once('@').unwrap_or((text, "95"));
    let (what, weight) = text.split_once('=').unwrap_or((text, "1"));
    let what = match (what, what.strip_prefix("vectors:")) {
        (_, Some(space)) if !space.is_empty() => SignalKind::Vectors(space.to_owned()),
        ("content", _) => SignalKind::Content,
        ("entities", _) => SignalKind::Entities,
        ("rare-entities", _) => SignalKind::RareEntities,
        ("columns", _) => SignalKind::Columns,
        ("words", _) => SignalKind::Words,
        ("titles", _) => SignalKind::Titles,
        _ => {
            return Err("expected content, vectors:SPACE, entities, rare-entities, columns, words or titles".to_owned());
        }
    };
    Ok(Signal { what, percentile: percentile(share)?, weight: thousandths(weight)? })
}

/// Reads a weight exactly, in thousandths.
fn thousandths(text: &str) -> Result<u32, String> {
    let fault = || "expected a weight from 0 to 1000 with at most three decimals, such as 0.5".to_owned();
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || whole.len() > 4 || decimals.len() > 3 || !is_number(whole) || !is_number(decimals) {
        return Err(fault());
    }
    let thousandths: u32 = format!("{whole}{decimals:0<3}").parse().map_err(|_| fault())?;
    if thousandths > 1_000_000 { Err(fault()) } else { Ok(thousandths) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_named_as_it_is_read() {
        for text in ["content", "vectors:titles", "entities", "rare-entities", "columns", "words", "titles"] {
            assert_eq!(signal(text).map(|signal| name(&signal.what)), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_signal_is_read_with_weight_and_percentile() {
        let read = |text| signal(text).map(|signal| (signal.what, signal.weight, signal.percentile));
        assert_eq!(read("words"), Ok((SignalKind::Words, 1000, 95_000)));
        assert_eq!(read("vectors:titles=0.25@99.5"), Ok((SignalKind::Vectors("titles".into()), 250, 99_500)));
        assert_eq!(read("rare-entities@0"), Ok((SignalKind::RareEntities, 1000, 0)));
        for text in
            ["", "other", "vectors", "vectors:", "words=", "words=1001", "words=-1", "words=0.1234", "words@101"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
