//! How fast calls of one object are that many make at once, and what that costs.
//!
//! ```sh
//! cargo run --release -p tyr-object --example hot_object -- tyr://127.0.0.1:7070 64 10 together
//! ```
//!
//! The last word is `together`, as calls are, or `apart`: each in a transaction of its own, run
//! again here when it meets others.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tyr::blocking::Tyr;
use tyr::{Error, Result};
use tyr_object::blocking::Classes;
use tyr_object::{Call, keyspace_config};

const SCRIPT: &str = r#"
return { name = "hot", methods = {
  count = { kind = "call", run = function(cx, blob, input)
    return tostring(blob:transform(0, "add", "u64", 1))
  end },
} }"#;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [address, callers, seconds, mode] = &words[..] else {
        return Err(Error::invalid("say ADDRESS CALLERS SECONDS together|apart"));
    };
    let number = |text: &str| text.parse().map_err(|_| Error::invalid("that is no number"));
    let (callers, seconds): (u64, u64) = (number(callers)?, number(seconds)?);
    let store = Tyr::connect(address)?;
    let keyspace = store.keyspace_or_create("hot", keyspace_config())?;
    let classes = Classes::of(&store);
    classes.install(None, SCRIPT.as_bytes())?;
    classes.enable("hot", "hot")?;
    let call = Call::new("hot", "count", "");
    let one = || match mode.as_str() {
        "together" => classes.call(&keyspace, "object", &call).map(drop).map_err(Error::from),
        _ => store.transact(|transaction| {
            classes.call_in(transaction, &keyspace, "object", &call).map(drop).map_err(Error::from)
        }),
    };
    let (done, failed, is_over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let counter = if one().is_ok() { &done } else { &failed };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_secs(seconds));
        is_over.store(true, Ordering::Relaxed);
    });
    let took = begun.elapsed().as_secs_f64();
    let (done, failed) = (done.into_inner(), failed.into_inner());
    println!("{mode}: {:.0} calls/s of {callers} callers, {failed} failed", done as f64 / took);
    store.close()
}
