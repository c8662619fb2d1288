//! `record!`: declares a fixed-size little-endian record once, for the code and for `SPEC.md`; and arrays of records.

use crate::FormatError;
use std::marker::PhantomData;

/// One line of a record's table in `SPEC.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Byte offset from the start of the record.
    pub offset: usize,
    /// Size in bytes.
    pub size: usize,
    /// Name of the field.
    pub name: &'static str,
    /// Its meaning, in one sentence.
    pub meaning: &'static str,
}

/// A fixed-size record of a file.
pub trait Record: Copy {
    /// Size of the encoded record in bytes.
    const SIZE: usize;
    /// The record's table, as `SPEC.md` shows it.
    const FIELDS: &'static [Field];
    /// Appends the encoded record.
    fn encode(&self, out: &mut Vec<u8>);
    /// Decodes a record from exactly [`Self::SIZE`] bytes; whether the values make sense is for the caller to check.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// A reference into the `strings` section.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextRef {
    /// First byte.
    pub offset: u32,
    /// Number of bytes.
    pub length: u32,
}

/// A value that a record may hold.
pub(crate) trait Scalar: Sized {
    const SIZE: usize;
    fn put(&self, out: &mut Vec<u8>);
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

macro_rules! scalar {
    ($($ty:ty),*) => {$(
        impl Scalar for $ty {
            const SIZE: usize = size_of::<$ty>();
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let (first, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(Self::from_le_bytes(*first))
            }
        }
    )*};
}
scalar!(u16, u32, u64, f32, f64);

impl<const N: usize> Scalar for [u8; N] {
    const SIZE: usize = N;
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*first)
    }
}

impl Scalar for TextRef {
    const SIZE: usize = 8;
    fn put(&self, out: &mut Vec<u8>) {
        self.offset.put(out);
        self.length.put(out);
    }
    fn take(bytes: &mut &[u8]) -> Option<Self> {
        Some(Self { offset: u32::take(bytes)?, length: u32::take(bytes)? })
    }
}

macro_rules! record {
    (
        $(#[$meta:meta])*
        $name:ident: $size:literal bytes {
            $( $offset:literal $field:ident: $ty:ty = $meaning:literal; )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $( #[doc = $meaning] pub $field: $ty, )*
        }

        impl $crate::Record for $name {
            const SIZE: usize = $size;
            const FIELDS: &'static [$crate::Field] = &[$( $crate::Field {
                offset: $offset,
                size: <$ty as $crate::record::Scalar>::SIZE,
                name: stringify!($field),
                meaning: $meaning,
            }, )*];

            fn encode(&self, out: &mut Vec<u8>) {
                $( $crate::record::Scalar::put(&self.$field, out); )*
            }

            fn decode(mut bytes: &[u8]) -> Option<Self> {
                let bytes = &mut bytes;
                let decoded = Self { $( $field: $crate::record::Scalar::take(bytes)?, )* };
                bytes.is_empty().then_some(decoded)
            }
        }

        // The fields follow each other without a gap and fill the record.
        #[expect(clippy::indexing_slicing, reason = "the compiler evaluates it")]
        const _: () = {
            let fields = <$name as $crate::Record>::FIELDS;
            let mut end = 0;
            let mut index = 0;
            while index < fields.len() {
                assert!(fields[index].offset == end);
                end += fields[index].size;
                index += 1;
            }
            assert!(end == $size);
        };
    };
}
pub(crate) use record;

/// An array of records, read where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, R> {
    bytes: &'a [u8],
    record: PhantomData<R>,
}

impl<'a, R: Record> Rows<'a, R> {
    /// A view of a section; its length must be a multiple of the record's size.
    ///
    /// # Errors
    /// [`FormatError::Shape`] where it is not.
    pub fn new(section: &'static str, bytes: &'a [u8]) -> Result<Self, FormatError> {
        whole_elements(section, bytes, R::SIZE)?;
        Ok(Self { bytes, record: PhantomData })
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(R::SIZE).unwrap_or(0)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The record at `index`, if there is one.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<R> {
        let start = index.checked_mul(R::SIZE)?;
        R::decode(self.bytes.get(start..start.checked_add(R::SIZE)?)?)
    }

    /// All records in order.
    pub fn iter(&self) -> impl Iterator<Item = R> + use<'a, R> {
        self.bytes.chunks_exact(R::SIZE).filter_map(R::decode)
    }

    /// The records of `range`; those outside are left out.
    pub fn range(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = R> + use<'a, R> {
        let rows = *self;
        let end = range.end.min(rows.len());
        (range.start.min(end)..end).filter_map(move |index| rows.get(index))
    }
}

macro_rules! numbers {
    ($(#[$meta:meta])* $name:ident of $ty:ty) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name<'a>(&'a [[u8; size_of::<$ty>()]]);

        impl<'a> $name<'a> {
            /// A view of a section; its length must be a multiple of the number's size.
            ///
            /// # Errors
            /// [`FormatError::Shape`] where it is not.
            pub fn new(section: &'static str, bytes: &'a [u8]) -> Result<Self, FormatError> {
                whole_elements(section, bytes, size_of::<$ty>())?;
                Ok(Self(bytes.as_chunks().0))
            }

            /// Number of values.
            #[must_use]
            pub fn len(&self) -> usize {
                self.0.len()
            }

            /// Whether there is none.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }

            /// The value at `index`, if there is one.
            #[must_use]
            pub fn get(&self, index: usize) -> Option<$ty> {
                self.0.get(index).map(|bytes| <$ty>::from_le_bytes(*bytes))
            }

            /// All values in order.
            pub fn iter(&self) -> impl ExactSizeIterator<Item = $ty> + use<'a> {
                self.0.iter().map(|bytes| <$ty>::from_le_bytes(*bytes))
            }

            /// The values of `range`, cut where the array ends.
            #[must_use]
            pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
                let end = range.end.min(self.0.len());
                Self(self.0.get(range.start.min(end)..end).unwrap_or_default())
            }
        }
    };
}
numbers!(
    /// An array of `u32`, read where it lies.
    U32s of u32
);
numbers!(
    /// An array of `u16`, read where it lies.
    U16s of u16
);

numbers!(
    /// An array of `f32`, read where it lies.
    F32s of f32
);

impl U32s<'_> {
    /// Row `row` of a CSR: `self` holds the offsets, one more than there are rows; empty where the offsets are wrong.
    #[must_use]
    pub fn row(&self, row: usize) -> std::ops::Range<usize> {
        let bounds = || Some((self.get(row)?, self.get(row.checked_add(1)?)?));
        match bounds() {
            Some((start, end)) if start <= end => to_usize(start)..to_usize(end),
            _ => 0..0,
        }
    }

    /// Position of `value` in an array that strictly increases.
    #[must_use]
    pub fn position_of(&self, value: u32) -> Option<usize> {
        self.0.binary_search_by_key(&value, |bytes| u32::from_le_bytes(*bytes)).ok()
    }
}

/// `u32` fits in `usize` on every machine that Hedgerow supports (32 bits or more).
pub(crate) fn to_usize(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

fn whole_elements(section: &'static str, bytes: &[u8], size: usize) -> Result<(), FormatError> {
    match bytes.len().checked_rem(size) {
        Some(0) => Ok(()),
        _ => Err(FormatError::Shape {
            section,
            expected: format!("a multiple of {size} bytes"),
            found: format!("{} bytes", bytes.len()),
        }),
    }
}
