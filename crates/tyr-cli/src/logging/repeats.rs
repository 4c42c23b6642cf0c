//! Lines of one kind that come again and again are held back, and summed up.
//!
//! A node whose peers restart says the same of each message that it could not send. Of each kind,
//! by the place in the program that says it, so many lines are written in a window of time; how
//! many more there were is said in a line of its own, when the window is over and anything is
//! logged.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use tyr_runtime::repeats::RepeatLimit;

use super::AUDIT;

/// A window of time.
const WINDOW: Duration = Duration::from_secs(10);

/// Lines of one kind that are written in a window.
const LINES_MAX: u64 = 5;

/// The place in the program that says something: the kind of what it says.
#[derive(Debug, PartialEq, Eq)]
struct Place(&'static Metadata<'static>);

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.callsite().hash(state);
    }
}

/// Formats what comes through, and writes nothing of the rest.
pub struct RepeatLimited<F> {
    inner: F,
    is_json: bool,
    /// By the place that says it: as many as the program has.
    limit: Mutex<RepeatLimit<Place>>,
}

impl<F> RepeatLimited<F> {
    /// Holds back what repeats of what this formats.
    pub fn new(inner: F, is_json: bool) -> Self {
        let limit = Mutex::new(RepeatLimit::new(LINES_MAX, WINDOW, usize::MAX));
        Self { inner, is_json, limit }
    }

    /// Whether the line is written; and what was held back in windows that are over.
    fn admit(&self, metadata: &'static Metadata<'static>, now: Instant) -> (bool, Vec<String>) {
        if metadata.target() == AUDIT {
            return (true, Vec::new()); // Each of them is another act.
        }
        let mut limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = limit.end_windows(now);
        let sums = ended.into_iter().map(|(place, held_back)| self.sum(&place, held_back));
        (limit.admit(Place(metadata), now).is_some(), sums.collect())
    }

    /// The line that stands for those which were held back.
    fn sum(&self, Place(metadata): &Place, held_back: u64) -> String {
        let (level, target, name) = (metadata.level().as_str(), metadata.target(), metadata.name());
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

impl<S, N, F> FormatEvent<S, N> for RepeatLimited<F>
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
            .event_format(RepeatLimited::new(format, false))
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
        let (limited, start) = (RepeatLimited::new((), true), Instant::now());
        let admitted = (0..100).filter(|_| limited.admit(metadata, start).0).count();
        assert_eq!(admitted, LINES_MAX as usize);
        let (is_written, sums) = limited.admit(metadata, start + WINDOW);
        let [sum] = &sums[..] else { panic!("there is one kind: {sums:?}") };
        let sum: serde_json::Value = serde_json::from_str(sum).unwrap();
        assert!(is_written && sum["held_back"] == 100 - LINES_MAX, "{sum}");
        assert!(limited.admit(metadata, start + 2 * WINDOW).1.is_empty(), "it is said once");
    }
}
