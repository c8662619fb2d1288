//! Answers in the words of servers that people run: Ollama, llama.cpp, vLLM, `OpenAI`; as their documents and sources have them.

use crate::models::stub::{Reply, Stub};
use hedgerow::Embed;
use hedgerow_cli::llm::extraction::{Extractor, Passage};
use hedgerow_cli::llm::{Chat, Endpoint, Fault, Limits, Ontology, RemoteEmbedder, Usage, keywords};
use serde_json::{Value, json};
use std::time::Duration;

fn endpoint(stub: &Stub) -> Endpoint {
    let limits = Limits { attempts: 2, backoff: Duration::from_millis(1), ..Limits::default() };
    Endpoint::new(&stub.url(), "m", None, limits, || false).expect("the URL is sound")
}

const FOUND: &str = r#"{"entities":[],"triples":[{"subject":"Ada","predicate":"wrote","object":"Notes"}]}"#;

/// Good answers with all that each server adds or leaves out.
fn chats() -> Vec<(&'static str, Value)> {
    let usage = json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10});
    vec![
        (
            "OpenAI",
            json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "service_tier": "default",
                "choices": [{"index": 0, "logprobs": null, "finish_reason": "stop", "message": {
                    "role": "assistant", "content": FOUND, "refusal": null, "annotations": [],
                }}],
                "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10,
                    "completion_tokens_details": {"reasoning_tokens": 0}},
                "system_fingerprint": "fp_1",
            }),
        ),
        (
            "Ollama, with thoughts of its own field",
            json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "system_fingerprint": "fp_ollama",
                "choices": [{"index": 0, "finish_reason": "stop", "message": {
                    "role": "assistant", "content": FOUND, "reasoning": "{\"triples\": []}",
                }}],
                "usage": usage,
            }),
        ),
        (
            "llama.cpp",
            json!({
                "choices": [{"finish_reason": "stop", "index": 0, "message": {
                    "role": "assistant", "reasoning_content": "hm", "content": FOUND,
                }}],
                "created": 1, "model": "m", "object": "chat.completion", "usage": usage, "id": "chatcmpl-1",
                "timings": {"prompt_n": 7, "prompt_ms": 1.5, "predicted_n": 3},
            }),
        ),
        (
            "vLLM",
            json!({
                "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "prompt_logprobs": null,
                "choices": [{"index": 0, "logprobs": null, "finish_reason": "stop", "stop_reason": null, "message": {
                    "role": "assistant", "content": format!("<think>\nhm {{\n</think>\n\n{FOUND}"), "tool_calls": [],
                    "reasoning_content": null,
                }}],
                "usage": {"prompt_tokens": 7, "total_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": null},
            }),
        ),
    ]
}

#[test]
fn what_each_server_adds_to_an_answer_does_no_harm() {
    for (server, answer) in chats() {
        for has_usage in [true, false] {
            let mut answer = answer.clone();
            if !has_usage {
                answer.as_object_mut().expect("it is an object").remove("usage");
            }
            let stub = Stub::new(move |_, _| Reply::Json(answer.clone()));
            let extractor = Extractor::new(endpoint(&stub), Ontology::default());
            let found = extractor.read(&Passage { text: "Ada wrote the Notes.", ..Passage::default() });
            assert_eq!(found.map(|found| found.relations.len()), Ok(1), "{server}");
            let (prompt_tokens, completion_tokens) = if has_usage { (7, 3) } else { (0, 0) };
            let expected = Usage { requests: 1, retries: 0, prompt_tokens, completion_tokens };
            assert_eq!(extractor.endpoint().usage(), expected, "{server}");
        }
    }
}

/// A refusal, and what is told of it.
type Refusal = (&'static str, u16, Value, &'static str);

#[test]
fn what_each_server_says_of_a_refusal_is_told() {
    let cases: [Refusal; 6] = [
        (
            "OpenAI",
            401,
            json!({"error": {"message": "Incorrect API key provided", "type": "invalid_request_error", "param": null,
                "code": "invalid_api_key"}}),
            "Incorrect API key",
        ),
        (
            "Ollama",
            404,
            json!({"error": {"message": "model \"m\" not found, try pulling it first", "type": "api_error", "param": null,
                "code": null}}),
            "try pulling it first",
        ),
        ("Ollama, its own interface", 404, json!({"error": "model 'm' not found"}), "model 'm' not found"),
        (
            "llama.cpp",
            503,
            json!({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}),
            "Loading model",
        ),
        (
            "vLLM",
            404,
            json!({"object": "error", "message": "The model `m` does not exist.", "type": "NotFoundError", "param": null,
                "code": 404}),
            "does not exist",
        ),
        ("FastAPI", 404, json!({"detail": "Not Found"}), "Not Found"),
    ];
    for (server, code, body, expected) in cases {
        let stub = Stub::new(move |_, _| Reply::Status(code, "", body.to_string()));
        let fault = endpoint(&stub).text(&Chat::default()).expect_err("it was refused");
        assert!(fault.to_string().contains(expected), "{server}: {fault}");
        assert_eq!(stub.seen().len(), if code == 503 { 2 } else { 1 }, "{server}");
    }
}

#[test]
fn a_server_that_refuses_a_form_is_asked_in_another_one() {
    let cases: [Refusal; 5] = [
        (
            "OpenAI, models that think",
            400,
            json!({"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                'max_completion_tokens' instead.", "type": "invalid_request_error", "param": "max_tokens",
                "code": "unsupported_parameter"}}),
            "max_tokens",
        ),
        (
            "llama.cpp, a schema that it makes no grammar of",
            500,
            json!({"error": {"code": 500, "message": "Failed to parse grammar", "type": "server_error"}}),
            "json_schema",
        ),
        (
            "vLLM, without a backend for schemas",
            400,
            json!({"object": "error", "message": "response_format is not supported", "type": "BadRequestError",
                "param": null, "code": 400}),
            "json_schema",
        ),
        (
            "servers of strict fields",
            422,
            json!({"detail": [{"type": "literal_error", "loc": ["body", "response_format", "type"]}]}),
            "json_schema",
        ),
        ("LM Studio", 400, json!({"error": "'response_format.type' must be 'json_schema' or 'text'"}), "json_object"),
    ];
    for (server, code, body, unknown) in cases {
        let stub = Stub::new(move |seen, _| {
            let is_unknown = seen.body.get(unknown).is_some() || seen.body["response_format"]["type"] == unknown;
            let is_short = seen.body["response_format"]["type"] == "json_schema" && unknown == "json_object";
            if is_unknown || is_short {
                return Reply::Status(code, "", body.to_string());
            }
            Reply::Json(json!({"choices": [{"message": {"role": "assistant", "content": "{\"keywords\": [\"x\"]}"}}]}))
        });
        assert_eq!(keywords(&endpoint(&stub), "Who?"), Ok(vec!["x".to_owned()]), "{server}");
        let seen = stub.seen();
        let last = &seen.last().expect("it was asked").body;
        // As strictly as it goes: who knows no limit of tokens may well know a schema.
        let expected = match unknown {
            "max_tokens" => "json_schema",
            "json_schema" => "json_object",
            _ => "",
        };
        assert_eq!(last["response_format"]["type"].as_str().unwrap_or_default(), expected, "{server}");
    }
}

#[test]
fn a_refusal_of_the_model_itself_is_content_and_no_schema_helps() {
    let answer = json!({"choices": [{"index": 0, "finish_reason": "stop", "message": {
        "role": "assistant", "content": null, "refusal": "I cannot help with that.",
    }}]});
    let stub = Stub::new(move |_, _| Reply::Json(answer.clone()));
    let fault = keywords(&endpoint(&stub), "Who?").expect_err("nothing was said");
    assert!(matches!(fault, Fault::Content(_)), "{fault:?}");
    assert!(fault.to_string().contains("I cannot help"), "{fault}");
}

#[test]
fn vectors_come_as_each_server_sends_them() {
    let entry = |index: usize| json!({"object": "embedding", "index": index, "embedding": [0.5, -0.25]});
    let usage = json!({"prompt_tokens": 4, "total_tokens": 4});
    for (server, answer) in [
        ("OpenAI, vLLM", json!({"object": "list", "data": [entry(0)], "model": "m", "usage": usage})),
        ("Ollama", json!({"object": "list", "data": [entry(0)], "model": "m", "usage": {"prompt_tokens": 0}})),
        ("llama.cpp", json!({"model": "m", "object": "list", "usage": usage, "data": [entry(0)]})),
        ("one without places and counts", json!({"data": [{"embedding": [0.5, -0.25]}]})),
    ] {
        let stub = Stub::new(move |_, _| Reply::Json(answer.clone()));
        let embedder = RemoteEmbedder::connect(endpoint(&stub)).unwrap_or_else(|fault| panic!("{server}: {fault}"));
        assert_eq!(embedder.embed(&["one"]).map_err(|error| error.to_string()), Ok(vec![Some(vec![0.5, -0.25])]));
    }
    let refusal = json!({"error": {"code": 501, "type": "not_supported_error",
        "message": "This server does not support embeddings. Start it with `--embeddings`"}});
    let stub = Stub::new(move |_, _| Reply::Status(501, "", refusal.to_string()));
    let fault = RemoteEmbedder::connect(endpoint(&stub)).expect_err("it was refused");
    assert!(fault.to_string().contains("--embeddings"), "{fault}");
}
