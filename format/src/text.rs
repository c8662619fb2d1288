//! Text in blocks, each 16 KiB before compression, so that a passage costs one or two of them.

use crate::record::record;
use crate::{FormatError, Rows, limits};
use std::ops::Range;

/// Bytes of text in a block before compression; the last block may have fewer.
pub const TEXT_BLOCK_BYTES: usize = 16 * 1024;
const LEVEL: i32 = 3;

record! {
    /// Where one block of text lies.
    TextBlock: 16 bytes {
        0 offset: u64 = "First byte inside the section `text`.";
        8 length: u32 = "Bytes of the block as it lies in the file: one zstd frame, shorter than `length_raw`, or the text itself.";
        12 length_raw: u32 = "Bytes of the block before compression: 16,384, in the last block 1 to 16,384.";
    }
}

/// How blocks of text are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// As zstd frames, where that makes them shorter.
    #[default]
    Zstd,
    /// As they are: the same bytes whatever the version of a compressor.
    Stored,
}

/// One block as it lies in a file.
///
/// # Errors
/// When zstd gives up, which it has no reason to.
pub fn pack_block(raw: &[u8], codec: Codec) -> Result<Vec<u8>, FormatError> {
    let packed = match codec {
        Codec::Zstd => zstd::bulk::compress(raw, LEVEL).map_err(|error| FormatError::Shape {
            section: "text",
            expected: "a block that zstd compresses".into(),
            found: error.to_string(),
        })?,
        Codec::Stored => raw.to_vec(),
    };
    Ok(if packed.len() < raw.len() { packed } else { raw.to_vec() })
}

/// Reads the text of one segment.
#[derive(Clone, Copy, Debug)]
pub struct TextView<'a> {
    /// One row a block.
    pub blocks: Rows<'a, TextBlock>,
    /// The blocks, one after another.
    pub bytes: &'a [u8],
}

impl TextView<'_> {
    /// The bytes `range` of the segment's text. Decompresses the blocks that the range touches and no others.
    ///
    /// # Errors
    /// [`FormatError::Length`] and [`FormatError::Shape`] where a block is missing or does not decompress;
    /// [`FormatError::Limit`] for more than a document may have.
    pub fn read(&self, range: Range<u64>) -> Result<String, FormatError> {
        let length = range.end.saturating_sub(range.start);
        if length > limits::DOCUMENT_BYTES as u64 {
            return Err(FormatError::Limit { what: "the length of a document", limit: limits::DOCUMENT_BYTES as u64 });
        }
        let mut text = Vec::new();
        let block_bytes = TEXT_BLOCK_BYTES as u64;
        let mut position = range.start;
        while position < range.end {
            let number = position.checked_div(block_bytes).unwrap_or(0);
            let block = self.block(usize::try_from(number).unwrap_or(usize::MAX))?;
            let start = position.checked_rem(block_bytes).unwrap_or(0);
            let wanted = range.end.saturating_sub(position).saturating_add(start).min(block.len() as u64);
            let part = usize::try_from(start).ok().zip(usize::try_from(wanted).ok());
            let part = part.and_then(|(start, end)| block.get(start..end)).filter(|part| !part.is_empty());
            let part = part.ok_or(FormatError::Length { what: "the text", expected: range.end, found: position })?;
            text.extend_from_slice(part);
            position = position.saturating_add(part.len() as u64);
        }
        String::from_utf8(text).map_err(|error| FormatError::Shape {
            section: "text",
            expected: "UTF-8".into(),
            found: error.utf8_error().to_string(),
        })
    }

    /// One block, decompressed.
    fn block(&self, number: usize) -> Result<Vec<u8>, FormatError> {
        let missing = FormatError::Length {
            what: "the list of text blocks",
            expected: (number as u64).saturating_add(1),
            found: self.blocks.len() as u64,
        };
        let row = self.blocks.get(number).ok_or(missing)?;
        let malformed = |found: String| FormatError::Shape {
            section: "text",
            expected: format!("block {number} of {} bytes", row.length_raw),
            found,
        };
        let raw = crate::record::to_usize(row.length_raw);
        if raw > TEXT_BLOCK_BYTES {
            return Err(malformed("a longer block than there may be".into()));
        }
        let start = usize::try_from(row.offset).ok();
        let end = start.and_then(|start| start.checked_add(crate::record::to_usize(row.length)));
        let packed = start.zip(end).and_then(|(start, end)| self.bytes.get(start..end));
        let packed = packed.ok_or_else(|| malformed("a place outside the section".into()))?;
        if packed.len() == raw {
            return Ok(packed.to_vec());
        }
        if packed.len() > raw {
            return Err(malformed(format!("a frame of {} bytes", packed.len())));
        }
        let block = zstd::bulk::decompress(packed, raw).map_err(|error| malformed(error.to_string()))?;
        if block.len() != raw {
            return Err(malformed(format!("{} bytes", block.len())));
        }
        Ok(block)
    }
}
