//! Signals of `hedgerow edges`, as they are written on the command line.

use hedgerow::{Signal, SignalKind};

use crate::command::edges::percentile;

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
        _ => return Err("expected content, vectors:SPACE, entities, rare-entities, columns or words".to_owned()),
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
