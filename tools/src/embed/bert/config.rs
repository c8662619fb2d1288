//! The files of a model's folder, and what they say of its shape.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use serde_json::Value;

/// The files of a folder, in memory.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub config: Vec<u8>,
    pub weights: Vec<u8>,
    pub vocabulary: Option<Vec<u8>>,
    pub tokenizer: Option<Vec<u8>>,
    pub sentences: Option<Vec<u8>>,
    pub pooling: Option<Vec<u8>>,
}

/// Bytes of the weights, and of any other file.
const WEIGHTS_MAX: u64 = 2 << 30;
const OTHER_MAX: u64 = 64 << 20;

impl Files {
    /// Reads what is there.
    pub fn read(folder: &Path) -> Result<Files, String> {
        let needed = |name: &str, most| read(folder, name, most)?.ok_or_else(|| format!("{name} is not there"));
        let vocabulary = read(folder, "vocab.txt", OTHER_MAX)?;
        Ok(Files {
            config: needed("config.json", OTHER_MAX)?,
            weights: needed("model.safetensors", WEIGHTS_MAX)?,
            tokenizer: if vocabulary.is_some() { None } else { read(folder, "tokenizer.json", OTHER_MAX)? },
            vocabulary,
            sentences: read(folder, "sentence_bert_config.json", OTHER_MAX)?,
            pooling: read(folder, "1_Pooling/config.json", OTHER_MAX)?,
        })
    }
}

/// A file; none where there is none.
fn read(folder: &Path, name: &str, most: u64) -> Result<Option<Vec<u8>>, String> {
    let fault = |error: std::io::Error| format!("{name} cannot be read: {error}");
    let file = match File::open(folder.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(fault)?,
    };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(fault)?;
    if bytes.len() as u64 > most { Err(format!("{name} has more than {most} bytes")) } else { Ok(Some(bytes)) }
}

/// The shape of a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Config {
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    pub between: usize,
    pub positions: usize,
    pub epsilon: f32,
    pub tokens_max: usize,
}

/// Reads the shape, and refuses what the encoder does not compute.
pub(super) fn config(files: &Files) -> Result<Config, String> {
    let shape = json("config.json", &files.config)?;
    let number = |name: &str, most: u64| {
        let found = shape.get(name).and_then(Value::as_u64).filter(|number| (1..=most).contains(number));
        let found = found.and_then(|number| usize::try_from(number).ok());
        found.ok_or_else(|| format!("config.json: {name:?} must be a number from 1 to {most}"))
    };
    let (hidden, heads) = (number("hidden_size", 4096)?, number("num_attention_heads", 256)?);
    if !hidden.is_multiple_of(heads) {
        return Err("config.json: \"hidden_size\" must be a multiple of \"num_attention_heads\"".to_owned());
    }
    let expected = [("hidden_act", "gelu"), ("position_embedding_type", "absolute"), ("model_type", "bert")];
    for (name, known) in expected {
        match shape.get(name).and_then(Value::as_str) {
            Some(found) if found != known => return Err(format!("config.json: {name:?} is {found:?}, not {known:?}")),
            _ => {}
        }
    }
    if let Some(pooling) = &files.pooling
        && json("1_Pooling/config.json", pooling)?.get("pooling_mode_mean_tokens") == Some(&Value::Bool(false))
    {
        return Err("1_Pooling/config.json: only the mean of the tokens is computed".to_owned());
    }
    let positions = number("max_position_embeddings", 1 << 16)?;
    let sentences = files.sentences.as_ref().map(|bytes| json("sentence_bert_config.json", bytes)).transpose()?;
    let named = sentences.as_ref().and_then(|value| value.get("max_seq_length")).and_then(Value::as_u64);
    let tokens_max = named.and_then(|tokens| usize::try_from(tokens).ok()).unwrap_or(TOKENS_MAX).min(positions);
    if tokens_max < 3 {
        return Err("a text may have fewer than 3 tokens".to_owned());
    }
    #[expect(clippy::cast_possible_truncation, reason = "a small constant, which the layers take as f32")]
    let epsilon = shape.get("layer_norm_eps").and_then(Value::as_f64).unwrap_or(1e-12) as f32;
    let (layers, between) = (number("num_hidden_layers", 64)?, number("intermediate_size", 1 << 15)?);
    Ok(Config { hidden, layers, heads, between, positions, epsilon, tokens_max })
}

const TOKENS_MAX: usize = 256;

/// The vocabulary as lines, with the tokens of the family where they always stand.
pub(super) fn vocabulary(files: &Files) -> Result<String, String> {
    let text = match (&files.vocabulary, &files.tokenizer) {
        (Some(lines), _) => String::from_utf8(lines.clone()).map_err(|_| "vocab.txt is not UTF-8".to_owned())?,
        (None, Some(tokenizer)) => lines_of(&json("tokenizer.json", tokenizer)?)?,
        (None, None) => return Err("neither vocab.txt nor tokenizer.json is there".to_owned()),
    };
    for (line, token) in [(100, "[UNK]"), (101, "[CLS]"), (102, "[SEP]")] {
        if text.lines().nth(line) != Some(token) {
            return Err(format!("its vocabulary must have {token} as token {line}, as that of uncased BERT"));
        }
    }
    if text.lines().count() >= usize::from(u16::MAX) {
        return Err(format!("its vocabulary must have fewer than {} tokens", u16::MAX));
    }
    Ok(text)
}

fn lines_of(tokenizer: &Value) -> Result<String, String> {
    let known = tokenizer.pointer("/model/vocab").and_then(Value::as_object);
    let known = known.ok_or("tokenizer.json: it has no \"model\" with a \"vocab\"")?;
    let mut tokens: Vec<(u64, &str)> =
        known.iter().filter_map(|(token, id)| Some((id.as_u64()?, token.as_str()))).collect();
    tokens.sort_unstable();
    if tokens.iter().zip(0..).any(|((id, _), expected)| *id != expected) || tokens.len() != known.len() {
        return Err("tokenizer.json: the ids of its tokens must be 0, 1, 2 …".to_owned());
    }
    Ok(tokens.iter().flat_map(|(_, token)| [*token, "\n"]).collect())
}

fn json(name: &str, bytes: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("{name} is no JSON: {error}"))
}
