//! The question's vector, and how much it counts.

use crate::error::QueryError;
use crate::model::{Embed, ModelError, Models};
use crate::query::ask::Question;
use crate::query::search;
use crate::snapshot::{Bounded, Space};

/// The question's vector with its space and weight.
pub(super) struct QuestionVector {
    pub space: Space,
    pub components: Vec<f32>,
    pub weight: f32,
}

/// Given, or made by the embedder of the space; none where there is none, which is said.
pub(super) fn question_vector(
    snapshot: &Bounded<'_>,
    question: &Question,
    models: Models<'_>,
    incomplete: &mut Vec<String>,
) -> Result<Option<QuestionVector>, QueryError> {
    let first = || -> Result<Option<&Space>, QueryError> { Ok(snapshot.spaces()?.first()) };
    let space = match (&question.space, models.embedder) {
        (Some(name), _) => Some(snapshot.space(name)?),
        (None, Some(embedder)) => match snapshot.space(embedder.space()) {
            Ok(space) => Some(space),
            Err(_) => first()?,
        },
        (None, None) => first()?,
    };
    let Some(space) = space else {
        if question.vector.is_some() {
            incomplete.push("this store has no vectors: the question's vector was not used".into());
        }
        return Ok(None);
    };
    let embedder = models.embedder.filter(|model| model.space() == space.name && model.model() == space.model);
    let weight = question.vector_weight.unwrap_or_else(|| embedder.map_or(0.4, Embed::weight));
    let components = match (&question.vector, embedder) {
        (Some(vector), _) => Some(vector.clone()),
        (None, Some(embedder)) => embed(embedder, &question.text)?,
        (None, None) => {
            let Space { name, model, .. } = &space;
            incomplete.push(format!(
                "the vectors of the space {name} were made by {model}, which this program cannot run: \
                 answered without vectors"
            ));
            None
        }
    };
    let Some(mut components) = components else { return Ok(None) };
    search::unit(space, &mut components)?;
    Ok(Some(QuestionVector { space: space.clone(), components, weight: weight.clamp(0.0, 1.0) }))
}

/// The vector of a question; none where its text has none.
fn embed(embedder: &dyn Embed, text: &str) -> Result<Option<Vec<f32>>, QueryError> {
    let made = embedder.embed(&[text])?;
    let count = made.len();
    match made.into_iter().next() {
        Some(vector) if count == 1 => Ok(vector),
        _ => {
            let (model, reason) = (embedder.model().to_owned(), format!("it gave {count} vectors for one text"));
            Err(ModelError { model, reason }.into())
        }
    }
}
