//! What a machine said when it found itself broken: a violation, not the end of the program.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Once;

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `body`; when it panics, answers what was said and where instead of printing it.
///
/// The first use puts a hook in place that does this for runs on any thread, and leaves panics of
/// everything else alone.
pub fn watch(body: impl FnOnce() + std::panic::UnwindSafe) -> Option<String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let former = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match IS_WATCHED.get() {
            true => {
                let place = info.location().map(ToString::to_string).unwrap_or_default();
                let text = text(info.payload());
                SAID.set(Some(format!("{place}: {text}")));
            }
            false => former(info),
        }));
    });
    IS_WATCHED.set(true);
    let result = std::panic::catch_unwind(body);
    IS_WATCHED.set(false);
    let said = SAID.take();
    result.err().map(|payload| said.unwrap_or_else(|| text(payload.as_ref())))
}

fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_answered_with_its_place() {
        let said = watch(|| assert!("a".len() > 1, "short: {}", 1)).unwrap();
        assert!(said.contains("panic.rs") && said.contains("short: 1"), "{said}");
        assert_eq!(watch(|| {}), None);
    }
}
