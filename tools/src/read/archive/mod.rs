//! Documents that are ZIP archives of XML: opened within limits, never unpacked to the disk.

pub mod docx;
pub mod epub;
pub mod odt;
pub mod pptx;
mod xml;

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::read::document::Refusal;

/// Files in an archive at most.
const ENTRIES_MAX: usize = 10_000;

/// Bytes that all files which are read from an archive may unpack to.
const UNPACKED_MAX: u64 = 1 << 30;

/// How many times its own size an archive may unpack to …
const RATIO_MAX: u64 = 100;

/// … above this many bytes, which a small document of few words reaches by repeating its tags.
const RATIO_FROM: u64 = 8 << 20;

/// An open archive.
#[derive(Debug)]
pub struct Archive<'b> {
    zip: ZipArchive<Cursor<&'b [u8]>>,
    format: &'static str,
    size: u64,
    unpacked: u64,
}

impl<'b> Archive<'b> {
    /// Opens an archive that is said to be of this format.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn open(bytes: &'b [u8], format: &'static str) -> Result<Archive<'b>, Refusal> {
        if bytes.starts_with(b"\xd0\xcf\x11\xe0") {
            // Office puts an encrypted document into a container of another kind.
            return Err(Refusal::Encryption { format });
        }
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(format, &error.to_string()))?;
        if zip.len() > ENTRIES_MAX {
            let what = format!("it holds {} files, and {ENTRIES_MAX} are the most that are read", zip.len());
            return Err(Refusal::Bomb { what });
        }
        Ok(Archive { zip, format, size: bytes.len() as u64, unpacked: 0 })
    }

    /// The text of a file in it; `None` when there is no such file. Bytes are counted as they unpack, whatever the
    /// archive declares.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn text(&mut self, name: &str) -> Result<Option<String>, Refusal> {
        let format = self.format;
        let left = self.bytes_left();
        let mut file = match self.zip.by_name(name) {
            Ok(file) => file,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(ZipError::UnsupportedArchive(what)) if what == ZipError::PASSWORD_REQUIRED => {
                return Err(Refusal::Encryption { format });
            }
            Err(error) => return Err(broken(format, &format!("{name}: {error}"))),
        };
        let mut bytes = Vec::new();
        let read = file.by_ref().take(left + 1).read_to_end(&mut bytes);
        read.map_err(|error| broken(format, &format!("{name}: {error}")))?;
        if bytes.len() as u64 > left {
            let what = format!(
                "it unpacks to more than {} bytes, {RATIO_MAX} times its size; save it again with a trusted program",
                self.unpacked + left
            );
            return Err(Refusal::Bomb { what });
        }
        self.unpacked += bytes.len() as u64;
        Ok(Some(encoding_rs::UTF_8.decode(&bytes).0.into_owned()))
    }

    /// The text of a file that the format cannot do without.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn need(&mut self, name: &str) -> Result<String, Refusal> {
        let text = self.text(name)?;
        text.ok_or_else(|| broken(self.format, &format!("it is an archive without {name}")))
    }

    fn bytes_left(&self) -> u64 {
        UNPACKED_MAX.min((self.size * RATIO_MAX).max(RATIO_FROM)).saturating_sub(self.unpacked)
    }
}

/// A refusal for what breaks the rules of a format.
#[must_use]
pub fn broken(format: &'static str, what: &str) -> Refusal {
    Refusal::Broken { format, what: what.to_owned() }
}

/// The path in an archive that a reference in the file at `base` leads to; `None` when it leads out of the archive.
#[must_use]
pub fn resolved(base: &str, reference: &str) -> Option<String> {
    let reference = reference.split(['#', '?']).next().unwrap_or_default();
    let mut path: Vec<&str> = if reference.starts_with('/') { Vec::new() } else { base.split('/').collect() };
    path.pop();
    for step in reference.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                path.pop()?;
            }
            step => path.push(step),
        }
    }
    Some(percent_decoded(&path.join("/")))
}

fn percent_decoded(path: &str) -> String {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [byte, after @ ..] = rest {
        let value = after.get(..2).and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        if let Some(value) = value.filter(|_| *byte == b'%') {
            decoded.push(value);
            rest = after.get(2..).unwrap_or_default();
        } else {
            decoded.push(*byte);
            rest = after;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}
