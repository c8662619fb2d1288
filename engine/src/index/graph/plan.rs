//! Sets of nodes made from other sets: what is in all, in any, in one but not another, or passes a test.

use crate::error::QueryError;
use crate::index::guard::Guard;
use roaring::RoaringBitmap;
use std::borrow::Cow;

/// Plans within plans that a text may have.
const DEPTH_MAX: usize = 64;
/// Names that a text may have. Each may put what comes before it into another plan, so this bounds how deep a plan is.
const NAMES_MAX: usize = 256;
/// Letters of a name that an error shows.
const FOUND_MAX: usize = 40;

/// How a set of nodes is made, from leaves that the caller knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan<L> {
    /// A set of the caller's.
    Set(L),
    /// What is in all of these, read in this order until nothing remains; nothing where there are none.
    All(Vec<Plan<L>>),
    /// What is in any of these.
    Any(Vec<Plan<L>>),
    /// What is in the first but not in the second, which is read only where the first has nodes.
    Without(Box<[Plan<L>; 2]>),
    /// What of these passes a test of the caller's, which is asked once for each.
    Test(Box<Plan<L>>, L),
}

/// What the leaves of a plan stand for.
pub trait Leaves<L> {
    /// The nodes of a set.
    ///
    /// # Errors
    /// What reading it gives.
    fn set(&self, leaf: &L) -> Result<Cow<'_, RoaringBitmap>, QueryError>;

    /// Whether a node passes a test.
    ///
    /// # Errors
    /// What reading about it gives.
    fn passes(&self, leaf: &L, node: u32) -> Result<bool, QueryError>;
}

impl<L> Plan<L> {
    /// The nodes of the set. Asks for no leaf that can't change them.
    ///
    /// # Errors
    /// Those of the leaves and the guard.
    pub fn nodes<'l>(
        &self,
        leaves: &'l impl Leaves<L>,
        guard: &Guard<'_>,
    ) -> Result<Cow<'l, RoaringBitmap>, QueryError> {
        guard.poll()?;
        let nodes = match self {
            Self::Set(leaf) => leaves.set(leaf)?,
            Self::All(plans) => {
                let Some((first, rest)) = plans.split_first() else { return Ok(Cow::default()) };
                let mut nodes = first.nodes(leaves, guard)?;
                for plan in rest {
                    if nodes.is_empty() {
                        break;
                    }
                    *nodes.to_mut() &= plan.nodes(leaves, guard)?.as_ref();
                }
                nodes
            }
            Self::Any(plans) => {
                let mut nodes = Cow::<RoaringBitmap>::default();
                for plan in plans {
                    *nodes.to_mut() |= plan.nodes(leaves, guard)?.as_ref();
                }
                nodes
            }
            Self::Without(plans) => {
                let [first, second] = plans.as_ref();
                let mut nodes = first.nodes(leaves, guard)?;
                if !nodes.is_empty() {
                    *nodes.to_mut() -= second.nodes(leaves, guard)?.as_ref();
                }
                nodes
            }
            Self::Test(plan, leaf) => {
                let (nodes, mut passed, mut pace) = (plan.nodes(leaves, guard)?, RoaringBitmap::new(), guard.pace());
                for node in nodes.iter() {
                    pace.step()?;
                    if leaves.passes(leaf, node)? {
                        passed.insert(node);
                    }
                }
                Cow::Owned(passed)
            }
        };
        if let Cow::Owned(nodes) = &nodes {
            guard.hold_bytes(nodes.serialized_size() as u64)?;
        }
        Ok(nodes)
    }
}

/// Why a text is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a set of nodes, at byte {at}: expected {expected}, found {found}")]
pub struct PlanError {
    /// Where in the text.
    pub at: usize,
    /// What would have been right there.
    pub expected: &'static str,
    /// What is there.
    pub found: String,
}

/// What a name in a plan stands for: a set, or a test where `true` is given; or what would be right in its place.
pub type ReadLeaf<'r, L> = &'r dyn Fn(&str, bool) -> Result<L, &'static str>;

impl<L> Plan<L> {
    /// Reads a plan:
    ///
    /// ```text
    /// plan  = terms { "|" terms | "\" terms }      in either; in what comes before but not in this
    /// terms = term { "&" ( term | "?" name ) }     in all; of what comes before, what passes the test
    /// term  = name | "(" plan ")"
    /// name  = letters without spaces and ( ) & | \ ? ", or any letters but " between two "
    /// ```
    ///
    /// `a | b \ c` is `(a | b) \ c`; `a | b & c` is `a | (b & c)`. There may be 64 plans within plans, and 256 names.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn read(text: &str, leaf: ReadLeaf<'_, L>) -> Result<Self, PlanError> {
        let mut reader = Reader { text, at: 0, names: 0, leaf };
        let plan = reader.plan(0)?;
        match reader.peek() {
            None => Ok(plan),
            Some(_) => Err(reader.wrong("one of | \\ & or the end")),
        }
    }
}

struct Reader<'t, L> {
    text: &'t str,
    at: usize,
    /// Number of names that were read.
    names: usize,
    leaf: ReadLeaf<'t, L>,
}

impl<L> Reader<'_, L> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next letter after spaces.
    fn peek(&mut self) -> Option<char> {
        self.at += self.rest().len() - self.rest().trim_start().len();
        self.rest().chars().next()
    }

    /// Whether the next letter is this one, which is read then.
    fn take(&mut self, letter: char) -> bool {
        let is_next = self.peek() == Some(letter);
        self.at += if is_next { letter.len_utf8() } else { 0 };
        is_next
    }

    fn wrong(&mut self, expected: &'static str) -> PlanError {
        let found = self.peek().map_or("the end".to_owned(), String::from);
        PlanError { at: self.at, expected, found }
    }

    fn plan(&mut self, depth: usize) -> Result<Plan<L>, PlanError> {
        if depth > DEPTH_MAX {
            return Err(self.wrong("at most 64 plans within plans"));
        }
        let mut plan = self.terms(depth)?;
        loop {
            if self.take('|') {
                let other = self.terms(depth)?;
                plan = match plan {
                    Plan::Any(mut plans) => {
                        plans.push(other);
                        Plan::Any(plans)
                    }
                    plan => Plan::Any(vec![plan, other]),
                };
            } else if self.take('\\') {
                plan = Plan::Without(Box::new([plan, self.terms(depth)?]));
            } else {
                return Ok(plan);
            }
        }
    }

    fn terms(&mut self, depth: usize) -> Result<Plan<L>, PlanError> {
        let mut plan = self.term(depth)?;
        while self.take('&') {
            if self.take('?') {
                plan = Plan::Test(Box::new(plan), self.name(true)?);
                continue;
            }
            let other = self.term(depth)?;
            plan = match plan {
                Plan::All(mut plans) => {
                    plans.push(other);
                    Plan::All(plans)
                }
                plan => Plan::All(vec![plan, other]),
            };
        }
        Ok(plan)
    }

    fn term(&mut self, depth: usize) -> Result<Plan<L>, PlanError> {
        if !self.take('(') {
            return self.name(false).map(Plan::Set);
        }
        let plan = self.plan(depth + 1)?;
        if self.take(')') { Ok(plan) } else { Err(self.wrong("one of | \\ & )")) }
    }

    fn name(&mut self, is_test: bool) -> Result<L, PlanError> {
        if self.names == NAMES_MAX {
            return Err(self.wrong("at most 256 names"));
        }
        self.names += 1;
        let quoted = self.take('"');
        let end = if quoted {
            self.rest().find('"')
        } else {
            self.peek();
            let ends = |letter: char| letter.is_whitespace() || "()&|\\?\"".contains(letter);
            Some(self.rest().find(ends).unwrap_or(self.rest().len()))
        };
        let name = end.and_then(|end| self.rest().get(..end)).unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err(self.wrong(if quoted { "a name and \"" } else { "a name or (" }));
        }
        let leaf = (self.leaf)(&name, is_test).map_err(|expected| PlanError {
            at: self.at,
            expected,
            found: name.chars().take(FOUND_MAX).collect(),
        })?;
        self.at += name.len() + usize::from(quoted);
        Ok(leaf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::graph::sample::{Random, free};
    use crate::index::guard::QueryLimits;
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    /// Sets by name: `a` to `f`, each a few nodes below 40. The test of a name is whether a node is in its set.
    struct Named {
        sets: Vec<RoaringBitmap>,
        asked: RefCell<Vec<String>>,
    }

    impl Named {
        fn new(seed: u64) -> Self {
            let mut random = Random(seed);
            let sets = (0..6).map(|_| (0..random.below(30)).map(|_| random.below(40)).collect()).collect();
            Self { sets, asked: RefCell::default() }
        }

        fn of(&self, name: &str) -> &RoaringBitmap {
            &self.sets[usize::from(name.as_bytes()[0] - b'a')]
        }
    }

    impl Leaves<String> for Named {
        fn set(&self, leaf: &String) -> Result<Cow<'_, RoaringBitmap>, QueryError> {
            self.asked.borrow_mut().push(leaf.clone());
            Ok(Cow::Borrowed(self.of(leaf)))
        }

        fn passes(&self, leaf: &String, node: u32) -> Result<bool, QueryError> {
            Ok(self.of(leaf).contains(node))
        }
    }

    fn read_plan(text: &str) -> Result<Plan<String>, PlanError> {
        Plan::read(text, &|name, _| if name == "wrong" { Err("another name") } else { Ok(name.to_owned()) })
    }

    fn naive(plan: &Plan<String>, named: &Named) -> BTreeSet<u32> {
        let all = |plans: &[Plan<String>]| plans.iter().map(|plan| naive(plan, named)).collect::<Vec<_>>();
        match plan {
            Plan::Set(name) => named.of(name).iter().collect(),
            Plan::All(plans) => all(plans).into_iter().reduce(|a, b| &a & &b).unwrap_or_default(),
            Plan::Any(plans) => all(plans).into_iter().flatten().collect(),
            Plan::Without(plans) => &naive(&plans[0], named) - &naive(&plans[1], named),
            Plan::Test(plan, name) => {
                naive(plan, named).into_iter().filter(|node| named.of(name).contains(*node)).collect()
            }
        }
    }

    fn random(numbers: &mut Random, depth: u32) -> Plan<String> {
        let name = |numbers: &mut Random| ["a", "b", "c", "d", "e", "f"][numbers.below(6) as usize].to_owned();
        let some = |numbers: &mut Random| {
            let count = numbers.below(4);
            (0..count).map(|_| random(numbers, depth + 1)).collect()
        };
        match if depth > 4 { 0 } else { numbers.below(5) } {
            0 => Plan::Set(name(numbers)),
            1 => Plan::All(some(numbers)),
            2 => Plan::Any(some(numbers)),
            3 => Plan::Without(Box::new([random(numbers, depth + 1), random(numbers, depth + 1)])),
            _ => Plan::Test(Box::new(random(numbers, depth + 1)), name(numbers)),
        }
    }

    #[test]
    fn nodes_are_those_of_operations_on_sets() {
        for seed in 0..2000 {
            let (named, plan) = (Named::new(seed), random(&mut Random(seed), 0));
            let nodes = plan.nodes(&named, &free()).unwrap();
            assert_eq!(nodes.iter().collect::<BTreeSet<_>>(), naive(&plan, &named), "{plan:?}");
        }
    }

    #[test]
    fn a_text_is_read_by_its_grammar() {
        let set = |name: &str| Plan::Set(name.to_owned());
        let read = |text| read_plan(text).unwrap();
        assert_eq!(read(" INC-2209"), set("INC-2209"));
        assert_eq!(read("\"a | (b)\"|c"), Plan::Any(vec![set("a | (b)"), set("c")]));
        assert_eq!(read("a|b&c|d"), Plan::Any(vec![set("a"), Plan::All(vec![set("b"), set("c")]), set("d")]));
        let any = Plan::Any(vec![set("a"), set("b")]);
        assert_eq!(read("a | b \\ c"), Plan::Without(Box::new([any.clone(), set("c")])));
        let tested = Plan::Test(Box::new(any), "hub".to_owned());
        assert_eq!(read("(a | b) & ?hub & é"), Plan::All(vec![tested, set("é")]));
    }

    #[test]
    fn a_text_that_is_no_plan_is_refused_where_it_goes_wrong() {
        for (text, at) in
            [("", 0), ("a |", 3), ("a b", 2), ("(a", 2), ("a)", 1), ("?a", 0), ("a & ? ", 6), ("\"a", 1), ("\"\"", 1)]
        {
            let error = read_plan(text).unwrap_err();
            assert_eq!(error.at, at, "{text}: {error}");
        }
        let nested = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(read_plan(&nested(64)).unwrap(), Plan::Set("a".to_owned()));
        assert_eq!(read_plan(&nested(1_000_000)).unwrap_err().at, 65);
        let chained = |names: usize| vec!["a"; names].join("\\a|a&?a&");
        assert!(read_plan(&chained(65)).is_err());
        read_plan(&chained(64)).unwrap().nodes(&Named::new(1), &free()).unwrap();
        let error = read_plan("a | wrong").unwrap_err().to_string();
        assert_eq!(error, "not a set of nodes, at byte 4: expected another name, found wrong");
        let error = read_plan("a é").unwrap_err().to_string();
        assert_eq!(error, "not a set of nodes, at byte 2: expected one of | \\ & or the end, found é");
    }

    #[test]
    fn leaves_that_change_nothing_are_not_asked_for() {
        let mut named = Named::new(7);
        named.sets[0].clear();
        named.sets[1] = RoaringBitmap::from([1, 2]);
        for (text, asked) in [("a & b & c", "a"), ("a \\ b", "a"), ("(b & a & c) | d", "bad"), ("b & ?c", "b")] {
            named.asked.borrow_mut().clear();
            read_plan(text).unwrap().nodes(&named, &free()).unwrap();
            assert_eq!(named.asked.borrow().concat(), asked);
        }
    }

    #[test]
    fn sets_that_do_not_fit_in_memory_are_refused() {
        let guard = Guard::new(QueryLimits { memory_bytes: 10, ..QueryLimits::default() });
        let mut named = Named::new(3);
        named.sets[0] = (0..30).collect();
        named.sets[1] = (20..50).collect();
        assert!(matches!(read_plan("a & b").unwrap().nodes(&named, &guard), Err(QueryError::Memory { .. })));
    }
}
