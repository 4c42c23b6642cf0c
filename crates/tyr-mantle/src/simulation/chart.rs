//! What came of several runs: as a table, and drawn.

use std::fmt::Write as _;

use super::Run;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 30.0;
const PLOT_WIDTH: f64 = 520.0;
const PLOT_HEIGHT: f64 = 240.0;

/// Colours that are told apart by who does not see colours as most do (Okabe and Ito).
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// A line for each second of each run: its name, the second, the sum, and each seat.
pub fn csv(runs: &[(&str, Run)]) -> String {
    let seats = runs.iter().flat_map(|(_, run)| run.rates.first()).map(Vec::len).max();
    let mut text = "run,second,sum".to_owned();
    for seat in 0..seats.unwrap_or(0) {
        let _ = write!(text, ",seat{seat}");
    }
    text.push('\n');
    for (name, run) in runs {
        for (second, rates) in run.rates.iter().enumerate() {
            let _ = write!(text, "{name},{},{}", second + 1, rates.iter().sum::<u64>());
            for rate in rates {
                let _ = write!(text, ",{rate}");
            }
            text.push('\n');
        }
    }
    text
}

/// The sums over time, drawn of such a table.
pub fn svg(title: &str, csv: &str) -> String {
    let lines = lines_of(csv);
    let points = || lines.iter().flat_map(|(_, points)| points.iter().copied());
    let seconds = points().map(|(second, _)| second).fold(1.0, f64::max);
    let step = step_of(points().map(|(_, sum)| sum).fold(1.0, f64::max));
    let highest = (points().map(|(_, sum)| sum).fold(1.0, f64::max) / step).ceil() * step;
    let x = |second: f64| LEFT + second / seconds * PLOT_WIDTH;
    let y = |sum: f64| TOP + PLOT_HEIGHT - sum / highest * PLOT_HEIGHT;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" \
         height=\"{HEIGHT}\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"18\">{title}</text>\n"
    );
    let mut at = 0.0;
    while at <= highest {
        let (left, right) = (LEFT, LEFT + PLOT_WIDTH);
        let _ = writeln!(
            text,
            "<path d=\"M{left} {0:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{1}\" y=\"{2:.1}\" \
             text-anchor=\"end\">{at}</text>",
            y(at),
            LEFT - 6.0,
            y(at) + 4.0
        );
        at += step;
    }
    for tenth in (0..=10).step_by(2) {
        let second = seconds * f64::from(tenth) / 10.0;
        let (place, below) = (x(second), TOP + PLOT_HEIGHT + 18.0);
        let _ = writeln!(
            text,
            "<text x=\"{place:.1}\" y=\"{below}\" text-anchor=\"middle\">{second:.0} s</text>"
        );
    }
    for ((name, points), (number, colour)) in lines.iter().zip(COLOURS.iter().enumerate()) {
        let place = |(second, sum): &(f64, f64)| format!("{:.1},{:.1}", x(*second), y(*sum));
        let points: Vec<String> = points.iter().map(place).collect();
        let (points, label) = (points.join(" "), TOP + 14.0 + 18.0 * number as f64);
        let _ = writeln!(
            text,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"1.5\"/><text x=\"{}\" y=\"{label}\" fill=\"{colour}\">{name}</text>",
            LEFT + PLOT_WIDTH + 12.0
        );
    }
    text.push_str("</svg>\n");
    text
}

/// The runs of a table, each with its seconds and sums.
fn lines_of(csv: &str) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for row in csv.lines().skip(1) {
        let mut fields = row.split(',');
        let (Some(name), Some(second), Some(sum)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (Ok(second), Ok(sum)) = (second.parse(), sum.parse()) else { continue };
        match lines.last_mut().filter(|(known, _)| known == name) {
            Some((_, points)) => points.push((second, sum)),
            None => lines.push((name.to_owned(), vec![(second, sum)])),
        }
    }
    lines
}

/// Between two lines behind the curves: 1, 2 or 5 times a power of ten, for at most six lines.
fn step_of(highest: f64) -> f64 {
    let mut step = 1.0;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if highest / step <= 6.0 {
            break;
        }
        step *= factor;
    }
    step
}
