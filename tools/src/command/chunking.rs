//! The options that say how documents are cut.

use clap::ValueEnum;
use hedgerow::{ChunkStrategy, Chunking};

use crate::command::models::EmbedderChoice;
use crate::failure::Failure;

/// How documents are cut
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ChunkArgs {
    /// Where documents are cut
    #[arg(long, value_enum, value_name = "STRATEGY")]
    chunker: Option<Chunker>,
    /// Characters of a chunk at most [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    chunk_size: Option<u32>,
    /// Characters at most that a chunk repeats of the one before it, up to half of its size [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=500_000))]
    chunk_overlap: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Chunker {
    /// At sections, paragraphs, sentences or words; a table is a chunk [default]
    Recursive,
    /// One chunk a section, where the size allows it
    Headings,
    /// Where the subject changes; a vector a sentence
    Semantic,
    /// As recursive, and tables in groups of rows below their header
    Tables,
}

impl ChunkArgs {
    /// Whether none of them is given.
    pub fn is_empty(self) -> bool {
        self.chunker.is_none() && self.chunk_size.is_none() && self.chunk_overlap.is_none()
    }

    /// What they say, with the defaults of the library.
    ///
    /// # Errors
    /// [`Failure::Usage`] where the strategy needs an embedder and there is none.
    pub fn chunking(self, embedder: &EmbedderChoice) -> Result<Chunking, Failure> {
        let strategy = match self.chunker {
            None | Some(Chunker::Recursive) => ChunkStrategy::Recursive,
            Some(Chunker::Headings) => ChunkStrategy::Headings,
            Some(Chunker::Semantic) => ChunkStrategy::Semantic,
            Some(Chunker::Tables) => ChunkStrategy::Tables,
        };
        if strategy == ChunkStrategy::Semantic && *embedder == EmbedderChoice::None {
            return Err(Failure::Usage(
                "--chunker semantic compares vectors, and --embedder none makes none: choose another of the two"
                    .to_owned(),
            ));
        }
        let characters =
            |given: Option<u32>, default| given.map_or(default, |given| usize::try_from(given).unwrap_or(usize::MAX));
        let default = Chunking::default();
        Ok(Chunking {
            strategy,
            size: characters(self.chunk_size, default.size),
            overlap: characters(self.chunk_overlap, default.overlap),
        })
    }
}
