//! Why a call to a model gave nothing that can be used.

/// Why a call to a model gave nothing that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// No connection came about.
    #[error("nothing answers at {url}: {reason}")]
    Unreachable {
        /// What was tried.
        url: String,
        /// What the system said.
        reason: String,
    },
    /// The attempt took longer than it may.
    #[error("no answer within {seconds} s")]
    Timeout {
        /// What it may take.
        seconds: u64,
    },
    /// The connection ended before the answer did.
    #[error("the connection broke off: {0}")]
    BrokenOff(String),
    /// The server refused.
    #[error("the server answered {code}: {message}")]
    Status {
        /// HTTP status.
        code: u16,
        /// What it said.
        message: String,
    },
    /// The server asks to wait longer than anyone would.
    #[error("the server answered {code} and asks to wait {seconds} s")]
    Wait {
        /// HTTP status.
        code: u16,
        /// What it asks for.
        seconds: u64,
    },
    /// The answer is larger than it may be.
    #[error("the answer has more than {bytes} bytes")]
    TooLarge {
        /// What it may have.
        bytes: u64,
    },
    /// The answer is none of the kind that was asked for.
    #[error("the server's answer is not what the interface promises: {0}")]
    Malformed(String),
    /// The model wrote something else than it was asked for.
    #[error("the model wrote something else than it was asked for: {0}")]
    Content(String),
    /// The user asked for an end.
    #[error("interrupted")]
    Interrupted,
}

impl Fault {
    /// A word for programs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Fault::Unreachable { .. } => "unreachable",
            Fault::Timeout { .. } => "timeout",
            Fault::BrokenOff(_) => "broken off",
            Fault::Status { .. } => "status",
            Fault::Wait { .. } => "wait",
            Fault::TooLarge { .. } => "too large",
            Fault::Malformed(_) => "malformed",
            Fault::Content(_) => "content",
            Fault::Interrupted => "interrupted",
        }
    }

    /// Whether the same call may well succeed a little later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Fault::Unreachable { .. } | Fault::Timeout { .. } | Fault::BrokenOff(_) | Fault::Malformed(_) => true,
            Fault::Status { code, .. } => matches!(code, 408 | 425 | 429 | 500 | 502 | 503 | 504 | 529),
            Fault::Wait { .. } | Fault::TooLarge { .. } | Fault::Content(_) | Fault::Interrupted => false,
        }
    }
}
