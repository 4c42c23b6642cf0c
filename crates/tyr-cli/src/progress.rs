//! Progress on standard error, for a person at a terminal only.

use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::interrupt::Interrupt;

/// How often a bar of unknown length shows that it lives.
const TICK: Duration = Duration::from_millis(120);

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub enum Unit {
    /// Bytes, shown in binary units with a rate.
    Bytes,
    /// Things of the named kind.
    Things(&'static str),
}

/// A bar of `total` (if known) on standard error; silent when that is no terminal, or `is_quiet`.
pub fn bar(total: Option<u64>, unit: Unit, is_quiet: bool) -> ProgressBar {
    if is_quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (count, rate) = match unit {
        Unit::Bytes => ("{bytes}/{total_bytes}", "{binary_bytes_per_sec}".to_owned()),
        Unit::Things(name) => ("{human_pos}/{human_len}", format!("{name} {{per_sec}}")),
    };
    let bar = match total {
        Some(total) => ProgressBar::new(total)
            .with_style(style(&format!("{{wide_bar}} {count} {rate} {{eta}} {{msg}}"))),
        None => ProgressBar::no_length().with_style(style(&format!(
            "{{spinner}} {} {rate} {{msg}}",
            count.split('/').next().unwrap_or(count)
        ))),
    };
    bar.enable_steady_tick(TICK);
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates here are all well-formed")
}

/// A reader that moves a bar along and stops when the user asks to.
pub struct Watched<R> {
    inner: R,
    bar: ProgressBar,
    interrupt: Interrupt,
}

impl<R> Watched<R> {
    /// Watches `inner`.
    pub fn new(inner: R, bar: ProgressBar, interrupt: Interrupt) -> Self {
        Self { inner, bar, interrupt }
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupt.check_io()?;
        let count = self.inner.read(buffer)?;
        self.bar.inc(count as u64);
        Ok(count)
    }
}
