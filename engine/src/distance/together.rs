//! Products of many vectors with many rows of codes, tile by tile, as many questions at once ask for them.

use crate::distance::coded::width_of;
use crate::distance::fine::{CODE_MAX, Scales};
use crate::distance::near::{CodeRows, encode_row};
use crate::distance::tile::{self, Columns, Left, Line, Listed, Products, Right, TILE_COLUMNS, TILE_ROWS};

/// The codes of some vectors by one scale, as right side of tiles.
pub struct Panel {
    right: Vec<[Right; TILE_COLUMNS]>,
    bias: [i32; TILE_COLUMNS],
    lefts: [f64; TILE_COLUMNS],
    scale: f64,
}

impl Panel {
    /// Of at most [`TILE_COLUMNS`] vectors of so many dimensions; their largest component becomes 127.
    pub fn new<'v>(vectors: impl Iterator<Item = &'v [f32]> + Clone, dimensions: usize) -> Self {
        let components = vectors.clone().flatten();
        let largest = components.map(|x| f64::from(x.abs())).fold(0.0, f64::max);
        let scale = if largest > 0.0 { largest / CODE_MAX } else { 1.0 };
        let mut codes = vec![0; width_of(dimensions)];
        let right = vec![[[0; 4]; TILE_COLUMNS]; codes.len() / 4];
        let mut panel = Self { right, bias: [0; TILE_COLUMNS], lefts: [0.0; TILE_COLUMNS], scale };
        for (column, vector) in vectors.take(TILE_COLUMNS).enumerate() {
            let left = encode_row(vector, Scales::new(scale, 1.0), &mut codes, &mut Vec::new());
            panel.lefts[column] = left.sqrt();
            for (step, codes) in panel.right.iter_mut().zip(codes.as_chunks::<4>().0) {
                step[column] = codes.map(|code| (code ^ 128).cast_signed());
                panel.bias[column] += 128 * step[column].iter().map(|code| i32::from(*code)).sum::<i32>();
            }
        }
        panel
    }

    /// What a code of one stands for.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// How far each vector lies from what its codes stand for.
    pub fn lefts(&self) -> &[f64; TILE_COLUMNS] {
        &self.lefts
    }
}

/// Some rows of codes, as left sides of tiles; one after another may use the same room.
#[derive(Default)]
pub struct Tiles {
    packed: Vec<[Left; TILE_ROWS]>,
    steps: usize,
    products: Products,
    listed: [Listed; TILE_ROWS],
}

impl Tiles {
    /// Takes the listed rows in place of those that were there.
    pub fn take(&mut self, rows: CodeRows<'_>, listed: &[u32]) {
        self.steps = rows.width() / 4;
        self.packed.clear();
        self.packed.resize(listed.len().div_ceil(TILE_ROWS) * self.steps, [[128; 4]; TILE_ROWS]);
        for (listed, packed) in listed.chunks(TILE_ROWS).zip(self.packed.chunks_exact_mut(self.steps.max(1))) {
            for (place, row) in listed.iter().enumerate() {
                for (step, codes) in packed.iter_mut().zip(rows.row(*row).as_chunks::<4>().0) {
                    step[place] = *codes;
                }
            }
        }
    }

    /// The columns of a panel whose products with each row of a tile are above their lines, less the error of the row.
    pub fn above(
        &mut self,
        tile: usize,
        panel: &Panel,
        lines: &[i32; TILE_COLUMNS],
        errors: &[i32; TILE_ROWS],
    ) -> &[Listed; TILE_ROWS] {
        self.listed.iter_mut().for_each(Listed::clear);
        let Some(left) = self.packed.get(tile * self.steps..(tile + 1) * self.steps) else { return &self.listed };
        tile::products(left, &panel.right, &panel.bias, &mut self.products);
        // A row chooses nothing, and all products are above its bracket: columns choose alone.
        let line = |error: &i32| Line {
            perhaps: i32::MIN,
            above: i32::MIN,
            chosen: i32::MAX,
            error: *error,
            counted: u32::MAX,
        };
        let columns = Columns { first: 0, errors: [0; TILE_COLUMNS], chosen: *lines };
        tile::sift(&self.products, &errors.each_ref().map(line), &columns, &mut self.listed);
        &self.listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::tile::tests::code;

    #[test]
    fn what_is_above_a_line_is_what_single_products_say() {
        let mut seed = 9;
        for (dimensions, count) in [(1, 3), (64, 14), (100, 33), (384, 50)] {
            let width = width_of(dimensions);
            let mut codes = vec![128; count * width];
            for row in codes.chunks_mut(width) {
                row[..dimensions].fill_with(|| code(&mut seed).cast_unsigned() ^ 128);
            }
            let rows = CodeRows::new(&codes, dimensions);
            let vectors: Vec<Vec<f32>> = (0..TILE_COLUMNS - 3)
                .map(|_| (0..dimensions).map(|_| f32::from(code(&mut seed)) / 60.0).collect())
                .collect();
            let panel = Panel::new(vectors.iter().map(Vec::as_slice), dimensions);
            let listed: Vec<u32> = (0..u32::try_from(count).unwrap()).rev().collect();
            let mut tiles = Tiles::default();
            tiles.take(rows, &listed);
            let lines: [i32; TILE_COLUMNS] = std::array::from_fn(|column| 500 * i32::try_from(column).unwrap() - 4000);
            for (tile, listed) in listed.chunks(TILE_ROWS).enumerate() {
                let errors: [i32; TILE_ROWS] = std::array::from_fn(|row| 100 * i32::try_from(row).unwrap());
                let above = tiles.above(tile, &panel, &lines, &errors);
                for ((row, error), above) in listed.iter().zip(errors).zip(above) {
                    let codes = rows.row(*row);
                    let mut expected = Vec::new();
                    for (column, vector) in vectors.iter().enumerate() {
                        let mut own = vec![0; width];
                        let left = encode_row(vector, Scales::new(panel.scale(), 1.0), &mut own, &mut Vec::new());
                        assert!((panel.lefts()[column] - left.sqrt()).abs() < 1e-12);
                        let pairs = own.iter().zip(codes);
                        let product: i32 = pairs.map(|(a, b)| (i32::from(*a) - 128) * (i32::from(*b) - 128)).sum();
                        if product > lines[column] - error {
                            expected.push((u32::try_from(column).unwrap(), product));
                        }
                    }
                    let own = |(column, _): &(u32, i32)| (*column as usize) < vectors.len();
                    let found = above.columns().iter().copied().zip(above.products().iter().copied());
                    assert_eq!(found.filter(own).collect::<Vec<_>>(), expected);
                }
            }
        }
    }
}
