//! A chart of block characters: eight rows high, an eighth of a row fine.
//!
//! ```text
//!   mean load of host cern/batch/node17, by the minute
//!       9.5 ┤    ▁▃▅▇█▇▅▃▁
//!           ┤  ▂▅█████████▅▂
//!       0.5 ┤▃▆█████████████▆▃
//!            2026-11-21T08:00:00Z           2026-11-21T09:00:00Z
//! ```
//!
//! Time runs evenly from left to right; where nothing was counted, nothing is drawn. Several
//! points in one column are drawn as their mean.

use super::{Curve, format_number};
use crate::calendar::format_time;

const ROWS: usize = 8;
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const WIDTH_MIN: usize = 40;
const WIDTH_MAX: usize = 400;

/// The curve as a chart at most `width` characters wide.
pub fn write(curve: &Curve, width: usize) -> String {
    let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else {
        return format!("{}: nothing.\n", curve.title);
    };
    let low = curve.points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let high = curve.points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
    let labels = labels(high, low);
    let label_width = labels.iter().map(|label| label.chars().count()).max().unwrap_or(0);
    let columns = width.clamp(WIDTH_MIN, WIDTH_MAX).saturating_sub(label_width + 2).max(8);
    let columns = columns.min(column_count(curve, first.0, last.0));
    let levels = levels(curve, columns, low, high);
    let mut text = format!("{}\n", curve.title);
    for row in (0..ROWS).rev() {
        let label = match row {
            // All are the same, and lie here.
            _ if high <= low && row == ROWS / 2 => &labels[0],
            _ if high <= low => "",
            0 => &labels[1],
            _ if row == ROWS - 1 => &labels[0],
            _ => "",
        };
        text.push_str(&format!("{label:>label_width$} ┤"));
        let line: String = levels
            .iter()
            .map(|level| match level {
                Some(level) => BLOCKS[level.saturating_sub(row * 8).min(8)],
                None => ' ',
            })
            .collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let (from, to) = (format_time(first.0), format_time(last.0));
    let to = if from == to { "" } else { &to };
    let gap = columns.saturating_sub(from.len() + to.len()).max(2);
    let times = format!("{:label_width$}  {from}{}{to}", "", " ".repeat(gap));
    text.push_str(times.trim_end());
    text.push('\n');
    text
}

/// The labels of the highest and the lowest, which tell them apart.
fn labels(high: f64, low: f64) -> [String; 2] {
    let short = [format_number(high), format_number(low)];
    if short[0] != short[1] || high <= low {
        return short;
    }
    [high.to_string(), low.to_string()]
}

/// A column for each window, where there are few.
fn column_count(curve: &Curve, first_us: i64, last_us: i64) -> usize {
    if curve.step_us == 0 {
        return usize::MAX;
    }
    usize::try_from((last_us - first_us) / curve.step_us + 1).unwrap_or(usize::MAX)
}

/// The height of every column in eighths of a row, from 1 on; none where there is no point.
fn levels(curve: &Curve, columns: usize, low: f64, high: f64) -> Vec<Option<usize>> {
    let (first, last) = (curve.points[0].0, curve.points[curve.points.len() - 1].0);
    let span = (last - first + curve.step_us.max(1)) as f64;
    let mut means = vec![(0.0_f64, 0.0_f64); columns];
    for (place, height) in &curve.points {
        let column = ((place - first) as f64 / span * columns as f64) as usize;
        let mean = &mut means[column.min(columns - 1)];
        mean.1 += 1.0;
        // Step by step, because the sum of large values might not be finite.
        mean.0 += (height - mean.0) / mean.1;
    }
    let steps = (ROWS * 8 - 1) as f64;
    means
        .into_iter()
        .map(|(mean, count)| {
            let share =
                if high > low { (mean / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0) } else { 0.5 };
            (count > 0.0).then(|| 1 + (share.clamp(0.0, 1.0) * steps).round() as usize)
        })
        .collect()
}
