//! How wide a walk must be: an index asks itself.

use crate::distance::near::{NOWHERE, Probe, products};
use crate::index::control::{Cancelled, Control};
use crate::index::vector::Graph;
use crate::index::vector::walk::Walk;
use hedgerow_format::projection::WalkRow;
use rayon::prelude::*;

/// Questions that are put.
const QUESTIONS: usize = 256;
/// How many of the nearest are looked for.
const NEAREST: usize = 10;
/// How much of another row there is in a question: people's questions are about what rows say, but none of them.
const BESIDE: f32 = 0.35;
/// Widths that are tried: each is a fourth root of two above the one before, and less than the last.
const WIDTHS: [u32; 25] =
    [10, 12, 14, 17, 20, 24, 28, 34, 40, 48, 57, 67, 80, 95, 113, 135, 160, 190, 226, 269, 320, 381, 453, 538, 640];
/// Beyond this share nothing wider is tried.
const ENOUGH: u32 = 9_950;

/// What a question is made of, itself, and the product that the last of the nearest has.
struct Asked {
    row: u32,
    probe: Probe,
    least: i32,
}

/// How much of the nearest rows walks of several widths find, for questions that are mixed of two rows each, spread over an order;
/// the first one is not looked for. Compares each question with all rows, on the current rayon pool.
///
/// # Errors
/// [`Cancelled`].
pub fn calibrate(graph: &Graph<'_>, order: &[u32], control: &dyn Control) -> Result<Vec<WalkRow>, Cancelled> {
    let step = order.len().div_ceil(QUESTIONS).max(1);
    let pairs: Vec<(u32, u32)> =
        order.iter().copied().step_by(step).zip(order.iter().rev().copied().step_by(step)).collect();
    let count = u32::try_from(graph.rows.count()).unwrap_or(u32::MAX);
    let asked: Vec<Asked> = pairs.into_par_iter().map(|pair| ask(graph, pair, count)).collect();
    let mut walks = Vec::new();
    for width in WIDTHS {
        if control.cancelled() {
            return Err(Cancelled);
        }
        let found: usize =
            asked.par_iter().map_init(Walk::default, |walk, asked| found(graph, asked, width, walk)).sum();
        let whole = (NEAREST.min(graph.rows.count().saturating_sub(1)) * asked.len()).max(1);
        let found = u32::try_from(found.min(whole) * 10_000 / whole).unwrap_or_default();
        walks.push(WalkRow { width, found });
        if found >= ENOUGH {
            break;
        }
    }
    Ok(walks)
}

fn ask(graph: &Graph<'_>, (row, beside): (u32, u32), count: u32) -> Asked {
    let number = |code: &u8| f32::from((code ^ 128).cast_signed());
    let mixed = graph.rows.row(row).iter().zip(graph.rows.row(beside));
    let vector: Vec<f32> = mixed.map(|(code, beside)| number(code) + BESIDE * number(beside)).collect();
    let (probe, ..) = Probe::of_vector(&vector);
    let (all, mut scores) = ((0..count).filter(|other| *other != row).collect::<Vec<u32>>(), Vec::new());
    products(&probe, graph.rows, &all, &mut scores);
    let place = NEAREST.min(scores.len()).saturating_sub(1);
    let least = if scores.is_empty() { NOWHERE } else { *scores.select_nth_unstable_by(place, |a, b| b.cmp(a)).1 };
    Asked { row, probe, least }
}

fn found(graph: &Graph<'_>, asked: &Asked, width: u32, walk: &mut Walk) -> usize {
    let go_on = || Ok::<(), std::convert::Infallible>(());
    let Ok(()) = walk.walk(graph, &asked.probe, width as usize, None, go_on);
    let others = walk.best().filter(|ranked| ranked.node() != asked.row).take(NEAREST);
    others.filter(|ranked| ranked.product() >= asked.least).count()
}
