//! Ctrl-C and SIGTERM: commands are asked to stop, and the store is closed behind them.
//!
//! The command runs on its own thread; this one waits for its end or for a signal. A command that
//! loops looks at the [`Interrupt`] and ends by itself. One that is stuck (in a read of a silent
//! standard input, say) is left behind after a moment: its transaction never committed, so the
//! store is closed without it. A second signal ends the process at once.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{Failure, Outcome};

/// How long a command has to end after a signal before it is left behind.
const GRACE: Duration = Duration::from_secs(2);

/// Stack of the command's thread; what the main thread has by default.
const STACK_LEN: usize = 8 << 20;

/// The exit code of a process whose thread panicked, as Rust gives it.
const PANIC_CODE: u8 = 101;

/// Whether, and by which signal, the command is asked to stop. Clones share it.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Default)]
struct State {
    signal: AtomicI32,
    is_expected: AtomicBool,
}

impl Interrupt {
    /// Whether a signal came.
    pub fn is_raised(&self) -> bool {
        self.0.signal.load(Ordering::Relaxed) != 0
    }

    /// Says that a signal is how this command is meant to end: then it may take its time to, and
    /// its own outcome counts.
    pub fn expect(&self) {
        self.0.is_expected.store(true, Ordering::Relaxed);
    }

    fn is_expected(&self) -> bool {
        self.0.is_expected.load(Ordering::Relaxed)
    }

    /// An error once a signal came; loops call this once a round.
    pub fn check(&self) -> Outcome {
        match self.0.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Failure::Interrupted(signal)),
        }
    }

    /// The same for code that speaks `io::Error`.
    pub fn check_io(&self) -> io::Result<()> {
        self.check().map_err(|failure| io::Error::other(failure.to_string()))
    }

    fn raise(&self, signal: i32) {
        self.0.signal.store(signal, Ordering::Relaxed);
    }
}

enum Event {
    Signal(i32),
    Done(Outcome),
    Panicked,
}

/// Runs `command` until it ends or a signal ends it; `abandon` closes what a stuck one leaves.
pub fn supervise(
    interrupt: &Interrupt,
    command: impl FnOnce() -> Outcome + Send + 'static,
    abandon: impl FnOnce(),
) -> Result<Outcome, u8> {
    let (events, inbox) = channel();
    watch_signals(interrupt.clone(), events.clone());
    thread::Builder::new()
        .name("command".to_owned())
        .stack_size(STACK_LEN)
        .spawn(move || {
            let event = match catch_unwind(AssertUnwindSafe(command)) {
                Ok(outcome) => Event::Done(outcome),
                Err(_) => Event::Panicked,
            };
            // The receiver lives until the process ends: it is this thread's parent.
            let _ = events.send(event);
        })
        .expect("a process that just started can start one thread");
    match inbox.recv() {
        Ok(Event::Done(outcome)) => Ok(outcome),
        Ok(Event::Panicked) | Err(_) => Err(PANIC_CODE),
        Ok(Event::Signal(_)) if interrupt.is_expected() => wait_for_end(&inbox),
        Ok(Event::Signal(signal)) => wait_out(&inbox, signal, abandon),
    }
}

fn wait_for_end(inbox: &Receiver<Event>) -> Result<Outcome, u8> {
    match inbox.recv() {
        Ok(Event::Done(outcome)) => Ok(outcome),
        Ok(Event::Panicked) | Err(_) => Err(PANIC_CODE),
        Ok(Event::Signal(signal)) => Err(Failure::Interrupted(signal).exit_code()),
    }
}

fn wait_out(inbox: &Receiver<Event>, signal: i32, abandon: impl FnOnce()) -> Result<Outcome, u8> {
    let interrupted = Failure::Interrupted(signal);
    match inbox.recv_timeout(GRACE) {
        // It may have ended well just before it saw the signal; the user asked it to stop.
        Ok(Event::Done(Ok(()))) => Ok(Err(interrupted)),
        Ok(Event::Done(Err(failure))) => Ok(Err(match failure {
            Failure::Store(_) | Failure::Method(_) | Failure::Output(_) => interrupted,
            Failure::Usage(_)
            | Failure::Differences(_)
            | Failure::Interrupted(_)
            | Failure::Command(_) => failure,
        })),
        Ok(Event::Panicked) => Err(PANIC_CODE),
        Ok(Event::Signal(_)) => Err(interrupted.exit_code()),
        Err(_) => {
            abandon();
            Ok(Err(interrupted))
        }
    }
}

fn watch_signals(interrupt: Interrupt, events: Sender<Event>) {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else {
        eprintln!("tyr: cannot watch for signals; Ctrl-C ends the process at once");
        return;
    };
    thread::spawn(move || {
        for signal in signals.forever() {
            interrupt.raise(signal);
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_interrupt_is_seen_by_every_clone_and_names_its_signal() {
        let interrupt = Interrupt::default();
        let clone = interrupt.clone();
        assert!(clone.check().is_ok());
        interrupt.raise(SIGTERM);
        assert!(clone.is_raised());
        assert!(clone.check_io().is_err());
        assert_eq!(clone.check().unwrap_err().exit_code(), 143);
    }

    #[test]
    fn a_command_that_ends_after_a_signal_counts_as_interrupted() {
        let (events, inbox) = channel();
        events.send(Event::Done(Ok(()))).unwrap();
        let outcome = wait_out(&inbox, SIGINT, || panic!("nothing is stuck"));
        assert_eq!(outcome.unwrap().unwrap_err().exit_code(), 130);
    }

    #[test]
    fn a_command_that_expects_the_signal_says_how_it_ended() {
        let (events, inbox) = channel();
        events.send(Event::Done(Ok(()))).unwrap();
        assert!(wait_for_end(&inbox).unwrap().is_ok());
        events.send(Event::Signal(SIGINT)).unwrap();
        assert_eq!(wait_for_end(&inbox).unwrap_err(), 130);
    }

    #[test]
    fn a_second_signal_ends_at_once() {
        let (events, inbox) = channel();
        events.send(Event::Signal(SIGINT)).unwrap();
        assert_eq!(wait_out(&inbox, SIGINT, || panic!("no time for that")).unwrap_err(), 130);
    }
}
