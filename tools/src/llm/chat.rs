//! A question to a chat model, in the strictest form that its server takes, and the JSON in what it writes.

use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};

use crate::llm::{Endpoint, Fault};

/// A question to a chat model.
#[derive(Clone, Debug, Default)]
pub struct Chat {
    /// What the model is to do.
    pub system: String,
    /// Questions with the answers that they should have.
    pub examples: Vec<(String, String)>,
    /// The question.
    pub user: String,
    /// The JSON schema of the answer; none for text.
    pub schema: Option<Value>,
    /// Tokens of the answer at most; 0 for as many as the server allows.
    pub tokens_max: u32,
}

/// How a question may be asked, the strictest way first. Some servers know no schema, some nothing of the kind, and some
/// models take neither a temperature nor this limit of tokens.
const FORMS: [Form; 6] = [
    Form { json: Some(Json::Schema), settings: true },
    Form { json: Some(Json::Schema), settings: false },
    Form { json: Some(Json::Object), settings: true },
    Form { json: Some(Json::Object), settings: false },
    Form { json: None, settings: true },
    Form { json: None, settings: false },
];
/// The first form for text.
const TEXT: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Form {
    json: Option<Json>,
    settings: bool,
}

#[derive(Clone, Copy, Debug)]
enum Json {
    Schema,
    Object,
}

/// What a model wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    text: String,
    is_cut: bool,
}

impl Endpoint {
    /// Asks for text.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn text(&self, chat: &Chat) -> Result<String, Fault> {
        let written = self.chat(chat)?;
        let text = without_thoughts(&written.text).trim();
        if text.is_empty() {
            return Err(Fault::Content("it wrote nothing".to_owned()));
        }
        Ok(text.to_owned())
    }

    /// Asks for a JSON object that has the field `expected`. A model that writes something else is asked once more.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn object(&self, chat: &Chat, expected: &str) -> Result<Map<String, Value>, Fault> {
        let mut fault = None;
        for _ in 0..self.limits.attempts.min(2) {
            let written = self.chat(chat)?;
            match object_in(without_thoughts(&written.text), expected) {
                Some(object) => return Ok(object),
                None if written.is_cut => {
                    let tokens = chat.tokens_max;
                    return Err(Fault::Content(format!("the answer was cut off at {tokens} tokens; allow more")));
                }
                None => {
                    let start: String = written.text.chars().filter(|letter| !letter.is_control()).take(60).collect();
                    let expectation = format!("expected a JSON object with {expected:?}, found {start:?}");
                    fault = Some(Fault::Content(expectation));
                }
            }
        }
        Err(fault.unwrap_or(Fault::Interrupted))
    }

    /// Asks in the form that the server took first, and in ever simpler ones where it says that a question is bad.
    fn chat(&self, chat: &Chat) -> Result<Written, Fault> {
        let known = self.form.load(Ordering::Relaxed);
        let start = if chat.schema.is_some() { known } else { known.max(TEXT) };
        let mut first = None;
        for (number, form) in FORMS.iter().enumerate().skip(start) {
            match self.post("/chat/completions", &self.request(chat, *form), written) {
                Ok(written) => {
                    // What a question without a schema took says nothing of those with one; and once a form was taken, a
                    // question that it is refused for is at fault itself, such as by its length.
                    if chat.schema.is_some() && !self.is_settled.swap(true, Ordering::Relaxed) {
                        self.form.store(number, Ordering::Relaxed);
                    }
                    return Ok(written);
                }
                Err(fault) if is_about_form(&fault) => first = first.or(Some(fault)),
                Err(fault) => return Err(fault),
            }
        }
        // The first complaint is about the question itself, if no form of it helps.
        Err(first.unwrap_or(Fault::Interrupted))
    }

    fn request(&self, chat: &Chat, form: Form) -> Value {
        let message = |role: &str, content: &str| json!({"role": role, "content": content});
        let mut messages = vec![message("system", &chat.system)];
        for (user, assistant) in &chat.examples {
            messages.extend([message("user", user), message("assistant", assistant)]);
        }
        messages.push(message("user", &chat.user));
        let mut request = json!({"model": self.model, "messages": messages, "stream": false});
        if form.settings {
            request["temperature"] = json!(0);
        }
        if form.settings && chat.tokens_max > 0 {
            request["max_tokens"] = json!(chat.tokens_max);
        }
        match (form.json, &chat.schema) {
            (Some(Json::Schema), Some(schema)) => {
                let named = json!({"name": "answer", "strict": true, "schema": schema});
                request["response_format"] = json!({"type": "json_schema", "json_schema": named});
            }
            (Some(Json::Object), Some(_)) => request["response_format"] = json!({"type": "json_object"}),
            _ => {}
        }
        request
    }
}

/// Whether another form of the same question may be taken. llama.cpp answers 500 to a schema that it makes no grammar of.
fn is_about_form(fault: &Fault) -> bool {
    match fault {
        Fault::Status { code: 400 | 422 | 501, .. } => true,
        Fault::Status { code: 500, message } => ["grammar", "schema"].iter().any(|word| message.contains(word)),
        _ => false,
    }
}

fn written(answer: &Value) -> Result<Written, Fault> {
    let choice = answer.pointer("/choices/0").ok_or_else(|| Fault::Malformed("it has no \"choices\"".to_owned()))?;
    let is_cut = choice.pointer("/finish_reason").and_then(Value::as_str) == Some("length");
    match choice.pointer("/message/content") {
        Some(Value::String(text)) => Ok(Written { text: text.clone(), is_cut }),
        Some(Value::Null) | None if choice.pointer("/message").is_some() => {
            // A model that refuses says so beside the content.
            let refusal = choice.pointer("/message/refusal").and_then(Value::as_str);
            Ok(Written { text: refusal.unwrap_or_default().to_owned(), is_cut })
        }
        _ => Err(Fault::Malformed("the message of its first choice is no text".to_owned())),
    }
}

/// What stands behind the thoughts that some models write down first.
fn without_thoughts(text: &str) -> &str {
    text.rsplit_once("</think>").map_or(text, |(_, rest)| rest)
}

/// The first JSON object in a text that has a field, whatever stands around it.
fn object_in(text: &str, expected: &str) -> Option<Map<String, Value>> {
    let starts = text.match_indices('{').map(|(at, _)| at).take(OBJECTS_TRIED);
    starts.into_iter().find_map(|start| {
        let rest = text.get(start..)?;
        let value = serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()?.ok()?;
        let Value::Object(object) = value else { return None };
        object.contains_key(expected).then_some(object)
    })
}

const OBJECTS_TRIED: usize = 64;

#[cfg(test)]
mod tests {
    use crate::llm::chat::{object_in, without_thoughts};

    #[test]
    fn an_object_is_found_whatever_stands_around_it() {
        for text in [
            r#"{"triples": []}"#,
            "Sure! Here it is:\n```json\n{\"triples\": []}\n```\nAnything else?",
            r#"{"note": {"a": 1}} {"triples": []} {"triples": [1]}"#,
            r#"<think>{"triples": [2]}</think> {"triples": []}"#,
        ] {
            let found = object_in(without_thoughts(text), "triples").unwrap();
            assert_eq!(found["triples"], serde_json::json!([]), "{text}");
        }
        let deep = "{\"triples\":".repeat(100_000);
        for text in ["", "{", "{\"triples\": [", "[1]", deep.as_str()] {
            assert_eq!(object_in(text, "triples"), None);
        }
    }
}
