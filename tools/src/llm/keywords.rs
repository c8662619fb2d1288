//! Words to search for, beside those of a question.

use serde_json::{Value, json};

use crate::llm::{Chat, Endpoint, Fault};

/// Asks for keywords and names that passages which answer the question may hold; at most eight, each at most 80 characters.
///
/// # Errors
/// [`Fault`].
pub fn keywords(endpoint: &Endpoint, question: &str) -> Result<Vec<String>, Fault> {
    let schema = json!({
        "type": "object",
        "properties": {"keywords": {"type": "array", "items": {"type": "string"}}},
        "required": ["keywords"],
        "additionalProperties": false,
    });
    let chat = Chat {
        system:
            "You help to search a collection of passages by words. Write one JSON object {\"keywords\": [...]} with at \
                 most eight names, terms or synonyms that passages which answer the question may hold and the question \
                 does not. Do not answer the question. Write nothing else."
                .to_owned(),
        examples: vec![(
            "Who repaired the crane in the harbour?".to_owned(),
            r#"{"keywords": ["maintenance", "mended", "mechanic", "port", "hoist"]}"#.to_owned(),
        )],
        user: question.to_owned(),
        schema: Some(schema),
        tokens_max: 300,
    };
    let answer = endpoint.object(&chat, "keywords")?;
    let words = answer.get("keywords").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let words = words.map(|word| word.split_whitespace().collect::<Vec<_>>().join(" "));
    Ok(words.filter(|word| !word.is_empty() && word.chars().count() <= 80).take(8).collect())
}
