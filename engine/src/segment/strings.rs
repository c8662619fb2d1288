//! Builds the `strings` section: every different string once, in the order of first use.

use hedgerow_format::{FormatError, TextRef, limits};
use std::collections::HashMap;

/// A growing `strings` section.
#[derive(Debug, Default)]
pub struct Strings {
    bytes: Vec<u8>,
    places: HashMap<String, TextRef>,
}

impl Strings {
    /// The place of `text`, appended unless it is there.
    ///
    /// # Errors
    /// [`FormatError::Limit`] when the section is full.
    pub fn place(&mut self, text: &str) -> Result<TextRef, FormatError> {
        if text.is_empty() {
            return Ok(TextRef::default());
        }
        if let Some(place) = self.places.get(text) {
            return Ok(*place);
        }
        let place = self.append(text)?;
        self.places.insert(text.to_owned(), place);
        Ok(place)
    }

    /// The place of `text`, appended without a look at what is there: for what is known to come once.
    ///
    /// # Errors
    /// [`FormatError::Limit`] when the section is full.
    pub fn append(&mut self, text: &str) -> Result<TextRef, FormatError> {
        if text.is_empty() {
            return Ok(TextRef::default());
        }
        let limit =
            || FormatError::Limit { what: "the length of names and metadata", limit: limits::STRINGS_BYTES as u64 };
        let offset = u32::try_from(self.bytes.len()).map_err(|_| limit())?;
        let length = u32::try_from(text.len()).map_err(|_| limit())?;
        offset.checked_add(length).ok_or_else(limit)?;
        self.bytes.extend_from_slice(text.as_bytes());
        Ok(TextRef { offset, length })
    }

    /// The section's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The section's bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
