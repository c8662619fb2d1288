//! How long a walk must be: an index asks itself.

use crate::distance::near::{NOWHERE, Probe, products};
use crate::index::control::{Cancelled, Control};
use crate::index::vector::Graph;
use crate::index::vector::walk::{Until, Walk};
use hedgerow_format::projection::WalkRow;
use rayon::prelude::*;

/// Questions that are put.
const QUESTIONS: usize = 256;
/// How many of the nearest are looked for.
const NEAREST: usize = 10;
/// How much of another row there is in every other question: people's questions are about what rows say, but none of them; and some
/// are about what hardly any row says.
const BESIDE: [f32; 2] = [0.35, 0.5];
/// Slacks that are tried, in thousandths.
const SLACKS: [u32; 18] = [20, 30, 40, 50, 65, 80, 100, 120, 140, 160, 180, 200, 230, 260, 300, 340, 400, 500];
/// No walk keeps more nodes.
pub const WIDTH_MAX: usize = 2048;
/// Beyond this share nothing longer is tried.
const ENOUGH: u32 = 9_950;

/// What a question is made of, itself, and the product that the last of the nearest has.
struct Asked {
    row: u32,
    probe: Probe,
    one: f64,
    least: i32,
}

/// How much of the nearest rows walks of several slacks find, for questions that are mixed of two rows each, spread over an order;
/// the first one is not looked for. Compares each question with all rows, on the current rayon pool.
///
/// # Errors
/// [`Cancelled`].
pub fn calibrate(graph: &Graph<'_>, order: &[u32], control: &dyn Control) -> Result<Vec<WalkRow>, Cancelled> {
    let step = order.len().div_ceil(QUESTIONS).max(1);
    let pairs: Vec<(u32, u32)> =
        order.iter().copied().step_by(step).zip(order.iter().rev().copied().step_by(step)).collect();
    let count = u32::try_from(graph.rows.count()).unwrap_or(u32::MAX);
    let beside = pairs.into_par_iter().enumerate();
    let asked: Vec<Asked> = beside.map(|(at, pair)| ask(graph, pair, BESIDE[at % BESIDE.len()], count)).collect();
    let mut walks = Vec::new();
    for slack in SLACKS {
        if control.cancelled() {
            return Err(Cancelled);
        }
        let found: usize =
            asked.par_iter().map_init(Walk::default, |walk, asked| found(graph, asked, slack, walk)).sum();
        let whole = (NEAREST.min(graph.rows.count().saturating_sub(1)) * asked.len()).max(1);
        let found = u32::try_from(found.min(whole) * 10_000 / whole).unwrap_or_default();
        walks.push(WalkRow { slack, found });
        if found >= ENOUGH {
            break;
        }
    }
    Ok(walks)
}

fn ask(graph: &Graph<'_>, (row, beside): (u32, u32), share: f32, count: u32) -> Asked {
    let number = |code: &u8| f32::from((code ^ 128).cast_signed());
    let mixed = graph.rows.row(row).iter().zip(graph.rows.row(beside));
    let vector: Vec<f32> = mixed.map(|(code, beside)| number(code) + share * number(beside)).collect();
    let (probe, scale, _) = Probe::of_vector(&vector);
    let square: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    // Rows are as long as the one that the question is mostly made of.
    let one = (square * f64::from(graph.rows.square(row))).sqrt() / scale;
    let (all, mut scores) = ((0..count).filter(|other| *other != row).collect::<Vec<u32>>(), Vec::new());
    products(&probe, graph.rows, &all, &mut scores);
    let place = NEAREST.min(scores.len()).saturating_sub(1);
    let least = if scores.is_empty() { NOWHERE } else { *scores.select_nth_unstable_by(place, |a, b| b.cmp(a)).1 };
    Asked { row, probe, one, least }
}

fn found(graph: &Graph<'_>, asked: &Asked, slack: u32, walk: &mut Walk) -> usize {
    let go_on = || Ok::<(), std::convert::Infallible>(());
    let until = Until { width: WIDTH_MAX, nearest: NEAREST + 1, slack: f64::from(slack) / 1000.0, one: asked.one };
    let Ok(()) = walk.walk(graph, &asked.probe, until, None, go_on);
    let others = walk.found().filter(|ranked| ranked.node() != asked.row).take(NEAREST);
    others.filter(|ranked| ranked.product() >= asked.least).count()
}
