//! Every call that is started is answered once, whatever becomes of it.

use std::future::{pending, ready};
use std::sync::atomic::{AtomicUsize, Ordering};

use oneshot::async_channel;
use tyr::{ErrorKind, KeyspaceConfig};

use super::*;

type Answer = std::result::Result<u32, Failure>;

fn start(queue: &Queue<Answer>, tag: u64, call: impl Future<Output = u32> + Send + 'static) {
    queue.start(tag, call.map(Ok), Err).unwrap();
}

fn is_readable(descriptor: RawFd) -> bool {
    // What the kernel says of it: a raw descriptor cannot be polled in safe code.
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}")).unwrap();
    let count = info.lines().find_map(|line| line.strip_prefix("eventfd-count:")).unwrap();
    u64::from_str_radix(count.trim(), 16).unwrap() > 0
}

#[test]
fn what_can_be_answered_at_once_is_there_when_start_returns() {
    let queue = Queue::new();
    start(&queue, 7, ready(1));
    start(&queue, 8, ready(2));
    let taken = queue.take(9, Some(Duration::ZERO));
    assert_eq!(taken.iter().map(|it| it.tag).collect::<Vec<_>>(), [7, 8]);
    assert_eq!(taken[1].answer, Ok(2));
    assert!(queue.take(9, Some(Duration::ZERO)).is_empty());
}

#[test]
fn what_is_answered_later_wakes_who_waits() {
    let queue = Queue::new();
    let (sender, receiver) = async_channel();
    start(&queue, 1, receiver.map(|answer| answer.unwrap()));
    let waiting = std::thread::spawn({
        let queue = queue.clone();
        move || queue.take(1, None)
    });
    assert_eq!(queue.under_way(), 1);
    sender.send(5).unwrap();
    assert_eq!(waiting.join().unwrap(), [Completion { tag: 1, answer: Ok(5) }]);
}

#[test]
fn the_descriptor_is_readable_while_there_is_something_to_take() {
    let queue = Queue::new();
    start(&queue, 1, ready(1));
    let descriptor = queue.descriptor().unwrap();
    assert!(is_readable(descriptor));
    start(&queue, 2, ready(2));
    queue.take(1, None);
    assert!(is_readable(descriptor), "one is left");
    queue.take(1, None);
    assert!(!is_readable(descriptor));
    start(&queue, 3, ready(3));
    assert!(is_readable(descriptor));
    assert_eq!(queue.descriptor().unwrap(), descriptor);
    queue.close();
    assert!(!is_readable(descriptor));
}

#[test]
fn a_cancelled_call_is_answered_once_and_others_go_on() {
    let queue = Queue::new();
    start(&queue, 1, pending());
    start(&queue, 1, pending());
    start(&queue, 2, pending());
    assert_eq!(queue.cancel(1), 2);
    let taken: Vec<_> = (0..2).flat_map(|_| queue.take(1, None)).collect();
    assert!(taken.iter().all(|it| it.tag == 1 && it.answer == Err(Failure::Cancelled)));
    assert_eq!(queue.under_way(), 1);
    assert_eq!(queue.cancel(1), 0);
}

#[test]
fn a_panic_in_a_call_is_its_answer() {
    let queue = Queue::new();
    start(&queue, 1, async { panic!("rule {} is broken", 3) });
    start(&queue, 2, ready(2));
    let taken = queue.take(2, None);
    assert_eq!(taken[0].answer, Err(Failure::Panicked("rule 3 is broken".into())));
    assert_eq!(taken[1].answer, Ok(2));
}

#[test]
fn a_closed_queue_has_nothing_under_way_and_starts_nothing() {
    struct Lent(Arc<AtomicUsize>);
    impl Drop for Lent {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let queue = Queue::new();
    let given_back = Arc::new(AtomicUsize::new(0));
    for tag in 0..50 {
        let lent = Lent(Arc::clone(&given_back));
        start(&queue, tag, async move {
            let _lent = lent;
            pending().await
        });
    }
    queue.close();
    assert_eq!(given_back.load(Ordering::Relaxed), 50);
    assert_eq!(queue.under_way(), 0);
    assert!(queue.take(9, None).is_empty(), "who waits for a closed queue would wait for ever");
    let refused = queue.start(1, ready(Ok(1)), Err).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable);
}

#[test]
fn more_calls_than_fit_are_refused_until_some_are_taken() {
    let queue = Queue::new();
    for tag in 0..CALLS_MAX as u64 {
        start(&queue, tag, ready(0));
    }
    let refused = queue.start(1, ready(Ok(1)), Err).unwrap_err();
    assert!(refused.message().contains("65536"), "{refused}");
    queue.take(1, None);
    start(&queue, 1, ready(1));
}

#[test]
fn thousands_of_calls_of_a_store_from_two_threads_are_answered_once_each() {
    let folder = tempfile::tempdir().unwrap();
    let tyr = tyr::blocking::Tyr::open(folder.path()).unwrap();
    let data = tyr.create_keyspace("data", KeyspaceConfig::default()).unwrap().into_async();
    let queue = Queue::<std::result::Result<u64, String>>::new();
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let (queue, data) = (queue.clone(), data.clone());
            scope.spawn(move || {
                for at in 0..500 {
                    let data = data.clone();
                    let call = async move {
                        let offset = data.append(format!("log {thread}"), "12345678").await;
                        offset.map_err(|error| error.to_string())
                    };
                    let failed = |failure| Err(format!("{failure:?}"));
                    queue.start(thread * 500 + at, call, failed).unwrap();
                }
            });
        }
    });
    let mut offsets = vec![None; 1000];
    while offsets.iter().any(Option::is_none) {
        for Completion { tag, answer } in queue.take(64, None) {
            assert_eq!(offsets[tag as usize].replace(answer.unwrap()), None, "{tag} came twice");
        }
    }
    for thread in 0..2 {
        let mut of_one: Vec<u64> =
            offsets[thread * 500..][..500].iter().map(|it| it.unwrap()).collect();
        of_one.sort_unstable();
        assert_eq!(of_one, (0..500).map(|at| at * 8).collect::<Vec<u64>>());
    }
    drop(data);
    tyr.close().unwrap();
}
