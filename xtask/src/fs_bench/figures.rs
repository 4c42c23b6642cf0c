//! What was measured: medians, and a table for docs/performance.md.

use std::time::Duration;

use super::Place;
use super::cpu::Spent;

/// One step at one place, once.
#[derive(Clone, Debug)]
pub struct Figure {
    pub operations: usize,
    pub time: Duration,
    pub spent: Spent,
    /// Of single operations, in order.
    pub p50: Duration,
    pub p99: Duration,
}

impl Figure {
    /// Of what each operation took.
    pub fn of(mut latencies: Vec<Duration>, time: Duration, spent: Spent) -> Self {
        latencies.sort_unstable();
        let at = |percent: usize| {
            latencies.get(latencies.len() * percent / 100).copied().unwrap_or_default()
        };
        Self { operations: latencies.len(), time, spent, p50: at(50), p99: at(99) }
    }

    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.time.as_secs_f64().max(1e-9)
    }

    /// Microseconds of CPU an operation.
    pub fn cpu_us(&self) -> f64 {
        self.spent.all() * 1e6 / self.operations.max(1) as f64
    }

    /// One line, as soon as it is there.
    pub fn line(&self, place: &str, step: &str) -> String {
        let each = |seconds: f64| seconds * 1e6 / self.operations.max(1) as f64;
        let Spent { program, servers, kernel, others } = self.spent;
        format!(
            "{step:34} {place:14} {:>10.0}/s {:>8.1} us CPU = {:.1} + {:.1} + {:.1}, p50 {:.0} us, \
             p99 {:.0} us, {} times, others {:.0} %",
            self.rate(),
            self.cpu_us(),
            each(program),
            each(servers),
            each(kernel),
            self.p50.as_secs_f64() * 1e6,
            self.p99.as_secs_f64() * 1e6,
            self.operations,
            others * 100.0 / self.time.as_secs_f64().max(1e-9),
        )
    }
}

/// A row: a step, and its figures of all runs by place. No figure where it was left out.
pub struct Row {
    pub step: String,
    pub figures: Vec<Vec<Figure>>,
}

/// The middle one of them, the upper one where there are two; `None` of nothing.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The table: operations a second, and microseconds of CPU each, where they lasted long enough.
pub fn print(places: &[Place], rows: &[Row]) {
    let names: Vec<_> = places.iter().map(|place| place.name.as_str()).collect();
    println!("\n| per second (CPU us each) | {} |", names.join(" | "));
    println!("|---|{}", "--:|".repeat(places.len()));
    for Row { step, figures } in rows {
        let cells = figures.iter().map(|runs| {
            let Some(rate) = median(runs.iter().map(Figure::rate).collect()) else {
                return "".to_owned();
            };
            let long = runs.iter().filter(|run| run.time > Duration::from_millis(300));
            match median(long.map(Figure::cpu_us).collect()) {
                Some(cpu) => format!("{rate:.0} ({cpu:.1})"),
                None => format!("{rate:.0}"),
            }
        });
        println!("| {step} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_its_rate_its_cpu_and_its_percentiles() {
        let latencies = (1..=100).rev().map(Duration::from_micros).collect();
        let spent = Spent { program: 0.001, servers: 0.002, kernel: 0.001, others: 5.0 };
        let figure = Figure::of(latencies, Duration::from_secs(2), spent);
        assert_eq!((figure.rate(), figure.cpu_us().round()), (50.0, 40.0));
        assert_eq!(figure.p50, Duration::from_micros(51));
        assert_eq!(figure.p99, Duration::from_micros(100));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }
}
