//! How a command ends: done, done with rejected records, or with an error and its exit code.

use std::io;
use std::path::{Path, PathBuf};

use hedgerow::{
    BackupError, Cancelled, CommitError, Damage, EdgeError, Error, FilterError, OpenError, QueryError, RepairError,
    SalvageError, StorageError, VerifyError,
};

use crate::llm::Fault;
use crate::read::npy::MatrixError;

/// How a command that did its work ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it: exit code 0.
    Done,
    /// Some records were rejected, and listed: exit code 1.
    Rejected,
}

impl Outcome {
    /// Done, unless records were rejected.
    #[must_use]
    pub fn unless_rejected(rejected: u64) -> Outcome {
        if rejected == 0 { Outcome::Done } else { Outcome::Rejected }
    }

    /// What the process tells its caller.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::Rejected => 1,
        }
    }
}

/// Why a command did not do its work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The arguments don't fit together or don't fit the store.
    #[error("{0}")]
    Usage(String),
    /// Something that was named is not there.
    #[error("{0}")]
    NotFound(String),
    /// `verify` found damage, or a file is of another format.
    #[error("{0}")]
    Damaged(String),
    /// A file could not be read or written.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The result could not be written to standard output.
    #[error("could not write to standard output: {0}")]
    Output(io::Error),
    /// The user pressed Ctrl-C, or the system asked the process to end.
    #[error("interrupted; the store is unharmed, and what was committed before stays")]
    Interrupted,
    /// A matrix could not be read.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
    /// The filter does not parse.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The store could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A commit did not come true.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// A query has no answer.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A file of the store is damaged.
    #[error(transparent)]
    File(#[from] Damage),
    /// A model behind a URL gave nothing that can be used.
    #[error("the model did not answer: {0}")]
    Model(#[from] Fault),
    /// The store cannot be repaired.
    #[error(transparent)]
    Unrepaired(RepairError),
}

impl Failure {
    /// What to turn an error of the system at a file into.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Failure {
        move |source| Failure::Io { action, path: path.to_owned(), source }
    }

    /// What is printed about it. An error inside the store tells paths that are relative to it, so the store comes first.
    #[must_use]
    pub fn message(&self, store: Option<&Path>) -> String {
        let is_inside = match self {
            Failure::Damaged(_)
            | Failure::File(_)
            | Failure::Open(
                OpenError::Damaged(_)
                | OpenError::Storage(_)
                | OpenError::TooMuch { .. }
                | OpenError::Contradiction { .. },
            )
            | Failure::Query(QueryError::Damaged(_)) => true,
            Failure::Commit(error) => matches!(
                error,
                CommitError::Damaged(_)
                    | CommitError::Storage(_)
                    | CommitError::Poisoned { .. }
                    | CommitError::Unknown { .. }
            ),
            _ => false,
        };
        match store.filter(|_| is_inside) {
            Some(store) => format!("{}: {self}", store.display()),
            None => self.to_string(),
        }
    }

    /// What the process tells its caller.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Io { .. } | Failure::Output(_) | Failure::Matrix(MatrixError::Io { .. }) => IO,
            // A matrix of another form is a wrong argument, not a failing disk.
            Failure::Usage(_) | Failure::Filter(_) | Failure::Matrix(_) => USAGE,
            Failure::NotFound(_) => NOT_FOUND,
            Failure::Damaged(_) | Failure::File(_) | Failure::Unrepaired(_) => DAMAGED,
            Failure::Interrupted | Failure::Model(Fault::Interrupted) => INTERRUPTED,
            Failure::Model(_) => IO,
            Failure::Open(error) => open_code(error),
            Failure::Commit(error) => commit_code(error),
            Failure::Query(error) => query_code(error),
        }
    }
}

const USAGE: u8 = 2;
const NOT_FOUND: u8 = 3;
const DAMAGED: u8 = 4;
const IO: u8 = 5;
const LOCKED: u8 = 6;
const LIMIT: u8 = 7;
const INTERRUPTED: u8 = 130;

fn open_code(error: &OpenError) -> u8 {
    match error {
        OpenError::NotFound { .. } => NOT_FOUND,
        OpenError::Locked { .. } => LOCKED,
        OpenError::Pack { .. } => USAGE,
        OpenError::NotAStore { .. }
        | OpenError::NoHead { .. }
        | OpenError::Unfinished { .. }
        | OpenError::TooMuch { .. }
        | OpenError::Contradiction { .. }
        | OpenError::ReadOnly { .. }
        | OpenError::MissingCatalog { .. }
        | OpenError::CatalogDamaged { .. }
        | OpenError::Damaged(_) => DAMAGED,
        _ => IO,
    }
}

fn commit_code(error: &CommitError) -> u8 {
    match error {
        CommitError::UnknownKey { .. } => NOT_FOUND,
        CommitError::Space { .. } | CommitError::Malformed { .. } | CommitError::Limit(_) => USAGE,
        CommitError::Memory { .. } => LIMIT,
        CommitError::Cancelled => INTERRUPTED,
        CommitError::Damaged(_) => DAMAGED,
        _ => IO,
    }
}

fn query_code(error: &QueryError) -> u8 {
    match error {
        QueryError::NotFound { .. } | QueryError::UnknownSpace { .. } => NOT_FOUND,
        QueryError::Vector { .. } => USAGE,
        QueryError::Damaged(_) => DAMAGED,
        QueryError::Deadline { .. } | QueryError::Memory { .. } => LIMIT,
        QueryError::Cancelled => INTERRUPTED,
        _ => IO,
    }
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Failure::Open(OpenError::Storage(error))
    }
}

impl From<Cancelled> for Failure {
    fn from(_: Cancelled) -> Self {
        Failure::Interrupted
    }
}

impl From<EdgeError> for Failure {
    fn from(error: EdgeError) -> Self {
        match error {
            EdgeError::Query(error) => Failure::Query(error),
            EdgeError::Commit(error) => Failure::Commit(error),
            EdgeError::Share { .. } | EdgeError::NotJoined { .. } | EdgeError::NothingLeft => {
                Failure::Usage(error.to_string())
            }
            // The enum may grow; what it will say is a sentence already.
            other => Failure::Damaged(other.to_string()),
        }
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Open(error) => Failure::Open(error),
            BackupError::Damaged(damage) => Failure::File(damage),
            BackupError::Storage(StorageError { action, path, source }) => {
                Failure::io(action, Path::new(&path))(source)
            }
            BackupError::Unfaithful { path, source } => {
                Failure::io("read back what was written to", &path)(io::Error::other(source.to_string()))
            }
            BackupError::Cancelled(cancelled) => cancelled.into(),
            // What is named is there already, or too large.
            other => Failure::Usage(other.to_string()),
        }
    }
}

impl From<VerifyError> for Failure {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Open(error) => Failure::Open(error),
            VerifyError::Cancelled(cancelled) => cancelled.into(),
            other => Failure::Damaged(other.to_string()),
        }
    }
}

impl From<SalvageError> for Failure {
    fn from(error: SalvageError) -> Self {
        match error {
            SalvageError::Nothing { .. } => Failure::NotFound(error.to_string()),
            SalvageError::Taken { .. } => Failure::Usage(error.to_string()),
            SalvageError::Open(error) => Failure::Open(error),
            SalvageError::Commit(error) => Failure::Commit(error),
            SalvageError::Cancelled(cancelled) => cancelled.into(),
            // The enum may grow; what it will say is a sentence already.
            other => Failure::Damaged(other.to_string()),
        }
    }
}

impl From<RepairError> for Failure {
    fn from(error: RepairError) -> Self {
        match error {
            RepairError::Open(error) => Failure::Open(error),
            RepairError::Cancelled(cancelled) => cancelled.into(),
            RepairError::Facts { .. } | RepairError::NoGeneration { .. } => Failure::Unrepaired(error),
            // The enum may grow; what it will say is a sentence already.
            other => Failure::Damaged(other.to_string()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Open(error) => Failure::Open(error),
            Error::Commit(error) => Failure::Commit(error),
            Error::Query(error) => Failure::Query(error),
            other => Failure::Damaged(other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use hedgerow::{Cancelled, CommitError, OpenError, QueryError, StorageError};

    use crate::failure::{Failure, Outcome};

    #[test]
    fn errors_inside_a_store_name_it_and_others_are_told_as_they_are() {
        let store = Some(Path::new("notes.hedgerow"));
        let source = std::io::Error::other("no access");
        let inside: Failure = StorageError { action: "read", path: "HEAD".to_owned(), source }.into();
        assert_eq!(inside.message(store), "notes.hedgerow: could not read HEAD: no access");
        assert_eq!(inside.message(None), "could not read HEAD: no access");
        let other = Failure::io("read", Path::new("a.txt"))(std::io::Error::other("no access"));
        assert_eq!(other.message(store), "could not read a.txt: no access");
    }

    #[test]
    fn every_kind_of_end_has_the_exit_code_of_the_contract() {
        let path = PathBuf::from("store");
        assert_eq!((Outcome::Done.exit_code(), Outcome::Rejected.exit_code()), (0, 1));
        for (failure, code) in [
            (Failure::Usage(String::new()), 2),
            (OpenError::NotFound { path: path.clone() }.into(), 3),
            (QueryError::NotFound { key: "k".to_owned() }.into(), 3),
            (OpenError::NotAStore { path: path.clone(), found: String::new() }.into(), 4),
            (OpenError::NoHead { path: path.clone() }.into(), 4),
            (OpenError::MissingCatalog { path: path.clone() }.into(), 4),
            (Failure::io("read", &path)(std::io::Error::other("broken")), 5),
            (CommitError::Poisoned { reason: String::new() }.into(), 5),
            (OpenError::Locked { path, holder: String::new() }.into(), 6),
            (Cancelled.into(), 130),
            (CommitError::Cancelled.into(), 130),
        ] {
            assert_eq!(failure.exit_code(), code, "{failure}");
        }
    }
}
