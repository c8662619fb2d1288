//! What an extraction may speak of: types of entities and predicates, from a file with one of them a line.

use hedgerow_format::name::name_key_text;

/// Types and predicates that are allowed; where a list is empty, anything is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ontology {
    types: Vec<String>,
    predicates: Vec<String>,
}

impl Ontology {
    /// Reads lines `type NAME` and `predicate NAME`; blank lines and those that begin with `#` are passed over.
    ///
    /// # Errors
    /// A sentence that names the first line that is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut ontology = Ontology::default();
        for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (word, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
            let list = match word {
                "type" => &mut ontology.types,
                "predicate" => &mut ontology.predicates,
                _ => return Err(format!("line {number}: expected `type NAME` or `predicate NAME`, found {line:?}")),
            };
            if name_key_text(&name).is_empty() || name.len() > NAME_BYTES_MAX || list.len() >= NAMES_MAX {
                return Err(format!(
                    "line {number}: expected a name of at most {NAME_BYTES_MAX} bytes, and at most {NAMES_MAX} of a kind"
                ));
            }
            list.push(name);
        }
        Ok(ontology)
    }

    /// Types of entities that are allowed; empty where all are.
    #[must_use]
    pub fn types(&self) -> &[String] {
        &self.types
    }

    /// Predicates that are allowed; empty where all are.
    #[must_use]
    pub fn predicates(&self) -> &[String] {
        &self.predicates
    }

    /// A type as the ontology spells it; empty where it is not allowed.
    pub(super) fn kind(&self, given: &str) -> String {
        allowed(&self.types, given).unwrap_or_default()
    }

    /// A predicate as the ontology spells it; none where it is not allowed.
    pub(super) fn predicate(&self, given: &str) -> Option<String> {
        allowed(&self.predicates, given)
    }
}

const NAME_BYTES_MAX: usize = 100;
const NAMES_MAX: usize = 200;

/// Models write `member_of` for `member of`, so only words are compared.
fn allowed(list: &[String], given: &str) -> Option<String> {
    let key = name_key_text(given);
    if list.is_empty() {
        return Some(given.replace('_', " ").split_whitespace().collect::<Vec<_>>().join(" "));
    }
    list.iter().find(|name| name_key_text(name) == key).cloned()
}

#[cfg(test)]
mod tests {
    use crate::llm::Ontology;

    #[test]
    fn lines_name_types_and_predicates() {
        let ontology =
            Ontology::parse("# music\ntype  rock band\n\npredicate member of\r\npredicate released\n").unwrap();
        assert_eq!(ontology.types(), ["rock band"]);
        assert_eq!(ontology.predicates(), ["member of", "released"]);
        assert_eq!(ontology.kind("Rock_Band"), "rock band");
        assert_eq!(ontology.kind("person"), "");
        assert_eq!(ontology.predicate("MEMBER-OF").as_deref(), Some("member of"));
        assert_eq!(ontology.predicate("wrote"), None);
        assert_eq!(Ontology::default().predicate("is_a  member").as_deref(), Some("is a member"));
    }

    #[test]
    fn a_line_that_is_neither_is_named() {
        for text in ["types x", "type", "type !", &format!("type {}", "x".repeat(101))] {
            assert!(Ontology::parse(&format!("\n{text}")).unwrap_err().starts_with("line 2: "), "{text}");
        }
    }
}
