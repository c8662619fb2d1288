//! One call over HTTP: attempts, waits, and what an answer may be.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::http::{HeaderMap, Response};
use ureq::{Agent, Body};

use crate::llm::{Endpoint, Fault, Limits};

/// Longest wait between attempts that a server has not asked for.
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// How often a wait looks whether it should end.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes of a server's complaint that are read, and characters of it that are told.
const COMPLAINT_BYTES: u64 = 64 << 10;
const COMPLAINT_CHARS: usize = 300;

/// What keeps connections. It follows no redirect, which would take the question to another place, and asks no proxy for a
/// server on this machine.
pub(super) fn agent(base: &str, limits: &Limits) -> Agent {
    let mut config = Agent::config_builder()
        .timeout_global(Some(limits.deadline))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(limits.concurrency)
        .max_idle_connections_per_host(limits.concurrency)
        .user_agent(concat!("hedgerow/", env!("CARGO_PKG_VERSION")));
    if is_here(base) {
        config = config.proxy(None);
    }
    config.build().new_agent()
}

fn is_here(base: &str) -> bool {
    let host = base.split_once("://").map_or("", |(_, rest)| rest);
    ["localhost", "127.", "[::1]"].iter().any(|here| host.starts_with(here))
}

impl Endpoint {
    /// Sends JSON and reads the JSON that comes back, again where that may help.
    ///
    /// # Errors
    /// The [`Fault`] of the last attempt.
    pub(super) fn post<T>(
        &self,
        path: &str,
        body: &Value,
        read: impl Fn(&Value) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let body = body.to_string();
        let mut attempt = 1;
        loop {
            if (self.stop)() {
                return Err(Fault::Interrupted);
            }
            let (fault, asked) = match self.attempt(path, &body) {
                Ok(answer) => match read(&answer) {
                    Ok(read) => {
                        self.count(&answer);
                        return Ok(read);
                    }
                    Err(fault) => (fault, None),
                },
                Err(failed) => failed,
            };
            if attempt >= self.limits.attempts || !fault.is_transient() {
                return Err(fault);
            }
            let doubled = self.limits.backoff.saturating_mul(1 << (attempt - 1).min(16));
            let wait = asked.unwrap_or(doubled.min(BACKOFF_MAX));
            if let Fault::Status { code, .. } = fault
                && wait > self.limits.wait_max
            {
                return Err(Fault::Wait { code, seconds: wait.as_secs() });
            }
            self.wait(wait)?;
            self.counters.retries.fetch_add(1, Ordering::Relaxed);
            attempt += 1;
        }
    }

    /// One attempt; with the wait that the server asks for.
    fn attempt(&self, path: &str, body: &str) -> Result<Value, (Fault, Option<Duration>)> {
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        let url = format!("{}{path}", self.base);
        let mut request = self.agent.post(&url).header("content-type", "application/json");
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let mut response = request.send(body).map_err(|error| (self.fault(&url, error), None))?;
        let code = response.status().as_u16();
        if code != 200 {
            let asked = retry_after(response.headers());
            return Err((Fault::Status { code, message: self.complaint(&mut response) }, asked));
        }
        let bytes = response.body_mut().with_config().limit(self.limits.answer_bytes_max).read_to_vec();
        let bytes = bytes.map_err(|error| (self.fault(&url, error), None))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| (Fault::Malformed(format!("expected JSON of the interface, found {error}")), None))
    }

    fn fault(&self, url: &str, error: ureq::Error) -> Fault {
        match error {
            ureq::Error::Timeout(_) => Fault::Timeout { seconds: self.limits.deadline.as_secs() },
            ureq::Error::BodyExceedsLimit(bytes) => Fault::TooLarge { bytes },
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
                Fault::Timeout { seconds: self.limits.deadline.as_secs() }
            }
            ureq::Error::Io(error) if error.kind() != io::ErrorKind::ConnectionRefused => {
                Fault::BrokenOff(error.to_string())
            }
            ureq::Error::Protocol(error) => Fault::BrokenOff(error.to_string()),
            other => Fault::Unreachable { url: url.to_owned(), reason: other.to_string() },
        }
    }

    /// What a server says of its refusal, without the key if it repeats that.
    fn complaint(&self, response: &mut Response<Body>) -> String {
        let read = response.body_mut().with_config().limit(COMPLAINT_BYTES).read_to_vec().unwrap_or_default();
        let text = String::from_utf8_lossy(&read);
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let said = ["/error/message", "/error", "/message", "/detail"];
        let said = said.iter().find_map(|place| value.pointer(place).and_then(Value::as_str));
        let mut said = said.unwrap_or(&text).split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(key) = &self.key {
            said = said.replace(key.as_str(), "…");
        }
        if said.is_empty() {
            return "nothing more".to_owned();
        }
        said.chars().filter(|letter| !letter.is_control()).take(COMPLAINT_CHARS).collect()
    }

    fn wait(&self, wait: Duration) -> Result<(), Fault> {
        let start = Instant::now();
        while let Some(rest) = wait.checked_sub(start.elapsed()).filter(|rest| !rest.is_zero()) {
            if (self.stop)() {
                return Err(Fault::Interrupted);
            }
            thread::sleep(rest.min(LOOK));
        }
        Ok(())
    }

    fn count(&self, answer: &Value) {
        let tokens = |name: &str| answer.pointer(name).and_then(Value::as_u64).unwrap_or(0);
        self.counters.prompt.fetch_add(tokens("/usage/prompt_tokens"), Ordering::Relaxed);
        self.counters.completion.fetch_add(tokens("/usage/completion_tokens"), Ordering::Relaxed);
    }
}

/// The wait that a server asks for, in seconds; a date is passed over, as that would need two clocks that agree.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get("retry-after")?.to_str().ok()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
