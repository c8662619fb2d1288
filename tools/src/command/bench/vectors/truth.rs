//! What the nearest vectors are, by comparing all; and which rows a filter lets pass.

use std::fs;
use std::path::{Path, PathBuf};

use hedgerow::{Filter, dot, normalise};
use rayon::prelude::*;

use crate::command::bench::vectors::measure::COUNT;
use crate::command::bench::vectors::{Args, rows_of};
use crate::failure::Failure;
use crate::read::npy::Matrix;

/// Whether a row is among this share of all: spread evenly, and the same on every machine.
fn passes(row: usize, percent: u8) -> bool {
    // The factor and 100 have no common divisor, so that every hundred rows have each remainder once.
    row * 61 % 100 < usize::from(percent)
}

/// The metadata by which a row is among those of some shares; empty where there are none.
pub(super) fn metadata(row: usize, percents: &[u8]) -> String {
    let own = percents.iter().filter(|percent| passes(row, **percent));
    let fields: Vec<String> = own.map(|percent| format!("\"percent{percent}\":true")).collect();
    if fields.is_empty() { String::new() } else { format!("{{{}}}", fields.join(",")) }
}

/// The filter that lets a share of the rows pass.
pub(super) fn filter(percent: u8) -> Result<Filter, Failure> {
    Filter::parse(&format!("metadata.percent{percent} = true")).map_err(Failure::Filter)
}

/// Vectors of a file, each of length one.
pub(super) fn unit_rows(path: &Path, most: usize) -> Result<Vec<Vec<f32>>, Failure> {
    let unit = |(number, row): (usize, Result<Vec<f32>, _>)| {
        let mut row = row?;
        normalise(&mut row).map_err(|fault| Failure::Usage(format!("{}: row {number}: {fault}", path.display())))?;
        Ok(row)
    };
    Matrix::open(path)?.rows().take(most).enumerate().map(unit).collect()
}

/// A file with the rows nearest to each query, among a share of them or all.
pub(super) fn made(args: &Args, percent: Option<u8>, folder: &Path) -> Result<PathBuf, Failure> {
    let base = unit_rows(&args.base, rows_of(args, &Matrix::open(&args.base)?))?;
    let queries = unit_rows(&args.queries, usize::MAX)?;
    let rows: Vec<u32> = (0..)
        .zip(&base)
        .filter(|(row, _)| percent.is_none_or(|percent| passes(*row as usize, percent)))
        .map(|(row, _)| row)
        .collect();
    if rows.is_empty() {
        let share = percent.map(|percent| format!("{percent} % of ")).unwrap_or_default();
        return Err(Failure::Usage(format!("{}: expected vectors, found none in {share}it", args.base.display())));
    }
    if let Some(query) = queries.iter().find(|query| query.len() != base[0].len()) {
        let (expected, found, path) = (base[0].len(), query.len(), args.queries.display());
        return Err(Failure::Usage(format!("{path}: expected {expected} columns as in --base, found {found}")));
    }
    let nearest: Vec<Vec<u32>> = queries.par_iter().map(|query| nearest(query, &base, &rows)).collect();
    let path = folder.join(format!("truth{}.npy", percent.unwrap_or(100)));
    let columns = rows.len().min(COUNT);
    let shape = format!("({}, {columns})", nearest.len());
    let header = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = u16::try_from(header.len()).unwrap_or(u16::MAX).to_le_bytes();
    let mut bytes = [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes()].concat();
    bytes.extend(nearest.iter().flatten().flat_map(|row| row.to_le_bytes()));
    fs::write(&path, bytes).map_err(Failure::io("write", &path))?;
    Ok(path)
}

/// The rows with the highest products with a query, the highest first.
fn nearest(query: &[f32], base: &[Vec<f32>], rows: &[u32]) -> Vec<u32> {
    let mut scored: Vec<(f32, u32)> = rows.iter().map(|row| (dot(query, &base[*row as usize]), *row)).collect();
    let better = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    if scored.len() > COUNT {
        scored.select_nth_unstable_by(COUNT, better);
        scored.truncate(COUNT);
    }
    scored.sort_unstable_by(better);
    scored.into_iter().map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_lets_its_share_of_every_hundred_rows_pass() {
        for percent in [1, 10, 50, 99] {
            for start in [0, 7, 100_000] {
                let passed = (start..start + 100).filter(|row| passes(*row, percent)).count();
                assert_eq!(passed, usize::from(percent));
            }
        }
        assert_eq!(metadata(0, &[50, 1]), r#"{"percent50":true,"percent1":true}"#);
        assert_eq!(metadata(1, &[50]), "");
        assert!(filter(50).is_ok());
    }

    #[test]
    fn the_nearest_are_those_of_highest_products_and_of_lowest_numbers_among_equals() {
        let base: Vec<Vec<f32>> = (0..30u8).map(|row| vec![f32::from(row % 15), 1.0]).collect();
        let rows: Vec<u32> = (0..30).collect();
        assert_eq!(nearest(&[1.0, 0.0], &base, &rows), [14, 29, 13, 28, 12, 27, 11, 26, 10, 25]);
        assert_eq!(nearest(&[1.0, 0.0], &base, &[3, 2]), [3, 2]);
    }
}
