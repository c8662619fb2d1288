//! Running heads and feet: lines that stand at the same place of many pages and change by the page's number alone.

use std::collections::HashMap;

use crate::read::pdf::layout::{Line, Page};

/// Lines from the edge of a page, by their heights, that may be a running head or foot.
const LINES: usize = 3;

/// The share of a page's height, at either edge, in which heads and feet stand.
const EDGE: f64 = 0.15;

/// Pages that have it at least.
const PAGES_MIN: usize = 3;

/// How far from each other its lines stand at most.
const SLACK: f64 = 4.0;

/// A line that may be one: its page, its place among the lines, its height, and the numbers in it.
struct Candidate {
    page: usize,
    line: usize,
    y: f64,
    numbers: Vec<u64>,
}

/// Takes running heads and feet out of the pages, unless nothing would stay.
pub fn leave_out(pages: &mut [Page]) {
    let mut groups: HashMap<(bool, String), Vec<Candidate>> = HashMap::new();
    for (number, page) in pages.iter().enumerate() {
        for (line, is_head) in at_edges(page) {
            let Some(found) = page.lines.get(line) else { continue };
            let (words, numbers) = parts(&found.text);
            let candidate = Candidate { page: number, line, y: found.y, numbers };
            groups.entry((is_head, words)).or_default().push(candidate);
        }
    }
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); pages.len()];
    for candidate in groups.into_iter().filter_map(|(key, group)| running(&key.1, group)).flatten() {
        if let Some(lines) = out.get_mut(candidate.page) {
            lines.push(candidate.line);
        }
    }
    let kept = |(page, out): (&Page, &Vec<usize>)| page.lines.len() > out.len();
    if !pages.iter().zip(&out).any(kept) {
        return;
    }
    for (page, out) in pages.iter_mut().zip(out) {
        let mut place = 0;
        page.lines.retain(|_| {
            place += 1;
            !out.contains(&(place - 1))
        });
    }
}

/// The lines near the upper and the lower edge, each with whether it is near the upper.
fn at_edges(page: &Page) -> Vec<(usize, bool)> {
    let upright = |(_, line): &(usize, &Line)| !line.is_turned;
    let mut lines: Vec<(usize, f64)> =
        page.lines.iter().enumerate().filter(upright).map(|(place, line)| (place, line.y)).collect();
    lines.sort_by(|a, b| a.1.total_cmp(&b.1));
    let heads = outermost(lines.iter().copied().take_while(|(_, y)| *y <= EDGE * page.height));
    let feet = outermost(lines.iter().rev().copied().take_while(|(_, y)| *y >= (1.0 - EDGE) * page.height));
    heads.into_iter().map(|line| (line, true)).chain(feet.into_iter().map(|line| (line, false))).collect()
}

/// The lines of the first few heights.
fn outermost(lines: impl Iterator<Item = (usize, f64)>) -> Vec<usize> {
    let (mut found, mut heights, mut last) = (Vec::new(), 0, f64::NEG_INFINITY);
    for (line, y) in lines {
        if (y - last).abs() > 1.0 {
            (heights, last) = (heights + 1, y);
        }
        if heights > LINES {
            break;
        }
        found.push(line);
    }
    found
}

/// The words of a line without its numbers, and the numbers; small Roman ones that stand alone are numbers too.
fn parts(text: &str) -> (String, Vec<u64>) {
    let (mut words, mut numbers) = (String::new(), Vec::new());
    for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
        match word.parse().ok().or_else(|| roman(word)) {
            Some(number) => numbers.push(number),
            None => words.extend(word.chars().flat_map(char::to_lowercase).chain(Some(' '))),
        }
    }
    (words, numbers)
}

/// A number as prefaces write it.
fn roman(word: &str) -> Option<u64> {
    let value = |letter| match letter {
        b'i' => Some(1),
        b'v' => Some(5),
        b'x' => Some(10),
        b'l' => Some(50),
        b'c' => Some(100),
        _ => None,
    };
    let values: Vec<u64> = word.bytes().take(9).map(value).collect::<Option<_>>()?;
    let before_larger = |place: usize| values.get(place + 1).is_some_and(|next| *next > values[place]);
    let (plus, minus) = (0..values.len()).partition::<Vec<usize>, _>(|place| !before_larger(*place));
    let sum = |places: Vec<usize>| places.into_iter().filter_map(|place| values.get(place)).sum::<u64>();
    sum(plus).checked_sub(sum(minus)).filter(|_| word.len() <= 8)
}

/// The candidates with the same words that are one running head: on enough of the pages from the first to the last, at
/// one height, and with numbers that stay or go with the pages.
fn running(words: &str, mut group: Vec<Candidate>) -> Option<Vec<Candidate>> {
    let mut heights: Vec<f64> = group.iter().map(|candidate| candidate.y).collect();
    heights.sort_by(f64::total_cmp);
    let middle = heights.get(heights.len() / 2).copied()?;
    group.retain(|candidate| (candidate.y - middle).abs() <= SLACK);
    group.sort_by_key(|candidate| (candidate.page, candidate.line));
    let (first, last) = (group.first()?.page, group.last()?.page);
    let mut pages: Vec<usize> = group.iter().map(|candidate| candidate.page).collect();
    pages.dedup();
    if pages.len() < PAGES_MIN || 5 * pages.len() < 2 * (last - first + 1) {
        return None;
    }
    let is_step = |pair: &[Candidate]| {
        let [before, after] = pair else { return false };
        let pages = (after.page - before.page) as u64;
        let counts = |first: Option<&u64>, second: Option<&u64>| {
            first.zip(second).is_some_and(|(first, second)| first.checked_add(pages) == Some(*second))
        };
        (before.numbers == after.numbers && !words.is_empty())
            || counts(before.numbers.first(), after.numbers.first())
            || counts(before.numbers.last(), after.numbers.last())
    };
    let steps = group.windows(2).filter(|pair| is_step(pair)).count();
    (5 * steps >= 3 * (group.len() - 1)).then_some(group)
}

#[cfg(test)]
mod tests {
    use crate::read::pdf::layout::{Line, Page};
    use crate::read::pdf::running::{leave_out, parts};

    /// Pages of lines with their heights; what stays of them.
    fn left(pages: &[&[(f64, &str)]]) -> Vec<Vec<String>> {
        let line = |(y, text): &(f64, &str)| Line { text: (*text).to_owned(), y: *y, size: 10.0, ..Line::default() };
        let page = |lines: &&[(f64, &str)]| Page { height: 800.0, lines: lines.iter().map(line).collect() };
        let mut pages: Vec<Page> = pages.iter().map(page).collect();
        leave_out(&mut pages);
        let words = |page: Page| page.lines.into_iter().map(|line| line.text).collect();
        pages.into_iter().map(words).collect()
    }

    #[test]
    fn heads_that_alternate_and_numbers_in_roman_letters_are_left_out() {
        let pages: [&[(f64, &str)]; 7] = [
            &[(40.0, "viii Handbook"), (400.0, "a")],
            &[(40.0, "Gates ix"), (400.0, "b")],
            &[(41.0, "x Handbook"), (400.0, "c")],
            &[(40.0, "Gates xi"), (400.0, "d")],
            &[(40.0, "xii Handbook"), (400.0, "e")],
            &[(40.0, "Gates xiii"), (400.0, "f")],
            &[(400.0, "g")],
        ];
        assert_eq!(left(&pages).concat(), ["a", "b", "c", "d", "e", "f", "g"]);
    }

    #[test]
    fn lines_elsewhere_on_too_few_pages_or_with_numbers_of_their_own_stay() {
        let page = |number: &'static str, y: f64| [(y, "Gates"), (60.0, number), (400.0, "Total")];
        let pages = [page("Order 17", 40.0), page("Order 4", 60.0), page("Order 98", 80.0), page("Order 3", 100.0)];
        let pages: Vec<&[(f64, &str)]> = pages.iter().map(<[_; 3]>::as_slice).collect();
        assert_eq!(left(&pages).concat().len(), 12);
        assert_eq!(left(&[&[(40.0, "Gates"), (400.0, "a")], &[(40.0, "Gates"), (400.0, "b")]]).concat().len(), 4);
    }

    #[test]
    fn pages_that_hold_nothing_else_keep_it() {
        assert_eq!(left(&[&[(40.0, "Label")], &[(40.0, "Label")], &[(40.0, "Label")]]).concat(), ["Label"; 3]);
    }

    #[test]
    fn words_and_numbers_are_told_apart() {
        for (text, words, numbers) in [
            ("Page 3 of 10", "page of ", vec![3, 10]),
            ("— xiv —", "", vec![14]),
            ("Mix A4", "mix a4 ", vec![]),
            ("", "", vec![]),
        ] {
            assert_eq!(parts(text), (words.to_owned(), numbers), "{text}");
        }
    }
}
