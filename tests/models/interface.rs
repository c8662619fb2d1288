//! What the interface of `OpenAI` lets a request hold, strictly: its published schema, and the stricter rules for answers of
//! a JSON schema.

use serde_json::{Map, Value};

/// What is wrong with a request.
pub fn faults(path: &str, body: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(body) = body.as_object() else { return vec!["the request is no object".into()] };
    match path {
        "/v1/chat/completions" => chat(body, &mut faults),
        "/v1/embeddings" => embeddings(body, &mut faults),
        _ => faults.push(format!("there is no {path}")),
    }
    faults
}

/// Notes fields that are not there or not known.
fn fields(of: &str, found: &Map<String, Value>, needed: &[&str], known: &[&str], faults: &mut Vec<String>) {
    faults.extend(needed.iter().filter(|name| !found.contains_key(**name)).map(|name| format!("{of} lacks {name}")));
    let odd = found.keys().filter(|name| !needed.contains(&name.as_str()) && !known.contains(&name.as_str()));
    faults.extend(odd.map(|name| format!("{of} has the field {name}")));
}

fn chat(body: &Map<String, Value>, faults: &mut Vec<String>) {
    let known = ["stream", "temperature", "max_tokens", "response_format"];
    fields("a chat", body, &["model", "messages"], &known, faults);
    let mut require = |holds: bool, what: &str| {
        if !holds {
            faults.push(what.to_owned());
        }
    };
    require(body["model"].as_str().is_some_and(|model| !model.is_empty()), "model is a name");
    require(body.get("stream").is_none_or(|stream| *stream == false), "stream is false");
    let temperature = body.get("temperature").map(Value::as_f64);
    require(temperature.is_none_or(|value| value.is_some_and(|value| (0.0..=2.0).contains(&value))), "temperature");
    let tokens = body.get("max_tokens").map(Value::as_u64);
    require(tokens.is_none_or(|tokens| tokens.is_some_and(|tokens| tokens > 0)), "max_tokens is positive");
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let roles: Vec<&str> = messages.iter().filter_map(|message| message["role"].as_str()).collect();
    let turns = roles.get(1..).unwrap_or_default();
    require(roles.len() == messages.len() && roles.first() == Some(&"system"), "the first message is the system's");
    // Templates of models refuse anything but turns.
    let taken = turns.iter().enumerate().all(|(turn, role)| *role == ["user", "assistant"][turn % 2]);
    require(taken && turns.len() % 2 == 1, "user and assistant take turns, and the user is last");
    for message in &messages {
        let whole = message.as_object().is_some_and(|message| message.len() == 2);
        require(whole && message["content"].is_string(), "a message is a role and a text");
    }
    if let Some(format) = body.get("response_format") {
        let says_json =
            messages.iter().any(|message| message["content"].as_str().is_some_and(|it| it.contains("JSON")));
        format_of(format, says_json, faults);
    }
}

fn format_of(format: &Value, says_json: bool, faults: &mut Vec<String>) {
    let empty = Map::new();
    let object = format.as_object().unwrap_or(&empty);
    match format["type"].as_str() {
        // The interface refuses it where no message speaks of JSON.
        Some("json_object") if says_json => fields("a format", object, &["type"], &[], faults),
        Some("json_schema") => {
            fields("a format", object, &["type", "json_schema"], &[], faults);
            let named = format["json_schema"].as_object().unwrap_or(&empty);
            fields("a schema's frame", named, &["name", "strict", "schema"], &["description"], faults);
            let name = format["json_schema"]["name"].as_str().unwrap_or_default();
            let letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
            if !(1..=64).contains(&name.len()) || !name.chars().all(letter) {
                faults.push(format!("{name:?} is no name of a schema"));
            }
            schema(&format["json_schema"]["schema"], 0, faults);
            if format["json_schema"]["schema"]["type"] != "object" {
                faults.push("the root of a schema is an object".into());
            }
        }
        other => faults.push(format!("{other:?} is no format, or no message speaks of JSON")),
    }
}

/// With `strict`, every object names all its fields as required and lets no others in, and few keywords are known.
fn schema(found: &Value, depth: usize, faults: &mut Vec<String>) {
    let empty = Map::new();
    let object = found.as_object().unwrap_or(&empty);
    match found["type"].as_str().filter(|_| depth <= 5) {
        Some("string") => {
            fields("a string", object, &["type"], &["enum", "description"], faults);
            if found
                .get("enum")
                .is_some_and(|names| names.as_array().is_none_or(|names| !(1..=500).contains(&names.len())))
            {
                faults.push("an enum has 1 to 500 names".into());
            }
        }
        Some("array") => {
            fields("a list", object, &["type", "items"], &["description"], faults);
            schema(&found["items"], depth + 1, faults);
        }
        Some("object") => {
            let needed = ["type", "properties", "required", "additionalProperties"];
            fields("an object", object, &needed, &["description"], faults);
            let properties = found["properties"].as_object().unwrap_or(&empty);
            let mut required: Vec<&str> =
                found["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            required.sort_unstable();
            if properties.keys().map(String::as_str).ne(required) || found["additionalProperties"] != false {
                faults.push("all fields are required and no others allowed".into());
            }
            properties.values().for_each(|property| schema(property, depth + 1, faults));
        }
        other => faults.push(format!("{other:?} is no type, or stands too deep")),
    }
}

fn embeddings(body: &Map<String, Value>, faults: &mut Vec<String>) {
    fields("a request for vectors", body, &["model", "input"], &["encoding_format"], faults);
    let texts = body["input"].as_array().cloned().unwrap_or_default();
    let spoken = texts.iter().all(|text| text.as_str().is_some_and(|text| !text.is_empty()));
    if !(1..=2048).contains(&texts.len()) || !spoken {
        faults.push("input is 1 to 2,048 texts, none of them empty".into());
    }
    if body.get("encoding_format").is_some_and(|format| *format != "float") {
        faults.push("vectors are asked for as numbers".into());
    }
}

#[test]
fn what_is_not_of_the_interface_is_seen() {
    let sound = serde_json::json!({
        "model": "m", "stream": false, "temperature": 0, "max_tokens": 10,
        "messages": [{"role": "system", "content": "Write JSON."}, {"role": "user", "content": "x"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": {
            "type": "object", "required": ["a"], "additionalProperties": false, "properties": {"a": {"type": "string"}},
        }}},
    });
    assert_eq!(faults("/v1/chat/completions", &sound), Vec::<String>::new());
    for (place, wrong) in [
        ("/seed2", serde_json::json!(1)),
        ("/max_tokens", serde_json::json!(0)),
        ("/messages/1/role", serde_json::json!("assistant")),
        ("/messages/0/name", serde_json::json!("x")),
        ("/response_format/type", serde_json::json!("json")),
        ("/response_format/json_schema/name", serde_json::json!("an answer")),
        ("/response_format/json_schema/schema/required", serde_json::json!([])),
        ("/response_format/json_schema/schema/properties/a/minLength", serde_json::json!(1)),
    ] {
        let mut body = sound.clone();
        let (parent, name) = place.rsplit_once('/').expect("it is a place");
        body.pointer_mut(parent).expect("it is there")[name] = wrong;
        assert!(!faults("/v1/chat/completions", &body).is_empty(), "{place}");
    }
    for wrong in [serde_json::json!([""]), serde_json::json!([]), serde_json::json!("x")] {
        let body = serde_json::json!({"model": "m", "input": wrong});
        assert!(!faults("/v1/embeddings", &body).is_empty(), "{body}");
    }
}
