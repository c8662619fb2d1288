//! `model.safetensors`: a length, a JSON header that says where each matrix lies, and the matrices.

use std::collections::HashMap;
use std::ops::Range;

use ndarray::{Array1, Array2};
use serde::Deserialize;

use crate::read::npy::f32_from_half;

/// Matrices by name.
#[derive(Debug)]
pub(super) struct Weights<'b> {
    matrices: HashMap<String, Entry>,
    data: &'b [u8],
}

#[derive(Debug, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

const HEADER_MAX: usize = 16 << 20;

impl<'b> Weights<'b> {
    /// Reads the header. O(header).
    pub fn parse(bytes: &'b [u8]) -> Result<Self, String> {
        let fault = |what: &str| format!("model.safetensors: {what}");
        let (length, rest) = bytes.split_first_chunk().ok_or_else(|| fault("it has fewer than 8 bytes"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok().filter(|length| *length <= HEADER_MAX);
        let parts = length.and_then(|length| rest.split_at_checked(length));
        let (header, data) = parts.ok_or_else(|| fault("the length of its header cannot be"))?;
        let mut entries: HashMap<String, serde_json::Value> =
            serde_json::from_slice(header).map_err(|error| fault(&format!("its header is no JSON: {error}")))?;
        entries.remove("__metadata__");
        let entries = entries.into_iter().map(|(name, entry)| Ok((name, serde_json::from_value(entry)?)));
        let matrices: Result<_, serde_json::Error> = entries.collect();
        let matrices = matrices.map_err(|error| fault(&format!("its header is none: {error}")))?;
        Ok(Weights { matrices, data })
    }

    /// A matrix of this shape.
    pub fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Array2<f32>, String> {
        let numbers = self.numbers(name, &[rows, columns])?;
        Array2::from_shape_vec((rows, columns), numbers).map_err(|error| format!("{name}: {error}"))
    }

    /// A vector of this length.
    pub fn vector(&self, name: &str, length: usize) -> Result<Array1<f32>, String> {
        Ok(Array1::from_vec(self.numbers(name, &[length])?))
    }

    fn numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let fault = |what: String| format!("model.safetensors: {name}: {what}");
        let found = self.matrices.get(name).or_else(|| self.matrices.get(&format!("bert.{name}")));
        let entry = found.ok_or_else(|| fault("it is not there".to_owned()))?;
        if !entry.shape.iter().copied().eq(shape.iter().map(|side| *side as u64)) {
            return Err(fault(format!("expected the shape {shape:?}, found {:?}", entry.shape)));
        }
        let bytes = range(entry.data_offsets).and_then(|range| self.data.get(range));
        let bytes = bytes.ok_or_else(|| fault("it lies outside of the file".to_owned()))?;
        let numbers: Vec<f32> = match entry.dtype.as_str() {
            "F32" => bytes.as_chunks().0.iter().map(|number| f32::from_le_bytes(*number)).collect(),
            "F16" => bytes.as_chunks().0.iter().map(|number| f32_from_half(u16::from_le_bytes(*number))).collect(),
            other => return Err(fault(format!("expected F32 or F16, found {other}"))),
        };
        if numbers.len() != shape.iter().product::<usize>() {
            return Err(fault(format!("its bytes are not those of the shape {shape:?}")));
        }
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err(fault("it has a number that is not finite".to_owned()));
        }
        Ok(numbers)
    }
}

fn range((start, end): (u64, u64)) -> Option<Range<usize>> {
    Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}
