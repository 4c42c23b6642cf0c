//! Lines of one kind that come again and again are held back, and summed up.
//!
//! A node whose peers restart says the same of each message that it could not send. Of each kind,
//! by the place in the program that says it, so many lines are written in a stretch of time; how
//! many more there were is said in a line of its own, when the stretch is over and anything is
//! logged.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tracing::callsite::Identifier;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::AUDIT;

/// A stretch of time.
const STRETCH: Duration = Duration::from_secs(10);

/// Lines of one kind that are written in a stretch.
const LINES_MAX: u32 = 5;

/// Formats what comes through, and writes nothing of the rest.
pub struct Braked<F> {
    inner: F,
    is_json: bool,
    /// By the place that says it; as many as the program has.
    kinds: Mutex<HashMap<Identifier, Kind>>,
}

/// Lines of one place in a stretch.
struct Kind {
    metadata: &'static Metadata<'static>,
    since: Instant,
    count: u32,
}

impl Kind {
    fn held_back(&self) -> u32 {
        self.count.saturating_sub(LINES_MAX)
    }
}

impl<F> Braked<F> {
    /// Holds back what repeats of what this formats.
    pub fn new(inner: F, is_json: bool) -> Self {
        Self { inner, is_json, kinds: Mutex::default() }
    }

    /// Whether the line is written; and what was held back in stretches that are over.
    fn admit(&self, metadata: &'static Metadata<'static>, now: Instant) -> (bool, Vec<String>) {
        if metadata.target() == AUDIT {
            return (true, Vec::new()); // Each of them is another act.
        }
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sums = Vec::new();
        kinds.retain(|_, kind| {
            let is_over = now.duration_since(kind.since) >= STRETCH;
            if is_over && kind.held_back() > 0 {
                sums.push(self.sum(kind));
            }
            !is_over
        });
        let fresh = || Kind { metadata, since: now, count: 0 };
        let kind = kinds.entry(metadata.callsite()).or_insert_with(fresh);
        kind.count = kind.count.saturating_add(1);
        (kind.count <= LINES_MAX, sums)
    }

    /// The line that stands for those which were held back.
    fn sum(&self, kind: &Kind) -> String {
        let (level, target) = (kind.metadata.level().as_str(), kind.metadata.target());
        let (held_back, name) = (kind.held_back(), kind.metadata.name());
        match self.is_json {
            true => {
                let message = "lines were held back that repeat others";
                let line = json!({
                    "level": level,
                    "target": target,
                    "message": message,
                    "held_back": held_back,
                    "place": name,
                });
                line.to_string()
            }
            false => {
                format!("{level:>5} {target}: {held_back} more lines like those before ({name})")
            }
        }
    }
}

impl<S, N, F> FormatEvent<S, N> for Braked<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let (is_written, sums) = self.admit(event.metadata(), Instant::now());
        for sum in sums {
            writeln!(writer, "{sum}")?;
        }
        match is_written {
            true => self.inner.format_event(context, writer, event),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    /// What is written, for a test to read.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Page {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_place_writes_a_few_lines_and_other_places_theirs() {
        let page = Page::default();
        let format = tracing_subscriber::fmt::format().with_ansi(false);
        let logging = tracing_subscriber::fmt()
            .event_format(Braked::new(format, false))
            .with_writer(page.clone())
            .finish();
        tracing::subscriber::with_default(logging, || {
            (0..100).for_each(|n| tracing::warn!(n, "it is gone"));
            tracing::warn!("something else");
            (0..100).for_each(|_| tracing::warn!(target: AUDIT, "somebody was refused"));
        });
        let page = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        assert_eq!(page.matches("it is gone").count(), LINES_MAX as usize, "{page}");
        assert!(page.contains("something else"), "{page}");
        assert_eq!(page.matches("somebody was refused").count(), 100, "{page}");
    }

    #[test]
    fn what_was_held_back_is_summed_up_when_anything_is_logged_later() {
        let metadata = tracing::callsite!(
            name: "there",
            kind: tracing::metadata::Kind::EVENT,
            fields: message
        );
        let metadata = tracing::Callsite::metadata(metadata);
        let (braked, start) = (Braked::new((), true), Instant::now());
        let admitted = (0..100).filter(|_| braked.admit(metadata, start).0).count();
        assert_eq!(admitted, LINES_MAX as usize);
        let (is_written, sums) = braked.admit(metadata, start + STRETCH);
        let [sum] = &sums[..] else { panic!("there is one kind: {sums:?}") };
        let sum: serde_json::Value = serde_json::from_str(sum).unwrap();
        assert!(is_written && sum["held_back"] == 100 - LINES_MAX, "{sum}");
        assert!(braked.admit(metadata, start + 2 * STRETCH).1.is_empty(), "it is said once");
    }
}
