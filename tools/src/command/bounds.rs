//! What a query may take: the options that all of them have.

use std::time::{Duration, Instant};

use hedgerow::{Bounded, Deadline, QueryLimits, Snapshot};

use crate::failure::Failure;
use crate::session::Session;

/// Time and memory of a query.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Bounds {
    /// Seconds after which the query gives up [default: none]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Memory that the query may hold beside the files of the store, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    memory: u32,
}

impl Bounds {
    /// Runs a query within its bounds; Ctrl-C stops it.
    ///
    /// # Errors
    /// Those of the query.
    pub fn run<T>(
        self,
        snapshot: &Snapshot,
        session: &Session,
        query: impl FnOnce(&Bounded<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let started = Instant::now();
        let elapsed = || started.elapsed();
        let watch = session.watch();
        let deadline = self.timeout.map(|after| Deadline { elapsed: &elapsed, after });
        let limits = QueryLimits { deadline, memory_bytes: u64::from(self.memory) << 20, control: &watch };
        query(&snapshot.bounded(limits))
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected a number of seconds, such as 2.5".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::command::bounds::seconds;

    #[test]
    fn seconds_may_have_parts_but_no_sign_and_no_end() {
        assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2500)));
        for text in ["-1", "inf", "NaN", "1e300", "", "5s"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
