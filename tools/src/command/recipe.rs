//! The constants of retrieval, set by name.

use hedgerow::{Question, Recipe, Sage};

/// A constant and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    name: String,
    value: f32,
}

impl Constant {
    /// Reads `NAME=VALUE`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as similar=0")?;
        let number = value.parse().ok().filter(|value: &f32| value.is_finite() && (0.0..=1e6).contains(value));
        let value = number.ok_or("expected a number from 0 to a million")?;
        let constant = Self { name: name.trim().to_owned(), value };
        constant.set(&mut Recipe::default(), &mut Sage::default())?;
        Ok(constant)
    }

    /// Sets all of them for a question.
    pub fn set_all(constants: &[Self], question: &mut Question) {
        for constant in constants {
            // It was set once when it was read.
            constant.set(&mut question.recipe, &mut question.sage).ok();
        }
    }

    fn set(&self, recipe: &mut Recipe, sage: &mut Sage) -> Result<(), String> {
        let count = count(self.value);
        let share = match self.name.as_str() {
            "seeds_max" => return put(&mut recipe.seeds_max, count),
            "definitions_max" => return put(&mut recipe.definitions_max, count),
            "undefined_max" => return put(&mut recipe.undefined_max, count),
            "mentions_max" => return put(&mut recipe.mentions_max, count),
            "similar_max" => return put(&mut recipe.similar_max, count),
            "again_max" => return put(&mut recipe.again_max, count),
            "sage.seeds_min" => return put(&mut sage.seeds_min, count),
            "sage.vector" => &mut sage.vector,
            "sage.terms" => &mut sage.terms,
            "sage.cutoff" => &mut sage.cutoff,
            "cover" => &mut recipe.cover,
            "named" => &mut recipe.named,
            "link" => &mut recipe.link,
            "bound" => &mut recipe.bound,
            "gate" => &mut recipe.gate,
            "rivals_vector" => &mut recipe.rivals_vector,
            "rivals_shared" => &mut recipe.rivals_shared,
            "rivals_spread" => &mut recipe.rivals_spread,
            "rivals_named_spread" => &mut recipe.rivals_named_spread,
            "definition_gain" => &mut recipe.definition_gain,
            "undefined" => &mut recipe.undefined,
            "gain" => &mut recipe.gain,
            "walk" => &mut recipe.walk,
            "walk_named" => &mut recipe.walk_named,
            "similar" => &mut recipe.similar,
            "similar_min" => &mut recipe.similar_min,
            "adjoining" => &mut recipe.adjoining,
            "adds" => &mut recipe.adds,
            "joins" => &mut recipe.joins,
            other => return Err(format!("there is no constant {other:?}; REFERENCE.md lists them under `ask`")),
        };
        *share = self.value;
        Ok(())
    }
}

fn put(count: &mut usize, value: Option<usize>) -> Result<(), String> {
    *count = value.ok_or("expected a whole number")?;
    Ok(())
}

/// A value as a whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, and from 0 to a million")]
fn count(value: f32) -> Option<usize> {
    (value.fract() == 0.0).then_some(value as usize)
}

#[cfg(test)]
mod tests {
    use hedgerow::Question;

    use crate::command::recipe::Constant;

    #[test]
    fn constants_are_set_by_their_names_and_others_are_refused() {
        let mut question = Question::new("q");
        let constants = ["similar=0", "seeds_max=4", "sage.cutoff=.5"].map(|text| Constant::parse(text).unwrap());
        Constant::set_all(&constants, &mut question);
        assert_eq!((question.recipe.seeds_max, question.sage.cutoff), (4, 0.5));
        assert!(question.recipe.similar.abs() < f32::EPSILON);
        for text in ["similar", "similar=", "similar=NaN", "similar=-1", "seeds_max=1.5", "other=1", "=1"] {
            assert!(Constant::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_constant_of_the_recipe_has_its_name() {
        let fields = format!("{:?}", Question::new("q").recipe);
        let fields = fields.trim_start_matches("Recipe { ").trim_end_matches(" }").split(", ");
        for field in fields.filter_map(|field| field.split_once(": ")) {
            assert!(Constant::parse(&format!("{}=1", field.0)).is_ok(), "{}", field.0);
        }
    }
}
