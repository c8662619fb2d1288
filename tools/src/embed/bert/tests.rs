//! A tiny model of random weights, computed again plainly, number by number, in f64.

use std::collections::BTreeMap;

use hedgerow::Embed;
use serde_json::{Value, json};

use crate::embed::bert::FolderModel;
use crate::embed::bert::config::Files;
use crate::embed::wordpiece::Vocabulary;

const HIDDEN: usize = 12;
const BETWEEN: usize = 20;
const HEADS: usize = 3;
const LAYERS: usize = 2;
const POSITIONS: usize = 9;

type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

fn vocabulary() -> String {
    let filler = "[unused]\n".repeat(100);
    format!("{filler}[UNK]\n[CLS]\n[SEP]\nhedge\n##row\nstore\n##s\na\n.\n")
}

/// Weights between -0.5 and 0.5, always the same.
fn tensors() -> Tensors {
    let mut state = 7_u32;
    let mut tensors = Tensors::new();
    let mut add = |name: String, shape: &[usize]| {
        let numbers = (0..shape.iter().product()).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from(u16::try_from(state >> 16).unwrap()) / 65_536.0 - 0.5
        });
        tensors.insert(name, (shape.to_vec(), numbers.collect()));
    };
    let words = vocabulary().lines().count();
    for (name, rows) in [("word", words), ("position", POSITIONS), ("token_type", 2)] {
        add(format!("embeddings.{name}_embeddings.weight"), &[rows, HIDDEN]);
    }
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    for layer in 0..LAYERS {
        let layer = format!("encoder.layer.{layer}");
        for part in ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"] {
            add(format!("{layer}.{part}.weight"), &[HIDDEN, HIDDEN]);
            add(format!("{layer}.{part}.bias"), &[HIDDEN]);
        }
        for (part, inputs, outputs) in [("intermediate", HIDDEN, BETWEEN), ("output", BETWEEN, HIDDEN)] {
            add(format!("{layer}.{part}.dense.weight"), &[outputs, inputs]);
            add(format!("{layer}.{part}.dense.bias"), &[outputs]);
        }
        norms.extend(["attention.output", "output"].map(|part| format!("{layer}.{part}.LayerNorm")));
    }
    for norm in norms {
        add(format!("{norm}.weight"), &[HIDDEN]);
        add(format!("{norm}.bias"), &[HIDDEN]);
    }
    tensors
}

fn safetensors(tensors: &Tensors) -> Vec<u8> {
    let (mut header, mut data) = (json!({"__metadata__": {"format": "pt"}}), Vec::new());
    for (name, (shape, numbers)) in tensors {
        let start = data.len();
        data.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        header[name] = json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]});
    }
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
}

fn config() -> Value {
    json!({
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN, "intermediate_size": BETWEEN,
        "num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "max_position_embeddings": POSITIONS,
    })
}

fn files(tensors: &Tensors) -> Files {
    Files {
        config: config().to_string().into_bytes(),
        weights: safetensors(tensors),
        vocabulary: Some(vocabulary().into_bytes()),
        ..Files::default()
    }
}

type Rows = Vec<Vec<f64>>;

/// The same model without any art.
struct Plain(Tensors);

impl Plain {
    fn linear(&self, name: &str, x: &Rows) -> Rows {
        let (weight, bias) = (&self.0[&format!("{name}.weight")].1, &self.0[&format!("{name}.bias")].1);
        let output = |row: &Vec<f64>, at: usize| {
            let weights = &weight[at * row.len()..(at + 1) * row.len()];
            f64::from(bias[at]) + weights.iter().zip(row).map(|(w, x)| f64::from(*w) * x).sum::<f64>()
        };
        x.iter().map(|row| (0..bias.len()).map(|at| output(row, at)).collect()).collect()
    }

    fn norm(&self, name: &str, x: &Rows) -> Rows {
        let (weight, bias) = (&self.0[&format!("{name}.weight")].1, &self.0[&format!("{name}.bias")].1);
        let row = |row: &Vec<f64>| -> Vec<f64> {
            let count = f64::from(u32::try_from(row.len()).unwrap());
            let mean = row.iter().sum::<f64>() / count;
            let deviation = (row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count + 1e-12).sqrt();
            let scaled = row.iter().zip(weight.iter().zip(bias));
            scaled.map(|(x, (w, b))| (x - mean) / deviation * f64::from(*w) + f64::from(*b)).collect()
        };
        x.iter().map(row).collect()
    }

    fn attend(&self, layer: &str, x: &Rows) -> Rows {
        let part = |part: &str| self.linear(&format!("{layer}.attention.self.{part}"), x);
        let (query, key, value) = (part("query"), part("key"), part("value"));
        let width = HIDDEN / HEADS;
        let mut seen = vec![vec![0.0; HIDDEN]; x.len()];
        for (row, query) in query.iter().enumerate() {
            for head in 0..HEADS {
                let columns = head * width..(head + 1) * width;
                let score = |key: &Vec<f64>| {
                    let products = columns.clone().map(|at| query[at] * key[at]);
                    (products.sum::<f64>() / f64::from(u32::try_from(width).unwrap()).sqrt()).exp()
                };
                let scores: Vec<f64> = key.iter().map(score).collect();
                let sum = scores.iter().sum::<f64>();
                for at in columns.clone() {
                    seen[row][at] = scores.iter().zip(&value).map(|(score, value)| score / sum * value[at]).sum();
                }
            }
        }
        seen
    }

    fn encode(&self, ids: &[u16]) -> Vec<f64> {
        let row = |name: &str, at: usize| &self.0[name].1[at * HIDDEN..(at + 1) * HIDDEN];
        let embedded = ids.iter().enumerate().map(|(position, id)| {
            let word = row("embeddings.word_embeddings.weight", usize::from(*id));
            let place = row("embeddings.position_embeddings.weight", position);
            let kind = row("embeddings.token_type_embeddings.weight", 0);
            (0..HIDDEN).map(|at| f64::from(word[at]) + f64::from(place[at]) + f64::from(kind[at])).collect()
        });
        let mut x = self.norm("embeddings.LayerNorm", &embedded.collect());
        for layer in (0..LAYERS).map(|layer| format!("encoder.layer.{layer}")) {
            let seen = self.linear(&format!("{layer}.attention.output.dense"), &self.attend(&layer, &x));
            x = self.norm(&format!("{layer}.attention.output.LayerNorm"), &added(&x, &seen));
            let mut wide = self.linear(&format!("{layer}.intermediate.dense"), &x);
            let gelu = |x: &mut f64| *x *= 0.5 * (1.0 + libm::erf(*x / std::f64::consts::SQRT_2));
            wide.iter_mut().flatten().for_each(gelu);
            let narrow = self.linear(&format!("{layer}.output.dense"), &wide);
            x = self.norm(&format!("{layer}.output.LayerNorm"), &added(&x, &narrow));
        }
        let sum: Vec<f64> = (0..HIDDEN).map(|at| x.iter().map(|row| row[at]).sum()).collect();
        let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
        sum.iter().map(|x| x / length).collect()
    }
}

fn added(x: &Rows, y: &Rows) -> Rows {
    x.iter().zip(y).map(|(x, y)| x.iter().zip(y).map(|(x, y)| x + y).collect()).collect()
}

#[test]
fn a_model_gives_the_vectors_that_its_formulas_give() {
    let tensors = tensors();
    let model = FolderModel::read(&files(&tensors)).unwrap();
    assert_eq!(model.dimensions(), HIDDEN);
    let texts = ["hedgerow stores", "A store.", "", "x", "hedge row hedgerows a a a a a a a a"];
    let vectors = model.embed(&texts).unwrap();
    assert_eq!(vectors[2], None);
    let (vocabulary, plain) = (vocabulary(), Plain(tensors));
    let vocabulary = Vocabulary::new(&vocabulary);
    for (text, vector) in texts.iter().zip(&vectors).filter(|(text, _)| !text.is_empty()) {
        let ids = model.ids(&vocabulary, text).unwrap();
        assert!(ids.len() <= POSITIONS && ids.starts_with(&[101]) && ids.ends_with(&[102]), "{ids:?}");
        for (found, expected) in vector.as_ref().unwrap().iter().zip(plain.encode(&ids)) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{text}: {found} is not {expected}");
        }
    }
}

#[test]
fn a_vocabulary_may_stand_in_the_tokenizer_file() {
    let tensors = tensors();
    let lines = vocabulary();
    // Fillers must differ in an object.
    let named = |(id, token): (usize, &str)| {
        let token = if id < 100 { format!("[unused{id}]") } else { token.to_owned() };
        (token, json!(id))
    };
    let vocab: serde_json::Map<String, Value> = lines.lines().enumerate().map(named).collect();
    let tokenizer = Some(json!({"model": {"vocab": vocab}}).to_string().into_bytes());
    let model = FolderModel::read(&Files { vocabulary: None, tokenizer, ..files(&tensors) }).unwrap();
    let other = FolderModel::read(&files(&tensors)).unwrap();
    assert_eq!(model.embed(&["hedgerow"]).unwrap(), other.embed(&["hedgerow"]).unwrap());
    assert_ne!(model.model(), other.model());
}

#[test]
fn what_does_not_fit_together_is_refused_with_a_reason() {
    let refused = |change: &dyn Fn(&mut Files), part: &str| {
        let mut files = files(&tensors());
        change(&mut files);
        let reason = FolderModel::read(&files).unwrap_err();
        assert!(reason.contains(part), "{reason}");
    };
    let shape = |name: &'static str, value: Value| {
        move |files: &mut Files| {
            let mut config = config();
            config[name] = value.clone();
            files.config = config.to_string().into_bytes();
        }
    };
    refused(&shape("hidden_size", json!(24)), "expected the shape");
    refused(&shape("hidden_size", json!(u64::MAX)), "from 1 to 4096");
    refused(&shape("num_attention_heads", json!(5)), "a multiple");
    refused(&shape("num_hidden_layers", json!(3)), "encoder.layer.2");
    refused(&shape("hidden_act", json!("relu")), "relu");
    refused(&|files| files.pooling = Some(br#"{"pooling_mode_mean_tokens": false}"#.to_vec()), "mean");
    refused(&|files| files.weights.truncate(200), "the length of its header");
    refused(&|files| files.weights.truncate(files.weights.len() - 4), "outside");
    refused(&|files| files.weights[..8].fill(255), "the length of its header");
    refused(&|files| files.weights.clear(), "fewer than 8");
    refused(&|files| files.vocabulary = Some(b"a\nb".to_vec()), "[UNK]");
    refused(&|files| files.vocabulary = None, "neither");
    refused(&|files| files.config = b"[".to_vec(), "config.json");
}

#[test]
fn any_damage_of_the_weights_is_refused_or_gives_other_finite_vectors() {
    let sound = files(&tensors());
    for at in (0..sound.weights.len()).step_by(17) {
        let mut weights = sound.weights.clone();
        weights[at] ^= 0xFF;
        if let Ok(model) = FolderModel::read(&Files { weights, ..files(&tensors()) }) {
            model.embed(&["hedgerow stores."]).unwrap();
        }
    }
}
