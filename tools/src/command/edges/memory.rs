//! How much memory a build may take, and what it took.

use std::path::Path;

use hedgerow::{EdgeMemory, Env, Store};
use serde::Serialize;

use crate::command::render::layout::grouped;
use crate::failure::Failure;

/// Reads bytes of memory.
///
/// # Errors
/// What was expected.
pub fn memory(text: &str) -> Result<u64, String> {
    let units = [("K", 10), ("M", 20), ("G", 30)];
    let unit = units.into_iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)));
    let (digits, shift) = unit.unwrap_or((text, 20));
    let number = Some(digits).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
    let number = number.and_then(|digits| digits.parse::<u64>().ok()).filter(|number| *number > 0);
    let bytes = number.and_then(|number| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| "expected a whole number with K, M or G behind it, or of MiB, such as 512M or 2G".to_owned())
}

/// Opens a store for writing, the edges of which may take so much memory.
///
/// # Errors
/// [`Failure`].
pub fn open(folder: &Path, memory: Option<u64>) -> Result<Store, Failure> {
    let mut env = Env::folder(folder)?;
    env.edge_memory = memory;
    Ok(Store::open_in(env)?)
}

/// What `--json` tells of memory.
#[derive(Debug, Serialize)]
pub struct Told {
    planned_mb: f64,
    spilled_mb: f64,
    codes_again: bool,
}

impl Told {
    /// What is told.
    #[expect(clippy::cast_precision_loss, reason = "figures to read")]
    pub fn of(memory: &EdgeMemory) -> Self {
        let mb = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        Self { planned_mb: mb(memory.planned), spilled_mb: mb(memory.spilled), codes_again: memory.codes_again }
    }

    /// The same as a sentence.
    pub fn sentence(&self) -> String {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "megabytes of this machine")]
        let mib = |mb: f64| grouped(mb.ceil() as u64);
        let codes = if self.codes_again { "; codes of vectors were made again and again" } else { "" };
        let spilled = if self.spilled_mb > 0.0 {
            format!("; {} MiB of partners in a file", mib(self.spilled_mb))
        } else {
            String::new()
        };
        format!("{} MiB planned, beside maps of vectors{codes}{spilled}", mib(self.planned_mb))
    }
}

#[cfg(test)]
mod tests {
    use crate::command::edges::memory::memory;

    #[test]
    fn memory_is_given_in_units() {
        for (text, bytes) in [("512M", 512 << 20), ("2G", 2 << 30), ("64", 64 << 20), ("70000K", 70_000 << 10)] {
            assert_eq!(memory(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "0", "-1M", "+1M", "1.5G", "1T", "99999999999G", "512 M", "512MB"] {
            assert!(memory(text).is_err(), "{text}");
        }
    }
}
