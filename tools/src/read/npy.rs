//! Matrices in the `.npy` files of `NumPy`, read row by row.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

/// Why a matrix cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixError {
    /// The file is not what is read here.
    #[error("{}: expected {expected}, found {found}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What can be read.
        expected: &'static str,
        /// What the file says.
        found: String,
    },
    /// The file ends before its last row.
    #[error("{}: expected {expected} bytes for its shape, found {found}; it was cut off, copy it again", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes that the header asks for.
        expected: u64,
        /// Bytes that are there.
        found: u64,
    },
    /// The operating system could not read it.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// A two-dimensional matrix of f32 or f16, little-endian, in C order; opening reads the header only.
#[derive(Debug)]
pub struct Matrix<R = BufReader<File>> {
    path: PathBuf,
    file: R,
    number: Number,
    rows: u64,
    columns: usize,
}

impl Matrix {
    /// Opens a file and checks its header against its length; nothing that the header claims is allocated before.
    ///
    /// # Errors
    /// When the file cannot be read, is no such matrix, or is shorter than its shape.
    pub fn open(path: &Path) -> Result<Self, MatrixError> {
        let io = |source| MatrixError::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        Matrix::read(path, BufReader::with_capacity(READ_BYTES, file), bytes)
    }
}

impl<R: Read> Matrix<R> {
    /// Reads the header of a source of so many bytes; `path` is what errors call it.
    ///
    /// # Errors
    /// Those of [`Matrix::open`].
    pub fn read(path: &Path, mut file: R, found: u64) -> Result<Self, MatrixError> {
        let (shape, before) = read_shape(path, &mut file, FLOATS, Number::of)?;
        let (number, rows, columns) = two(shape).map_err(|fault| malformed(path, &fault))?;
        check_length(path, before, (rows, columns, number.bytes()), found)?;
        let columns = usize::try_from(columns)
            .ok()
            .filter(|&columns| (1..=COLUMNS_MAX).contains(&columns))
            .ok_or_else(|| malformed(path, &Fault { expected: "1 to 65,536 columns", found: format!("{columns}") }))?;
        Ok(Matrix { path: path.to_owned(), file, number, rows, columns })
    }

    /// Number of rows.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.rows
    }

    /// Number of columns: components of every row.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The rows from the first on; one row is in memory at a time.
    pub fn rows(self) -> impl Iterator<Item = Result<Vec<f32>, MatrixError>> {
        let Matrix { path, mut file, number, rows, columns } = self;
        let mut bytes = vec![0; columns * number.size()];
        (0..rows).map(move |_| {
            file.read_exact(&mut bytes).map_err(|source| MatrixError::Io { path: path.clone(), source })?;
            Ok(number.decode(&bytes))
        })
    }
}

/// Pairs of integers, one a row: a two-dimensional matrix of two columns, little-endian, in C order; opening reads the header
/// only.
#[derive(Debug)]
pub struct Pairs<R> {
    path: PathBuf,
    file: R,
    number: Integer,
    rows: u64,
    left: u64,
}

impl<R: Read> Pairs<R> {
    /// Reads the header of a source of so many bytes; `path` is what errors call it.
    ///
    /// # Errors
    /// When the source cannot be read, is no such matrix, or is shorter than its shape.
    pub fn read(path: &Path, mut file: R, found: u64) -> Result<Self, MatrixError> {
        let (shape, before) = read_shape(path, &mut file, INTEGERS, Integer::of)?;
        let (number, rows, columns) = two(shape).map_err(|fault| malformed(path, &fault))?;
        check_length(path, before, (rows, columns, number.bytes), found)?;
        if columns != 2 {
            return Err(malformed(path, &Fault { expected: "2 columns", found: format!("{columns}") }));
        }
        Ok(Self { path: path.to_owned(), file, number, rows, left: rows })
    }

    /// Number of rows.
    #[must_use]
    pub fn row_count(&self) -> u64 {
        self.rows
    }

    /// What is left of the source.
    pub fn into_source(self) -> R {
        self.file
    }
}

impl<R: Read> Iterator for Pairs<R> {
    type Item = Result<[i128; 2], MatrixError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let mut bytes = [0; 16];
        let half = self.number.size;
        Some(match self.file.read_exact(&mut bytes[..half * 2]) {
            Ok(()) => Ok([&bytes[..half], &bytes[half..half * 2]].map(|bytes| self.number.decode(bytes))),
            Err(source) => Err(MatrixError::Io { path: self.path.clone(), source }),
        })
    }
}

/// The integers of a file of one dimension, or of one column, in order.
///
/// # Errors
/// When the file cannot be read, is no such file, or is shorter than its shape.
pub fn integers(path: &Path) -> Result<Vec<i128>, MatrixError> {
    let one = |columns| match columns {
        None | Some(1) => Ok(1),
        Some(columns) => Err(Fault { expected: "one column", found: format!("{columns}") }),
    };
    table(path, one).map(|(_, numbers)| numbers)
}

/// The rows of a file of integers in two dimensions, in order.
///
/// # Errors
/// Those of [`integers`].
pub fn integer_rows(path: &Path) -> Result<Vec<Vec<i128>>, MatrixError> {
    let many = |columns: Option<u64>| {
        let found = columns.map_or("one dimension".to_owned(), |columns| format!("{columns} columns"));
        let fault = Fault { expected: "two dimensions with 1 to 65,536 columns", found };
        let columns = columns.and_then(|columns| usize::try_from(columns).ok());
        columns.filter(|columns| (1..=COLUMNS_MAX).contains(columns)).ok_or(fault)
    };
    let (columns, numbers) = table(path, many)?;
    Ok(numbers.chunks(columns).map(<[i128]>::to_vec).collect())
}

/// Columns, as `check` tells them from those of the header, and all integers of a file.
fn table(path: &Path, check: impl Fn(Option<u64>) -> Result<usize, Fault>) -> Result<(usize, Vec<i128>), MatrixError> {
    let io = |source| MatrixError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(io)?;
    let found = file.metadata().map_err(io)?.len();
    let mut file = BufReader::with_capacity(READ_BYTES, file);
    let ((number, rows, columns), before) = read_shape(path, &mut file, INTEGERS, Integer::of)?;
    let checked = check(columns).map_err(|fault| malformed(path, &fault))?;
    let columns = columns.unwrap_or(1);
    check_length(path, before, (rows, columns, number.bytes), found)?;
    let mut bytes = vec![0; number.size];
    let one = |_| file.read_exact(&mut bytes).map(|()| number.decode(&bytes)).map_err(io);
    let numbers = (0..rows * columns).map(one).collect::<Result<_, _>>()?;
    Ok((checked, numbers))
}

/// The type of numbers, rows, and columns where there are two dimensions.
type Shape<N> = (N, u64, Option<u64>);

/// The type of a file's numbers and their shape, of one dimension or two, and the bytes before the first of them.
fn read_shape<N>(
    path: &Path,
    file: &mut impl Read,
    types: &'static str,
    of: impl Fn(&str) -> Option<N>,
) -> Result<(Shape<N>, u64), MatrixError> {
    let form = |fault: Fault| malformed(path, &fault);
    let read = read_header(file).map_err(|source| MatrixError::Io { path: path.to_owned(), source })?;
    let (header, before) = read.map_err(form)?;
    Ok((parse_header(&header, types, of).map_err(form)?, before))
}

fn malformed(path: &Path, fault: &Fault) -> MatrixError {
    MatrixError::Form { path: path.to_owned(), expected: fault.expected, found: shown(&fault.found) }
}

/// Whether a source is as long as its header says: nothing that the header claims is allocated before.
fn check_length(
    path: &Path,
    before: u64,
    (rows, columns, bytes): (u64, u64, u64),
    found: u64,
) -> Result<(), MatrixError> {
    let size = rows.checked_mul(columns).and_then(|count| count.checked_mul(bytes));
    let expected = size.and_then(|size| size.checked_add(before)).unwrap_or(u64::MAX);
    if found < expected { Err(MatrixError::Length { path: path.to_owned(), expected, found }) } else { Ok(()) }
}

const FLOATS: &str = "f32 or f16, little-endian ('<f4' or '<f2')";
const INTEGERS: &str = "integers, little-endian ('<u4', '<u8', '<i4', '<i8', '<u2', '<i2', '|u1' or '|i1')";
const READ_BYTES: usize = 1 << 18;
const COLUMNS_MAX: usize = 1 << 16;
const HEADER_BYTES_MAX: u32 = 1 << 16;

#[derive(Clone, Copy, Debug)]
enum Number {
    Single,
    Half,
}

impl Number {
    fn of(descr: &str) -> Option<Self> {
        match descr {
            "<f4" => Some(Number::Single),
            "<f2" => Some(Number::Half),
            _ => None,
        }
    }

    fn size(self) -> usize {
        match self {
            Number::Single => 4,
            Number::Half => 2,
        }
    }

    fn bytes(self) -> u64 {
        match self {
            Number::Single => 4,
            Number::Half => 2,
        }
    }

    fn decode(self, bytes: &[u8]) -> Vec<f32> {
        match self {
            Number::Single => bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(),
            Number::Half => bytes.as_chunks().0.iter().map(|&bytes| f32_from_half(u16::from_le_bytes(bytes))).collect(),
        }
    }
}

/// A type of integers.
#[derive(Clone, Copy, Debug)]
struct Integer {
    size: usize,
    bytes: u64,
    signed: bool,
}

impl Integer {
    fn of(descr: &str) -> Option<Self> {
        let (size, bytes) = match descr.get(2..) {
            Some("1") => (1, 1),
            Some("2") => (2, 2),
            Some("4") => (4, 4),
            Some("8") => (8, 8),
            _ => return None,
        };
        // Single bytes have no order.
        let is_little = descr.starts_with('<') || (size == 1 && descr.starts_with('|'));
        match descr.get(1..2).filter(|_| is_little) {
            Some("u") => Some(Integer { size, bytes, signed: false }),
            Some("i") => Some(Integer { size, bytes, signed: true }),
            _ => None,
        }
    }

    fn decode(self, bytes: &[u8]) -> i128 {
        let is_negative = self.signed && bytes.last().is_some_and(|last| last & 0x80 != 0);
        let mut wide = [if is_negative { 0xFF } else { 0 }; 16];
        wide.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        i128::from_le_bytes(wide)
    }
}

/// What was found, without what no one reads.
fn shown(found: &str) -> String {
    match found.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", found.get(..end).unwrap_or_default()),
        None => found.to_owned(),
    }
}

struct Fault {
    expected: &'static str,
    found: String,
}

/// The header's text and the number of bytes before the data.
fn read_header(file: &mut impl Read) -> io::Result<Result<(String, u64), Fault>> {
    let fault = |expected, found: String| Ok(Err(Fault { expected, found }));
    let mut start = Vec::new();
    file.take(8).read_to_end(&mut start)?;
    let [0x93, b'N', b'U', b'M', b'P', b'Y', version, _] = start[..] else {
        return fault("a .npy file", "other first bytes".to_owned());
    };
    let (length, before) = match version {
        1 => {
            let mut length = [0; 2];
            file.read_exact(&mut length)?;
            (u32::from(u16::from_le_bytes(length)), 10)
        }
        2 | 3 => {
            let mut length = [0; 4];
            file.read_exact(&mut length)?;
            (u32::from_le_bytes(length), 12)
        }
        _ => {
            return fault("version 1, 2 or 3 of the .npy format", format!("version {version}"));
        }
    };
    if length > HEADER_BYTES_MAX {
        return fault("a header of at most 65,536 bytes", format!("{length} bytes"));
    }
    let mut header = Vec::new();
    file.take(u64::from(length)).read_to_end(&mut header)?;
    match String::from_utf8(header) {
        Ok(header) => Ok(Ok((header, before + u64::from(length)))),
        Err(_) => fault("a header of text", "bytes that are none".to_owned()),
    }
}

/// Number type, rows and columns of a header such as `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`; no columns
/// where there is one dimension.
fn parse_header<N>(
    header: &str,
    expected: &'static str,
    number: impl Fn(&str) -> Option<N>,
) -> Result<Shape<N>, Fault> {
    let value = |field: &str| -> &str {
        let after = header.split_once(field).map_or("", |(_, after)| after);
        after.trim_start_matches(['\'', '"']).trim_start().strip_prefix(':').unwrap_or_default().trim_start()
    };
    let descr = value("descr");
    let Some(number) = descr.get(1..4).and_then(number) else {
        let found = descr.split(',').next().unwrap_or_default().to_owned();
        return Err(Fault { expected, found });
    };
    if !value("fortran_order").starts_with("False") {
        return Err(Fault {
            expected: "C order",
            found: "Fortran order; save numpy.ascontiguousarray of it".to_owned(),
        });
    }
    let shape = value("shape").strip_prefix('(').and_then(|shape| shape.split(')').next()).unwrap_or_default();
    let sizes: Vec<Option<u64>> =
        shape.split(',').map(str::trim).filter(|size| !size.is_empty()).map(|size| size.parse().ok()).collect();
    match sizes[..] {
        [Some(rows), Some(columns)] => Ok((number, rows, Some(columns))),
        [Some(rows)] => Ok((number, rows, None)),
        _ => Err(Fault { expected: "two dimensions", found: format!("the shape ({shape})") }),
    }
}

/// Number type, rows and columns of two dimensions.
fn two<N>((number, rows, columns): Shape<N>) -> Result<(N, u64, u64), Fault> {
    let found = || Fault { expected: "two dimensions", found: format!("the shape ({rows},)") };
    Ok((number, rows, columns.ok_or_else(found)?))
}

/// The value of an IEEE half-precision float, exactly.
#[must_use]
pub fn f32_from_half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let (exponent, fraction) = (u32::from(bits >> 10) & 0x1F, u32::from(bits & 0x3FF));
    let magnitude = match exponent {
        // Zero and subnormal: units of 2^-24; at most ten bits, so the conversion and the product are exact.
        0 => {
            return f32::from_bits(sign | (f32::from(bits & 0x3FF) * f32::from_bits(0x3380_0000)).to_bits());
        }
        0x1F => 0x7F80_0000 | (fraction << 13),
        _ => ((exponent + 112) << 23) | (fraction << 13),
    };
    f32::from_bits(sign | magnitude)
}

#[cfg(test)]
mod tests {
    use crate::read::npy::{Matrix, f32_from_half};

    fn file(header: &str, data: &[u8], version: u8) -> Vec<u8> {
        let mut bytes = [b"\x93NUMPY".as_slice(), &[version, 0]].concat();
        match version {
            1 => bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes()),
            _ => bytes.extend(u32::try_from(header.len()).unwrap().to_le_bytes()),
        }
        [&bytes, header.as_bytes(), data].concat()
    }

    fn header(descr: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}\n")
    }

    /// The rows, or what the error says after the path.
    fn check(name: &str, bytes: &[u8]) -> Result<Vec<Vec<f32>>, String> {
        let path = std::env::temp_dir().join(format!("hedgerow-npy-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let rows = Matrix::open(&path).and_then(|matrix| matrix.rows().collect());
        std::fs::remove_file(&path).unwrap();
        rows.map_err(|error| error.to_string().split_once(": ").unwrap().1.to_owned())
    }

    #[test]
    fn rows_of_both_types_and_all_versions_are_read() {
        let single: Vec<u8> = [1.0f32, -2.5, 3.0, 4.0].iter().flat_map(|number| number.to_le_bytes()).collect();
        for version in 1..=3 {
            let rows = check("single", &file(&header("<f4", "2, 2"), &single, version)).unwrap();
            assert_eq!(rows, [[1.0, -2.5], [3.0, 4.0]]);
        }
        let half: Vec<u8> = [0x3C00u16, 0xC100].iter().flat_map(|bits| bits.to_le_bytes()).collect();
        assert_eq!(check("half", &file(&header("<f2", "1,2"), &half, 1)).unwrap(), [[1.0, -2.5]]);
        assert_eq!(check("none", &file(&header("<f4", "0, 3"), &[], 1)).unwrap(), [[0.0; 3]; 0]);
    }

    #[test]
    fn other_files_are_refused_with_what_was_found() {
        for (bytes, reason) in [
            (b"hello world".to_vec(), "expected a .npy file, found other first bytes"),
            (file("", &[], 9), "expected version 1, 2 or 3 of the .npy format, found version 9"),
            (file(&header(">f4", "1, 1"), &[], 1), "expected f32 or f16, little-endian ('<f4' or '<f2'), found '>f4'"),
            (file(&header("<f4", "4,"), &[0; 16], 1), "expected two dimensions, found the shape (4,)"),
            (file(&header("<f4", "2, 0"), &[], 1), "expected 1 to 65,536 columns, found 0"),
            (
                file(&header("<f4", "1, 1").replace("False", "True"), &[0; 4], 1),
                "expected C order, found Fortran order; save numpy.ascontiguousarray of it",
            ),
        ] {
            assert_eq!(check("other", &bytes).unwrap_err(), reason);
        }
    }

    #[test]
    fn a_shape_beyond_the_file_is_refused_before_anything_is_allocated() {
        for shape in ["2, 2", "4611686018427387904, 1024", "1, 18446744073709551615"] {
            let error = check("short", &file(&header("<f4", shape), &[0; 15], 1)).unwrap_err();
            assert!(error.contains("it was cut off"), "{error}");
        }
    }

    #[test]
    fn hostile_headers_are_refused_with_a_short_reason() {
        for (header, reason) in [
            (format!("{{'descr': '{}", "é".repeat(30_000)), "expected f32 or f16"),
            (header("<f4", &"9,".repeat(30_000)), "expected two dimensions"),
            (header("<f4", "1152921504606846976, 1152921504606846976"), "it was cut off"),
            (header("<f4", "0, 1152921504606846976"), "expected 1 to 65,536 columns"),
            (header("<f4", "-1, 2"), "expected two dimensions"),
            (String::new(), "expected f32 or f16"),
        ] {
            let error = check("hostile", &file(&header, &[0; 8], 2)).unwrap_err();
            assert!(error.contains(reason) && error.len() < 400, "{error}");
        }
        let claims = [b"\x93NUMPY\x02\0".as_slice(), &u32::MAX.to_le_bytes()].concat();
        assert!(check("claims", &claims).unwrap_err().contains("a header of at most 65,536 bytes"));
    }

    #[test]
    fn halves_are_exact() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x0001, 2f32.powi(-24)),
            (0x03FF, 1023.0 * 2f32.powi(-24)),
            (0x0400, 2f32.powi(-14)),
            (0x3555, 0.333_251_95),
            (0x7BFF, 65504.0),
            (0xFC00, f32::NEG_INFINITY),
        ] {
            assert_eq!(f32_from_half(bits).to_bits(), f32::to_bits(value), "{bits:#06x}");
        }
        assert_eq!(f32_from_half(0x8000).to_bits(), (-0.0f32).to_bits());
        assert!(f32_from_half(0x7E01).is_nan());
    }
}
