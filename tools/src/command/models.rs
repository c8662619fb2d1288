//! Which models a command uses: the options that several commands share.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use hedgerow::{CommitError, Control, Embed, Store};

use crate::embed::StaticTable;
use crate::failure::Failure;
use crate::llm::{Endpoint, Limits, RemoteEmbedder};
use crate::session::interrupted;

/// A chat model behind a URL.
#[derive(Debug, clap::Args)]
pub struct LlmOptions {
    // Help is no Markdown, so it is no doc comment.
    #[arg(
        long = "llm",
        value_name = "URL",
        requires = "model",
        help = "A server with the interface of OpenAI, such as http://localhost:11434 (Ollama, llama.cpp, vLLM …). A key \
                is taken from the environment variable HEDGEROW_LLM_KEY"
    )]
    url: Option<String>,
    /// Name of the model there
    #[arg(long, value_name = "NAME", requires = "url")]
    model: Option<String>,
    /// Seconds that one attempt of a call may take
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u16).range(1..=3600))]
    call_timeout: u16,
    /// How often a call is tried that fails for now (429, 5xx, a broken connection)
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=20))]
    attempts: u16,
}

impl LlmOptions {
    /// The endpoint, if one is named.
    ///
    /// # Errors
    /// [`Failure::Usage`] when URL, model or key cannot be used.
    pub fn endpoint(&self, concurrency: u16) -> Result<Option<Endpoint>, Failure> {
        let Some((url, model)) = self.url.as_deref().zip(self.model.as_deref()) else { return Ok(None) };
        let limits = Limits {
            attempts: self.attempts.into(),
            deadline: Duration::from_secs(self.call_timeout.into()),
            concurrency: concurrency.into(),
            ..Limits::default()
        };
        endpoint(url, model, limits).map(Some)
    }
}

fn endpoint(url: &str, model: &str, limits: Limits) -> Result<Endpoint, Failure> {
    let key = env::var(KEY).ok();
    Endpoint::new(url, model, key, limits, interrupted).map_err(Failure::Usage)
}

const KEY: &str = "HEDGEROW_LLM_KEY";

/// Which embedder gives texts their vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmbedderChoice {
    /// The table that comes with the program.
    Static,
    /// No vectors: answers come from terms and graph.
    None,
    /// A model in a folder.
    Folder(PathBuf),
    /// A model behind a URL.
    Remote {
        /// The URL.
        url: String,
        /// The model.
        model: String,
    },
}

impl EmbedderChoice {
    /// Reads a choice as it is typed.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "static" => return Ok(EmbedderChoice::Static),
            "none" => return Ok(EmbedderChoice::None),
            _ => {}
        }
        if let Some(folder) = text.strip_prefix("minilm:").filter(|folder| !folder.is_empty()) {
            return Ok(EmbedderChoice::Folder(folder.into()));
        }
        match text.rsplit_once('#') {
            Some((url, model)) if url.contains("://") && !model.is_empty() => {
                Ok(EmbedderChoice::Remote { url: url.to_owned(), model: model.to_owned() })
            }
            _ => Err("expected static, none, minilm:FOLDER or URL#MODEL".to_owned()),
        }
    }

    /// Makes the embedder ready: a folder is read, a URL is asked for one vector.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn load(&self) -> Result<Option<Box<dyn Embed>>, Failure> {
        Ok(match self {
            EmbedderChoice::None => None,
            EmbedderChoice::Static => Some(Box::new(StaticTable::default())),
            EmbedderChoice::Folder(folder) => Some(folder_model(folder)?),
            EmbedderChoice::Remote { url, model } => {
                let endpoint = endpoint(url, model, Limits::default())?;
                Some(Box::new(RemoteEmbedder::connect(endpoint)?))
            }
        })
    }
}

/// Brings projections in step. New reports of communities get their vectors where the others have theirs by the table that comes with the
/// program, or by the embedder that a command has loaded for its own texts.
///
/// # Errors
/// [`CommitError`].
pub fn refresh(store: &Store, embedder: Option<&dyn Embed>, control: &dyn Control) -> Result<(), CommitError> {
    let table = StaticTable::default();
    let embedders: Vec<&dyn Embed> = embedder.into_iter().chain([&table as &dyn Embed]).collect();
    store.refresh_with(&embedders, control)
}

#[cfg(not(feature = "transformer"))]
fn folder_model(_: &std::path::Path) -> Result<Box<dyn Embed>, Failure> {
    let reason = "this program was built without the feature `transformer`, so it cannot run a model of a folder";
    Err(Failure::Usage(reason.to_owned()))
}

#[cfg(feature = "transformer")]
fn folder_model(folder: &std::path::Path) -> Result<Box<dyn Embed>, Failure> {
    let model = crate::embed::FolderModel::open(folder).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(Box::new(model))
}

#[cfg(test)]
mod tests {
    use crate::command::models::EmbedderChoice;

    #[test]
    fn an_embedder_is_a_word_a_folder_or_a_url_with_a_model() {
        let remote = |url: &str, model: &str| EmbedderChoice::Remote { url: url.into(), model: model.into() };
        for (text, choice) in [
            ("static", EmbedderChoice::Static),
            ("none", EmbedderChoice::None),
            ("minilm:models/a b", EmbedderChoice::Folder("models/a b".into())),
            ("http://localhost:11434#nomic-embed-text", remote("http://localhost:11434", "nomic-embed-text")),
        ] {
            assert_eq!(EmbedderChoice::parse(text), Ok(choice));
        }
        for text in ["", "minilm:", "http://h", "http://h#", "h#m", "dynamic"] {
            assert!(EmbedderChoice::parse(text).is_err(), "{text}");
        }
    }
}
