//! What the writer has done, in a file beside the store that outlives it.

use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};

/// Counts by name; `stamp` is the last one that a commit acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Progress(Map<String, Value>);

impl Progress {
    /// What was written down last; nothing where nothing was.
    pub fn read(store: &Path) -> Result<Self, String> {
        match fs::read(place(store)) {
            Ok(bytes) => Ok(Self(serde_json::from_slice(&bytes).map_err(|error| error.to_string())?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Writes it down as a whole: whoever reads it meanwhile sees this or the one before.
    pub fn write(&self, store: &Path) -> Result<(), String> {
        let new = place(store).with_extension("new");
        let bytes = serde_json::to_vec(&self.0).map_err(|error| error.to_string())?;
        fs::write(&new, bytes).and_then(|()| fs::rename(&new, place(store))).map_err(|error| error.to_string())
    }

    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Value::as_u64).unwrap_or_default()
    }

    pub fn set(&mut self, name: &str, count: u64) {
        self.0.insert(name.to_owned(), count.into());
    }

    pub fn add(&mut self, name: &str, count: u64) {
        self.set(name, self.get(name) + count);
    }
}

fn place(store: &Path) -> PathBuf {
    store.with_extension("progress")
}
