//! Models behind a URL: an endpoint of the kind that `OpenAI` made common, with retries, limits and a count of tokens.

pub mod answer;
mod chat;
mod embedder;
pub mod extraction;
mod fault;
mod http;
mod keywords;
mod names;
mod ontology;
mod report;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use serde::Serialize;

pub use crate::llm::chat::Chat;
pub use crate::llm::embedder::RemoteEmbedder;
pub use crate::llm::fault::Fault;
pub use crate::llm::keywords::keywords;
pub use crate::llm::ontology::Ontology;
pub use crate::llm::report::Reporter;

/// Bounds of calls to a model.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How often a call is tried.
    pub attempts: u32,
    /// Time that each attempt has.
    pub deadline: Duration,
    /// First wait before another attempt; doubled each time, up to 30 s. A server may name its own.
    pub backoff: Duration,
    /// Longest wait that a server may ask for.
    pub wait_max: Duration,
    /// Bytes of an answer.
    pub answer_bytes_max: u64,
    /// Calls at the same time.
    pub concurrency: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            attempts: 4,
            deadline: Duration::from_mins(2),
            backoff: Duration::from_millis(500),
            wait_max: Duration::from_mins(2),
            answer_bytes_max: 64 << 20,
            concurrency: 4,
        }
    }
}

/// A model behind a URL.
///
/// The key is sent as a bearer token and appears nowhere else: not in errors, not in `Debug`, not in a store.
pub struct Endpoint {
    base: String,
    model: String,
    key: Option<String>,
    limits: Limits,
    agent: ureq::Agent,
    stop: fn() -> bool,
    counters: Counters,
    /// The form of question that is tried first, and whether the server took it: see `chat`.
    form: AtomicUsize,
    is_settled: AtomicBool,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Endpoint { base, model, limits, .. } = self;
        f.debug_struct("Endpoint").field("base", base).field("model", model).field("limits", limits).finish()
    }
}

#[derive(Debug, Default)]
struct Counters {
    requests: AtomicU64,
    retries: AtomicU64,
    prompt: AtomicU64,
    completion: AtomicU64,
}

/// What calls took until now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Requests that were sent, repeated ones included.
    pub requests: u64,
    /// Those that were sent again.
    pub retries: u64,
    /// Tokens that were read, as the server counts them; 0 where it does not.
    pub prompt_tokens: u64,
    /// Tokens that were written, likewise.
    pub completion_tokens: u64,
}

impl Endpoint {
    /// An endpoint. A URL without a path gets `/v1`; one with a path is taken as it is. `stop` is asked before each attempt
    /// and while one is waited for. Nothing is sent yet.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the URL, the model or the key.
    pub fn new(
        url: &str,
        model: &str,
        key: Option<String>,
        limits: Limits,
        stop: fn() -> bool,
    ) -> Result<Self, String> {
        let base = base(url)?;
        if model.is_empty() || model.len() > MODEL_BYTES_MAX || model.chars().any(char::is_control) {
            return Err(format!("the name of a model must have 1 to {MODEL_BYTES_MAX} bytes, and is {model:?}"));
        }
        let key = key.filter(|key| !key.is_empty());
        if key.as_ref().is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err("the key for the model must be of printable ASCII characters without spaces".to_owned());
        }
        let agent = http::agent(&base, &limits);
        let (counters, form, is_settled) = (Counters::default(), AtomicUsize::new(0), AtomicBool::new(false));
        Ok(Endpoint { base, model: model.to_owned(), key, limits, agent, stop, counters, form, is_settled })
    }

    /// Name of the model.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Bounds of its calls.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What all calls took until now.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let Counters { requests, retries, prompt, completion } = &self.counters;
        let [requests, retries, prompt_tokens, completion_tokens] =
            [requests, retries, prompt, completion].map(|counter| counter.load(Ordering::Relaxed));
        Usage { requests, retries, prompt_tokens, completion_tokens }
    }
}

const MODEL_BYTES_MAX: usize = 256;

/// What paths such as `/embeddings` are appended to.
fn base(url: &str) -> Result<String, String> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", ""));
    let is_known = matches!(scheme, "http" | "https");
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !is_known || host.is_empty() || url.bytes().any(|byte| byte <= b' ' || matches!(byte, b'?' | b'#' | 127..)) {
        return Err("expected a URL such as http://localhost:11434 or https://host/v1".to_owned());
    }
    if host.contains('@') {
        return Err(
            "a URL must not hold a password: give a key in the environment variable HEDGEROW_LLM_KEY".to_owned()
        );
    }
    if scheme == "https" && !cfg!(feature = "tls") {
        return Err(
            "this program was built without TLS: build it with `--features tls`, or give an http:// URL".to_owned()
        );
    }
    let path = path.trim_end_matches('/');
    Ok(format!("{scheme}://{host}/{}", if path.is_empty() { "v1" } else { path }))
}

#[cfg(test)]
mod tests {
    use crate::llm::{Endpoint, Limits, base};

    #[test]
    fn a_url_without_a_path_gets_the_usual_one() {
        for (url, expected) in [
            ("http://localhost:11434", "http://localhost:11434/v1"),
            ("http://localhost:11434/", "http://localhost:11434/v1"),
            ("http://h/v1/", "http://h/v1"),
            ("http://[::1]:80/api/openai", "http://[::1]:80/api/openai"),
        ] {
            assert_eq!(base(url).as_deref(), Ok(expected));
        }
        for url in ["localhost", "ftp://h", "http://", "http:///v1", "http://h?x", "http://u:p@h", "http://h/ a", ""] {
            assert!(base(url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_key_is_never_shown() {
        let new = |key: &str| Endpoint::new("http://h", "m", Some(key.to_owned()), Limits::default(), || false);
        assert!(!format!("{:?}", new("secret").unwrap()).contains("secret"));
        let error = new("secret\r\nX: y").unwrap_err();
        assert!(!error.contains("secret"), "{error}");
    }
}
