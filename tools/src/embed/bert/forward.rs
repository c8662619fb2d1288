//! The layers: from token ids to one vector a text. Texts stand one below the other in one matrix, without padding.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut1, ArrayViewMut2, Axis, concatenate, s};

use crate::embed::bert::config::Config;
use crate::embed::bert::weights::Weights;

/// An encoder with its weights.
#[derive(Debug)]
pub(super) struct Encoder {
    words: Array2<f32>,
    /// Positions, with the one type of token that there is added to them.
    positions: Array2<f32>,
    start: Norm,
    layers: Vec<Layer>,
    heads: usize,
}

#[derive(Debug)]
struct Layer {
    /// Query, key and value in one product; the query is scaled.
    attend: Linear,
    attended: Linear,
    attended_norm: Norm,
    widen: Linear,
    narrow: Linear,
    norm: Norm,
}

/// x · W + b, with W stored as inputs × outputs.
#[derive(Debug)]
struct Linear {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

#[derive(Debug)]
struct Norm {
    weight: Array1<f32>,
    bias: Array1<f32>,
    epsilon: f32,
}

impl Encoder {
    /// Takes the weights that a model of this shape has.
    pub fn of(weights: &Weights<'_>, config: &Config, words: usize) -> Result<Self, String> {
        let hidden = config.hidden;
        let mut positions = weights.matrix("embeddings.position_embeddings.weight", config.positions, hidden)?;
        positions += &weights.matrix("embeddings.token_type_embeddings.weight", 2, hidden)?.row(0);
        Ok(Encoder {
            words: weights.matrix("embeddings.word_embeddings.weight", words, hidden)?,
            positions,
            start: Norm::of(weights, "embeddings.LayerNorm", config)?,
            layers: (0..config.layers).map(|number| Layer::of(weights, number, config)).collect::<Result<_, _>>()?,
            heads: config.heads,
        })
    }

    /// Components of a vector.
    pub fn dimensions(&self) -> usize {
        self.words.ncols()
    }

    /// One vector of length one a text. Ids beyond the vocabulary count as the first word, and texts are no longer than
    /// there are positions: who calls sees to both.
    pub fn encode(&self, texts: &[&[u16]]) -> Vec<Vec<f32>> {
        let tokens: usize = texts.iter().map(|ids| ids.len()).sum();
        let mut x = Array2::zeros((tokens, self.dimensions()));
        let mut row = 0;
        for ids in texts {
            for (id, position) in ids.iter().zip(self.positions.rows()) {
                let id = usize::from(*id);
                let word = self.words.row(if id < self.words.nrows() { id } else { 0 });
                let mut sum = x.row_mut(row);
                sum.assign(&word);
                sum += &position;
                row += 1;
            }
        }
        self.start.apply(&mut x);
        for layer in &self.layers {
            layer.apply(&mut x, texts, self.heads);
        }
        let mut start = 0;
        let mean = |ids: &&[u16]| {
            let rows = x.slice(s![start..start + ids.len(), ..]);
            start += ids.len();
            unit(rows.mean_axis(Axis(0)).unwrap_or_default())
        };
        texts.iter().map(mean).collect()
    }
}

fn unit(mut vector: Array1<f32>) -> Vec<f32> {
    let length = vector.iter().map(|component| component * component).sum::<f32>().sqrt();
    vector /= length.max(f32::MIN_POSITIVE);
    vector.to_vec()
}

impl Layer {
    fn of(weights: &Weights<'_>, number: usize, config: &Config) -> Result<Self, String> {
        let (hidden, between) = (config.hidden, config.between);
        let linear = |name: &str, inputs, outputs| {
            Linear::of(weights, &format!("encoder.layer.{number}.{name}"), inputs, outputs)
        };
        let norm = |name: &str| Norm::of(weights, &format!("encoder.layer.{number}.{name}"), config);
        let [mut query, key, value] = [
            linear("attention.self.query", hidden, hidden)?,
            linear("attention.self.key", hidden, hidden)?,
            linear("attention.self.value", hidden, hidden)?,
        ];
        #[expect(clippy::cast_precision_loss, reason = "at most 4096, which f32 holds exactly")]
        let scale = 1.0 / ((hidden / config.heads) as f32).sqrt();
        query.weight *= scale;
        query.bias *= scale;
        let sides = [query.weight.view(), key.weight.view(), value.weight.view()];
        let ends = [query.bias.view(), key.bias.view(), value.bias.view()];
        let joined = |error: ndarray::ShapeError| format!("layer {number}: {error}");
        Ok(Layer {
            attend: Linear {
                weight: concatenate(Axis(1), &sides).map_err(joined)?,
                bias: concatenate(Axis(0), &ends).map_err(joined)?,
            },
            attended: linear("attention.output.dense", hidden, hidden)?,
            attended_norm: norm("attention.output.LayerNorm")?,
            widen: linear("intermediate.dense", hidden, between)?,
            narrow: linear("output.dense", between, hidden)?,
            norm: norm("output.LayerNorm")?,
        })
    }

    fn apply(&self, x: &mut Array2<f32>, texts: &[&[u16]], heads: usize) {
        let mut joint = Array2::zeros((x.nrows(), self.attend.bias.len()));
        self.attend.add(&x.view(), &mut joint);
        let mut seen = Array2::zeros(x.raw_dim());
        let mut start = 0;
        for ids in texts {
            let rows = start..start + ids.len();
            attend(&joint.slice(s![rows.clone(), ..]), seen.slice_mut(s![rows, ..]), heads);
            start += ids.len();
        }
        self.attended.add(&seen.view(), x);
        self.attended_norm.apply(x);
        let mut wide = Array2::zeros((x.nrows(), self.widen.bias.len()));
        self.widen.add(&x.view(), &mut wide);
        wide.iter_mut().for_each(|number| *number = gelu(*number));
        self.narrow.add(&wide.view(), x);
        self.norm.apply(x);
    }
}

/// softmax(Q · Kᵀ) · V of one text, head by head.
fn attend(joint: &ArrayView2<'_, f32>, mut seen: ArrayViewMut2<'_, f32>, heads: usize) {
    let (hidden, tokens) = (seen.ncols(), seen.nrows());
    let width = hidden / heads;
    let mut scores = Array2::zeros((tokens, tokens));
    for head in 0..heads {
        let columns = |part: usize| part * hidden + head * width..part * hidden + (head + 1) * width;
        let [query, key, value] = [0, 1, 2].map(|part| joint.slice(s![.., columns(part)]));
        general_mat_mul(1.0, &query, &key.t(), 0.0, &mut scores);
        scores.rows_mut().into_iter().for_each(softmax);
        general_mat_mul(1.0, &scores, &value, 0.0, &mut seen.slice_mut(s![.., columns(0)]));
    }
}

fn softmax(mut row: ArrayViewMut1<'_, f32>) {
    let most = row.iter().copied().fold(f32::MIN, f32::max);
    row.iter_mut().for_each(|number| *number = exp(*number - most));
    let sum = row.iter().sum::<f32>();
    row /= sum;
}

impl Linear {
    fn of(weights: &Weights<'_>, name: &str, inputs: usize, outputs: usize) -> Result<Self, String> {
        let weight = weights.matrix(&format!("{name}.weight"), outputs, inputs)?;
        let bias = weights.vector(&format!("{name}.bias"), outputs)?;
        Ok(Linear { weight: weight.t().as_standard_layout().into_owned(), bias })
    }

    /// Adds the product and the bias to what is there.
    fn add(&self, x: &ArrayView2<'_, f32>, to: &mut Array2<f32>) {
        *to += &self.bias;
        general_mat_mul(1.0, x, &self.weight, 1.0, to);
    }
}

impl Norm {
    fn of(weights: &Weights<'_>, name: &str, config: &Config) -> Result<Self, String> {
        let [weight, bias] = ["weight", "bias"].map(|part| weights.vector(&format!("{name}.{part}"), config.hidden));
        Ok(Norm { weight: weight?, bias: bias?, epsilon: config.epsilon })
    }

    fn apply(&self, x: &mut Array2<f32>) {
        for mut row in x.rows_mut() {
            let mean = row.mean().unwrap_or_default();
            row -= mean;
            let variance = row.iter().map(|number| number * number).sum::<f32>();
            #[expect(clippy::cast_precision_loss, reason = "at most 4096, which f32 holds exactly")]
            let scale = 1.0 / (variance / row.len() as f32 + self.epsilon).sqrt();
            for ((number, weight), bias) in row.iter_mut().zip(&self.weight).zip(&self.bias) {
                *number = *number * scale * weight + bias;
            }
        }
    }
}

/// x · Φ(x), with the error function to 1.5 · 10⁻⁷ (Abramowitz and Stegun, 7.1.26).
fn gelu(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let sum = ((((1.061_405_4 * t - 1.453_152) * t) + 1.421_413_7) * t - 0.284_496_74) * t + 0.254_829_6;
    let erf = (1.0 - sum * t * exp(-z * z)).copysign(x);
    0.5 * x * (1.0 + erf)
}

/// eˣ to about one in 10⁷ for x ≤ 0, without a branch, so that several go at once: 2ⁿ from the bits of n, and the rest, which
/// is less than half a power of two, from its series.
fn exp(x: f32) -> f32 {
    /// 1.5 · 2²³: what is added to it is rounded to a whole number, which stands in its lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.max(-87.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts, the first of which is exact in products with n.
    let rest = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let series = rest * (1.0 / 720.0) + 1.0 / 120.0;
    let series = ((series * rest + 1.0 / 24.0) * rest + 1.0 / 6.0) * rest + 0.5;
    let series = (series * rest + 1.0) * rest + 1.0;
    series * f32::from_bits((shifted.to_bits() << 23).wrapping_add(1.0_f32.to_bits()))
}

#[cfg(test)]
mod tests {
    use crate::embed::bert::forward::{exp, gelu};

    #[test]
    fn exp_and_gelu_are_what_they_are_called() {
        for step in -1600..=1600_i16 {
            let x = f32::from(step) / 20.0;
            let expected = f64::from(-x.abs()).exp();
            assert!((f64::from(exp(-x.abs())) - expected).abs() <= expected * 3e-7, "{x}");
            let expected = f64::from(x) * 0.5 * (1.0 + libm::erf(f64::from(x) / std::f64::consts::SQRT_2));
            assert!((f64::from(gelu(x)) - expected).abs() <= 5e-7 * (1.0 + f64::from(x.abs())), "{x}");
        }
    }
}
