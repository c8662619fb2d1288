//! An embedder behind a URL: texts in batches, several calls at once.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::scope;

use hedgerow::{Embed, ModelError};
use serde_json::{Value, json};

use crate::llm::{Endpoint, Fault};

/// Texts of one call.
const TEXTS_MAX: usize = 64;

/// Embeds with a model behind a URL, by `/embeddings`.
///
/// Its vector space has the name of the model. The server must give a text the same vector always.
#[derive(Debug)]
pub struct RemoteEmbedder {
    endpoint: Endpoint,
    dimensions: usize,
    free: Mutex<usize>,
    freed: Condvar,
}

impl RemoteEmbedder {
    /// Asks the model for one vector, to learn how many components it has.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn connect(endpoint: Endpoint) -> Result<Self, Fault> {
        let vector = embedded(&endpoint, &["dimensions"])?.into_iter().next();
        let (dimensions, free) = (vector.map_or(0, |vector| vector.len()), endpoint.limits().concurrency.max(1));
        Ok(RemoteEmbedder { endpoint, dimensions, free: Mutex::new(free), freed: Condvar::new() })
    }

    /// What its calls took until now.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn call(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while *free == 0 {
            free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= 1;
        drop(free);
        let vectors = embedded(&self.endpoint, texts);
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.freed.notify_one();
        let vectors = vectors?;
        match vectors.iter().find(|vector| vector.len() != self.dimensions) {
            Some(other) => {
                let (expected, found) = (self.dimensions, other.len());
                Err(Fault::Malformed(format!("expected vectors of {expected} components, found one of {found}")))
            }
            None => Ok(vectors),
        }
    }
}

impl Embed for RemoteEmbedder {
    fn space(&self) -> &str {
        self.endpoint.model()
    }

    fn model(&self) -> &str {
        self.endpoint.model()
    }

    fn dimensions(&self) -> usize {
        self.dimensions
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Option<Vec<f32>>>, ModelError> {
        let spoken: Vec<&str> = texts.iter().copied().filter(|text| !text.trim().is_empty()).collect();
        let called: Vec<Result<Vec<Vec<f32>>, Fault>> = scope(|threads| {
            let calls = spoken.chunks(TEXTS_MAX).map(|texts| threads.spawn(move || self.call(texts)));
            let calls: Vec<_> = calls.collect();
            let broken = || Err(Fault::BrokenOff("the thread that called it ended".to_owned()));
            calls.into_iter().map(|call| call.join().unwrap_or_else(|_| broken())).collect()
        });
        let called: Result<Vec<_>, Fault> = called.into_iter().collect();
        let failed = |fault: Fault| ModelError { model: self.model().to_owned(), reason: fault.to_string() };
        let mut vectors = called.map_err(failed)?.into_iter().flatten();
        Ok(texts.iter().map(|text| if text.trim().is_empty() { None } else { vectors.next() }).collect())
    }
}

fn embedded(endpoint: &Endpoint, texts: &[&str]) -> Result<Vec<Vec<f32>>, Fault> {
    let request = json!({"model": endpoint.model(), "input": texts, "encoding_format": "float"});
    endpoint.post("/embeddings", &request, |answer| vectors(answer, texts.len()))
}

/// The vectors of an answer in the order of their texts.
fn vectors(answer: &Value, count: usize) -> Result<Vec<Vec<f32>>, Fault> {
    let malformed = |what: String| Fault::Malformed(what);
    let data = answer.pointer("/data").and_then(Value::as_array);
    let data = data.ok_or_else(|| malformed("it has no \"data\"".to_owned()))?;
    if data.len() != count {
        return Err(malformed(format!("expected {count} vectors, found {}", data.len())));
    }
    let mut placed: Vec<Option<Vec<f32>>> = vec![None; count];
    for (position, entry) in data.iter().enumerate() {
        let index = entry.pointer("/index").and_then(Value::as_u64);
        let index = index.map_or(Some(position), |index| usize::try_from(index).ok());
        let components = entry.pointer("/embedding").and_then(Value::as_array);
        let components = components.ok_or_else(|| malformed("an entry has no \"embedding\"".to_owned()))?;
        let vector: Option<Vec<f32>> = components.iter().map(component).collect();
        let vector = vector.filter(|vector| vector.iter().any(|component| *component != 0.0));
        let vector = vector.ok_or_else(|| malformed("a vector is no list of finite numbers, or zero".to_owned()))?;
        match index.and_then(|index| placed.get_mut(index)) {
            Some(place @ None) => *place = Some(vector),
            _ => return Err(malformed("its indexes are not those of the texts, each once".to_owned())),
        }
    }
    Ok(placed.into_iter().flatten().collect())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "components are f32; what is too large becomes infinite and is refused"
)]
fn component(value: &Value) -> Option<f32> {
    value.as_f64().map(|number| number as f32).filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::llm::embedder::vectors;

    #[test]
    fn vectors_come_in_the_order_of_their_texts() {
        let answer = json!({"data": [{"index": 1, "embedding": [0, 2.5]}, {"index": 0, "embedding": [1, 0]}]});
        assert_eq!(vectors(&answer, 2).unwrap(), [[1.0, 0.0], [0.0, 2.5]]);
    }

    #[test]
    fn vectors_that_cannot_be_are_refused() {
        for data in [
            json!([]),
            json!([{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]),
            json!([{"index": 2, "embedding": [1]}, {"index": 0, "embedding": [1]}]),
            json!([{"index": 0, "embedding": [1e300]}, {"index": 1, "embedding": [1]}]),
            json!([{"index": 0, "embedding": [null]}, {"index": 1, "embedding": [1]}]),
            json!([{"index": 0, "embedding": [0.0]}, {"index": 1, "embedding": [1]}]),
            json!([{"index": 0, "embedding": "AAA"}, {"index": 1}]),
        ] {
            assert!(vectors(&json!({"data": data}), 2).is_err());
        }
        assert!(vectors(&json!({}), 0).is_err());
    }
}
