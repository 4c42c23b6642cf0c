//! Writes the figures of `docs/guide/balancing.md`: what policies make of a load, as tables and
//! drawn. Give it the folder that they go into.

use std::path::Path;

use tyr_mantle::simulation::chart::{csv, svg};
use tyr_mantle::simulation::experiment::{FIGURES, runs};

#[expect(clippy::disallowed_methods, reason = "it is a program, and writes files")]
fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "docs/figures".to_owned());
    for figure in FIGURES {
        let runs = runs(figure).expect("the policies are policies");
        let table = csv(&runs);
        let place = |ending| Path::new(&folder).join(format!("{}.{ending}", figure.name));
        std::fs::write(place("svg"), svg(figure.title, &table)).expect("the folder is there");
        std::fs::write(place("csv"), &table).expect("the folder is there");
        for (name, run) in &runs {
            let last = run.rates.len();
            let (begin, end) = (run.mean(0..10), run.mean(last - 20..last));
            println!("{} {name}: {begin}/s at first, {end}/s at last", figure.name);
            for (time_us, moved) in &run.moves {
                let seconds = *time_us as f64 / 1e6;
                println!("  {seconds} s: {} from {} to {}", moved.seat, moved.from, moved.to);
            }
        }
    }
}
