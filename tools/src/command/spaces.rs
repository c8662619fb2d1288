//! How vectors are to be stored and compared: the options that several commands share.

use hedgerow::{Element, Metric, SpaceKind};

/// What a vector space is made for.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct KindArgs {
    /// What components are stored as: f32, f16 (half of the bytes) or i8 (about a quarter) [default: as the space has them, or else f32]
    #[arg(long, value_name = "ELEMENT", value_parser = element)]
    pub element: Option<Element>,
    /// What makes vectors near: cosine, dot (a high inner product) or l2 (a low distance) [default: as the space has it, or else cosine]
    #[arg(long, value_name = "METRIC", value_parser = metric)]
    pub metric: Option<Metric>,
}

impl KindArgs {
    /// The kind that is asked for, where a space is of one already or of none.
    #[must_use]
    pub fn kind(self, known: Option<SpaceKind>) -> SpaceKind {
        let known = known.unwrap_or_default();
        SpaceKind { element: self.element.unwrap_or(known.element), metric: self.metric.unwrap_or(known.metric) }
    }
}

/// An element by its name.
///
/// # Errors
/// Those that there are.
pub fn element(name: &str) -> Result<Element, String> {
    let found = Element::ALL.into_iter().find(|element| element.name() == name);
    found.ok_or_else(|| format!("expected {}", Element::ALL.map(Element::name).join(", ")))
}

fn metric(name: &str) -> Result<Metric, String> {
    let found = Metric::ALL.into_iter().find(|metric| metric.name() == name);
    found.ok_or_else(|| format!("expected {}", Metric::ALL.map(Metric::name).join(", ")))
}
