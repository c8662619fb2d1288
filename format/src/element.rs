//! How the components of a vector lie in a file, how they are rounded to that, and what a space compares them by.

use std::fmt;

/// What a component is stored as. Whoever brings vectors brings `f32`; the store rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// IEEE 754 binary32: what was given.
    #[default]
    F32,
    /// IEEE 754 binary16: half of the bytes.
    F16,
    /// A whole number from −127 to 127, with a scale for each vector: about a quarter of the bytes.
    I8,
}

/// What makes two vectors of a space near.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Metric {
    /// A high cosine: vectors are stored with length one.
    #[default]
    Cosine,
    /// A high inner product of the vectors as they are.
    Dot,
    /// A low squared distance between the vectors as they are.
    L2,
}

/// What a vector space was made for; it keeps that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceKind {
    /// How its vectors are stored.
    pub element: Element,
    /// How they are compared.
    pub metric: Metric,
}

impl fmt::Display for SpaceKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} compared by {}", self.element.name(), self.metric.name())
    }
}

/// The largest magnitude of a component: inner products and squared distances of 4,096 of them are finite.
const MOST: f32 = f32::from_bits((127 + 56) << 23);
/// The largest magnitude that a half has.
const HALF_MOST: f32 = 65_504.0;
/// 2¹¹²: what the exponents of a half and of an `f32` with the same bits differ by.
const HALF_SHIFT: f32 = f32::from_bits((127 + 112) << 23);
/// The largest code.
const CODE_MOST: f32 = 127.0;
/// The least scale of a row of codes that are not all zero: 2⁻¹⁰⁷.
const SCALE_LEAST: f64 = f64::from_bits((1023 - 107) << 52);
/// Bits of an `f64` that a scale of codes doesn't have: it is cut to 16 significant ones, so that its product with a code is exact in
/// `f32`.
const SCALE_CUT: u64 = (1 << 37) - 1;
/// The same bits of an `f32`.
const SCALE_CUT_F32: u32 = (1 << 8) - 1;
/// Bytes of a row of codes that its scale takes.
const SCALE_BYTES: usize = 4;

impl Element {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::I8];

    /// The number in files.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::F32 => 0,
            Self::F16 => 1,
            Self::I8 => 2,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::I8 => "i8",
        }
    }

    /// Bytes of a vector of so many components.
    #[must_use]
    pub fn row_bytes(self, dimensions: usize) -> usize {
        match self {
            Self::F32 => dimensions.saturating_mul(4),
            Self::F16 => dimensions.saturating_mul(2),
            Self::I8 => dimensions.saturating_add(SCALE_BYTES),
        }
    }

    /// Appends the components of a vector as numbers.
    pub fn read(self, row: &[u8], out: &mut Vec<f32>) {
        match self {
            Self::F32 => out.extend(row.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))),
            Self::F16 => out.extend(row.as_chunks().0.iter().map(|bytes| half_value(*bytes))),
            Self::I8 => {
                let (scale, codes) = scale_and_codes(row);
                out.extend(codes.iter().map(|code| code_value(*code, scale)));
            }
        }
    }

    /// The components of a vector as numbers.
    #[must_use]
    pub fn components(self, row: &[u8]) -> Vec<f32> {
        let mut components = Vec::new();
        self.read(row, &mut components);
        components
    }
}

impl Metric {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Cosine, Self::Dot, Self::L2];

    /// The number in files.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::Cosine => 0,
            Self::Dot => 1,
            Self::L2 => 2,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cosine => "cosine",
            Self::Dot => "dot",
            Self::L2 => "l2",
        }
    }
}

impl SpaceKind {
    /// The kind with these numbers.
    #[must_use]
    pub fn from_numbers(element: u16, metric: u16) -> Option<Self> {
        let element = Element::ALL.into_iter().find(|known| known.number() == element)?;
        let metric = Metric::ALL.into_iter().find(|known| known.number() == metric)?;
        Some(Self { element, metric })
    }

    /// The largest magnitude that a component may have.
    #[must_use]
    pub fn component_max(self) -> f32 {
        if self.element == Element::F16 { HALF_MOST } else { MOST }
    }

    /// The first component that is no number or too large.
    #[must_use]
    pub fn beyond(self, components: &[f32]) -> Option<usize> {
        components.iter().position(|component| !(0.0..=self.component_max()).contains(&component.abs()))
    }

    /// Appends a vector as it lies in files, rounded; what was read from files is written as it was.
    pub fn write(self, components: &[f32], out: &mut Vec<u8>) {
        match self.element {
            Element::F32 => out.extend(components.iter().flat_map(|component| component.to_le_bytes())),
            Element::F16 => out.extend(components.iter().flat_map(|component| half(*component).to_le_bytes())),
            Element::I8 => self.write_codes(components, out),
        }
    }

    /// Makes of a vector what is read from files after it was written.
    pub fn round(self, components: &mut Vec<f32>) {
        if self.element != Element::F32 {
            let mut row = Vec::new();
            self.write(components, &mut row);
            components.clear();
            self.element.read(&row, components);
        }
    }

    /// Whether a row is one that [`SpaceKind::write`] makes of components that are finite and not too large; of their length it says
    /// nothing.
    #[must_use]
    pub fn is_sound(self, row: &[u8]) -> bool {
        match self.element {
            Element::F32 => row.as_chunks().0.iter().all(|bytes| f32::from_le_bytes(*bytes).abs() <= MOST),
            Element::F16 => row.as_chunks().0.iter().all(|bytes| u16::from_le_bytes(*bytes) & 0x7c00 != 0x7c00),
            Element::I8 => {
                let (scale, codes) = scale_and_codes(row);
                let most = codes.iter().map(|code| code.cast_signed().unsigned_abs()).max().unwrap_or_default();
                if most == 0 {
                    return scale.to_bits() == 0;
                }
                let ranged = f64::from(scale) >= SCALE_LEAST && scale <= MOST / CODE_MOST;
                most == 127 && ranged && scale.to_bits() & SCALE_CUT_F32 == 0
            }
        }
    }

    /// The largest component has the code of ±127; others are in proportion, rounded to the nearest whole number, between equals to the
    /// even one. The scale gives the largest its value back, or of cosine the vector length one.
    #[expect(clippy::cast_possible_truncation, reason = "codes are at most 127; scales have 16 significant bits")]
    fn write_codes(self, components: &[f32], out: &mut Vec<u8>) {
        let most = components.iter().map(|component| f64::from(component.abs())).fold(0.0, f64::max);
        let code = |component: &f32| (f64::from(CODE_MOST) * f64::from(*component) / most).round_ties_even();
        let scale = match self.metric {
            Metric::Cosine => components.iter().map(code).map(|code| code * code).sum::<f64>().sqrt().recip(),
            Metric::Dot | Metric::L2 => most / f64::from(CODE_MOST),
        };
        let scale = f64::from_bits(scale.to_bits() & !SCALE_CUT);
        if scale >= SCALE_LEAST {
            out.extend((scale as f32).to_le_bytes());
            out.extend(components.iter().map(|component| (code(component) as i8).cast_unsigned()));
        } else {
            out.extend(std::iter::repeat_n(0, Element::I8.row_bytes(components.len())));
        }
    }
}

/// The value of a half.
#[expect(clippy::inline_always, reason = "compiled for the instructions of the function around it")]
#[inline(always)]
#[must_use]
pub fn half_value(bytes: [u8; 2]) -> f32 {
    let bits = u32::from(u16::from_le_bytes(bytes));
    let magnitude = f32::from_bits((bits & 0x7fff) << 13) * HALF_SHIFT;
    f32::from_bits(magnitude.to_bits() | (bits & 0x8000) << 16)
}

/// The value of a code.
#[expect(clippy::inline_always, reason = "as above")]
#[inline(always)]
#[must_use]
pub fn code_value(code: u8, scale: f32) -> f32 {
    f32::from(code.cast_signed()) * scale
}

/// The scale and the codes of a row.
#[must_use]
pub fn scale_and_codes(row: &[u8]) -> (f32, &[u8]) {
    row.split_first_chunk().map_or((0.0, &[]), |(scale, codes)| (f32::from_le_bytes(*scale), codes))
}

/// The nearest half, between equals the even one.
fn half(value: f32) -> u16 {
    const NORMAL_LEAST: u32 = (127 - 14) << 23;
    let bits = value.to_bits();
    let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
    let rounded = if magnitude < NORMAL_LEAST {
        // The last place of 0.5 is 2⁻²⁴, as that of a half below 2⁻¹⁴.
        (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5_f32.to_bits())
    } else {
        let to_even = (magnitude >> 13 & 1).wrapping_add(0xfff);
        (magnitude.wrapping_sub(112 << 23).wrapping_add(to_even) >> 13).min(0x7c00)
    };
    u16::try_from(rounded | sign).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *seed >> 32
    }

    #[test]
    fn halves_have_the_bits_of_ieee_754() {
        let known = [
            (0.0, 0x0000),
            (-0.0, 0x8000),
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (0.1, 0x2e66),
            (1.0 / 3.0, 0x3555),
            (65_504.0, 0x7bff),
            (65_519.996, 0x7bff),
            (65_520.0, 0x7c00),
            (f32::MAX, 0x7c00),
            (6.103_515_6e-5, 0x0400),
            (6.097_555e-5, 0x03ff),
            (6.100_535e-5, 0x03ff),
            (1023.5 / 16_777_216.0, 0x0400),
            (5.960_464_5e-8, 0x0001),
            (2.980_232_2e-8, 0x0000),
            (2.980_232_6e-8, 0x0001),
            (-8.940_697e-8, 0x8002),
            // Between 1 and the half above it, and between that and the next one: to the even one.
            (1.000_488_3, 0x3c00),
            (1.001_464_8, 0x3c02),
            (1.000_488_4, 0x3c01),
        ];
        for (value, bits) in known {
            assert_eq!(half(value), bits, "{value} gives {:04x}", half(value));
        }
    }

    #[test]
    fn every_half_is_its_own_rounding_and_what_lies_between_two_goes_to_the_nearer() {
        for bits in 0..0x7c00_u16 {
            let value = half_value(bits.to_le_bytes());
            let exponent = i32::from(bits >> 10).max(1) - 25;
            let hidden = if bits < 0x400 { 0 } else { 0x400 };
            let expected = f64::from(bits & 0x3ff | hidden) * f64::powi(2.0, exponent);
            assert_eq!(f64::from(value).to_bits(), expected.to_bits());
            assert_eq!(half(value), bits);
            assert_eq!(half(-value), bits | 0x8000);
            if bits > 0 {
                let below = half_value((bits - 1).to_le_bytes());
                let middle = below + (value - below) / 2.0;
                assert_eq!(half(middle), bits - bits % 2);
                assert_eq!(half(middle.next_up()), bits);
                assert_eq!(half(middle.next_down()), bits - 1);
            }
        }
    }

    #[test]
    fn rows_are_sound_near_what_was_given_and_written_again_as_they_were() {
        let mut seed = 5;
        for metric in Metric::ALL {
            for element in Element::ALL {
                let kind = SpaceKind { element, metric };
                for round in 0..400_usize {
                    let magnitude = match metric {
                        Metric::Cosine => 1.0,
                        _ if element == Element::F16 => 30_000.0,
                        _ => f32::from_bits(u32::try_from((20 + drawn(&mut seed) % 162) << 23).unwrap()),
                    };
                    #[expect(clippy::cast_precision_loss, reason = "a number between −1 and 1")]
                    let one = |seed: &mut u64| (drawn(seed) as f32 / 2.0_f32.powi(31) - 1.0) * magnitude;
                    let given: Vec<f32> = (0..=round % 40).map(|_| one(&mut seed)).collect();
                    let mut row = Vec::new();
                    kind.write(&given, &mut row);
                    assert_eq!(row.len(), element.row_bytes(given.len()));
                    assert!(kind.is_sound(&row), "{kind:?} of {given:?}");
                    let mut rounded = given.clone();
                    kind.round(&mut rounded);
                    assert_eq!(rounded, element.components(&row));
                    let mut again = Vec::new();
                    kind.write(&rounded, &mut again);
                    assert_eq!(again, row, "{kind:?} of {given:?}");
                    let most = given.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
                    let step = match element {
                        Element::F32 => 0.0,
                        Element::F16 => 1.0 / 2048.0,
                        Element::I8 => 0.504 / 127.0,
                    };
                    if element != Element::I8 || metric != Metric::Cosine {
                        assert!(given.iter().zip(&rounded).all(|(a, b)| (a - b).abs() <= most * step + 1e-7));
                    }
                }
            }
        }
    }

    #[test]
    fn codes_of_cosine_have_length_one_and_the_direction_that_was_given() {
        let mut seed = 9;
        let kind = SpaceKind { element: Element::I8, metric: Metric::Cosine };
        for dimensions in [1_usize, 2, 7, 64, 384, 4096] {
            #[expect(clippy::cast_precision_loss, reason = "a number between −1 and 1")]
            let given: Vec<f32> = (0..dimensions).map(|_| drawn(&mut seed) as f32 / 2.0_f32.powi(31) - 1.0).collect();
            let mut rounded = given.clone();
            kind.round(&mut rounded);
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            assert!((dot(&rounded, &rounded) - 1.0).abs() < 7e-5, "{}", dot(&rounded, &rounded));
            assert!(dot(&rounded, &given) / dot(&given, &given).sqrt() > 0.9999);
        }
    }

    #[test]
    fn rows_that_are_written_never_are_not_sound() {
        let codes = |scale: f32, codes: &[i8]| {
            let mut row = scale.to_le_bytes().to_vec();
            row.extend(codes.iter().map(|code| code.cast_unsigned()));
            row
        };
        let kind = |element| SpaceKind { element, metric: Metric::Dot };
        assert!(kind(Element::I8).is_sound(&codes(0.5, &[127, -3])));
        assert!(kind(Element::I8).is_sound(&codes(0.0, &[0, 0])));
        for row in [
            codes(0.5, &[126, -3]),
            codes(0.5, &[0, 0]),
            codes(-0.0, &[0, 0]),
            codes(0.0, &[127, 0]),
            codes(-0.5, &[127, 0]),
            codes(0.5, &[-128, 127]),
            codes(0.1, &[127, 0]),
            codes(f32::NAN, &[127, 0]),
            codes(f32::INFINITY, &[127, 0]),
            codes(1e30, &[127, 0]),
            codes(1e-38, &[127, 0]),
        ] {
            assert!(!kind(Element::I8).is_sound(&row), "{row:?}");
        }
        for bits in [0x7c00_u16, 0xfc00, 0x7e00] {
            assert!(!kind(Element::F16).is_sound(&bits.to_le_bytes()));
        }
        for value in [f32::NAN, f32::NEG_INFINITY, 1e17, -1e17] {
            assert!(!kind(Element::F32).is_sound(&value.to_le_bytes()));
        }
        assert!(kind(Element::F32).is_sound(&7e16_f32.to_le_bytes()));
    }
}
