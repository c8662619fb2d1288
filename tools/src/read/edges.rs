//! Edges as lines of names between tabs: which columns there are, and what a line must hold to be an edge.

use clap::ValueEnum;

/// What the columns of a line are, in order: subject, predicate, object, weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Columns {
    /// Subject and object.
    So,
    /// Subject, object, weight.
    Sow,
    /// Subject, predicate, object.
    Spo,
    /// Subject, predicate, object, weight.
    Spow,
}

impl Columns {
    /// The columns of lines that have as many as this one; three are taken for subject, predicate and object unless edges
    /// have a label without.
    #[must_use]
    pub fn of(line: &str, has_label: bool) -> Option<Self> {
        match line.split('\t').count() {
            2 => Some(Columns::So),
            3 if has_label => Some(Columns::Sow),
            3 => Some(Columns::Spo),
            4 => Some(Columns::Spow),
            _ => None,
        }
    }

    /// Whether lines have a predicate.
    #[must_use]
    pub fn has_predicate(self) -> bool {
        matches!(self, Columns::Spo | Columns::Spow)
    }

    /// As the command line names them.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Columns::So => "so",
            Columns::Sow => "sow",
            Columns::Spo => "spo",
            Columns::Spow => "spow",
        }
    }

    fn said(self) -> &'static str {
        match self {
            Columns::So => "2 columns between tabs: subject, object",
            Columns::Sow => "3 columns between tabs: subject, object, weight",
            Columns::Spo => "3 columns between tabs: subject, predicate, object",
            Columns::Spow => "4 columns between tabs: subject, predicate, object, weight",
        }
    }
}

/// An edge as a line gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EdgeRecord<'a> {
    /// Name of the node that it starts from.
    pub subject: &'a str,
    /// Its label, where lines have one.
    pub predicate: Option<&'a str>,
    /// Name of the node that it leads to.
    pub object: &'a str,
    /// Its weight; 1 where none is given.
    pub weight: f32,
}

/// Whether a line is a comment: it begins with `#` and a space.
#[must_use]
pub fn is_comment(line: &str) -> bool {
    line.starts_with("# ")
}

/// Reads a line.
///
/// # Errors
/// A sentence that says what was expected and what was found.
pub fn edge_from_line(line: &str, columns: Columns) -> Result<EdgeRecord<'_>, String> {
    let mut fields = [""; 4];
    let mut count = 0;
    for field in line.split('\t') {
        if let Some(place) = fields.get_mut(count) {
            *place = field.trim();
        }
        count += 1;
    }
    let [first, second, third, fourth] = fields;
    let (expected, subject, predicate, object, weight) = match columns {
        Columns::So => (2, first, None, second, None),
        Columns::Sow => (3, first, None, second, Some(third)),
        Columns::Spo => (3, first, Some(second), third, None),
        Columns::Spow => (4, first, Some(second), third, Some(fourth)),
    };
    if count != expected {
        return Err(format!("expected {}; found {count}", columns.said()));
    }
    for (what, name) in [("subject", Some(subject)), ("predicate", predicate), ("object", Some(object))] {
        if name.is_some_and(str::is_empty) {
            return Err(format!("{what}: expected a name, found an empty text"));
        }
    }
    let Some(given) = weight else { return Ok(EdgeRecord { subject, predicate, object, weight: 1.0 }) };
    let weight = given.parse().ok().filter(|weight: &f32| weight.is_finite() && *weight > 0.0);
    let weight =
        weight.ok_or_else(|| format!("weight: expected a finite number above zero, found {}", shown(given)))?;
    Ok(EdgeRecord { subject, predicate, object, weight })
}

fn shown(text: &str) -> String {
    if text.chars().count() <= 40 { format!("{text:?}") } else { "a long text".to_owned() }
}

#[cfg(test)]
mod tests {
    use crate::read::edges::{Columns, EdgeRecord, edge_from_line};

    #[test]
    fn columns_are_told_by_their_number_and_by_whether_edges_have_a_label() {
        for (line, has_label, columns) in [
            ("a\tb", true, Some(Columns::So)),
            ("a\tb\tc", true, Some(Columns::Sow)),
            ("a\tb\tc", false, Some(Columns::Spo)),
            ("a\tb\tc\t2", false, Some(Columns::Spow)),
            ("a b", false, None),
            ("a\tb\tc\td\te", true, None),
        ] {
            assert_eq!(Columns::of(line, has_label), columns, "{line:?}");
        }
    }

    #[test]
    fn lines_are_read_by_their_columns() {
        let edge = |predicate, weight| EdgeRecord { subject: "A b", predicate, object: "C", weight };
        for (line, columns, expected) in [
            ("A b\tC", Columns::So, edge(None, 1.0)),
            (" A b \tC\t0.5", Columns::Sow, edge(None, 0.5)),
            ("A b\towns\tC", Columns::Spo, edge(Some("owns"), 1.0)),
            ("A b\towns\tC\t2e3", Columns::Spow, edge(Some("owns"), 2000.0)),
        ] {
            assert_eq!(edge_from_line(line, columns), Ok(expected));
        }
    }

    #[test]
    fn what_is_no_edge_is_refused_with_what_was_expected() {
        for (line, columns, reason) in [
            ("A", Columns::So, "expected 2 columns between tabs: subject, object; found 1"),
            ("A\tB\tC", Columns::So, "expected 2 columns between tabs: subject, object; found 3"),
            ("A\t \tC", Columns::Spo, "predicate: expected a name, found an empty text"),
            ("\tB", Columns::So, "subject: expected a name, found an empty text"),
            ("A\tB\t-1", Columns::Sow, "weight: expected a finite number above zero, found \"-1\""),
            ("A\tB\tinf", Columns::Sow, "weight: expected a finite number above zero, found \"inf\""),
            ("A\tB\t1e39", Columns::Sow, "weight: expected a finite number above zero, found \"1e39\""),
            ("A\tB\t", Columns::Sow, "weight: expected a finite number above zero, found \"\""),
        ] {
            assert_eq!(edge_from_line(line, columns), Err(reason.to_owned()));
        }
    }
}
