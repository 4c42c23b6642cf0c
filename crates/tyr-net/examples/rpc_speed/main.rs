//! What a request and its answer cost in processor time, at both ends together: the network
//! against the least that a framed RPC over tokio does.
//!
//! `cargo run --release -p tyr-net --example rpc_speed`. Requests are reads of one blob, some 60
//! bytes; answers have 64 bytes or 1 KiB. Both ends are in this process, one thread each for the
//! sockets; callers are as many as there are requests in flight, a task each, *here* on the thread
//! of the socket, *apart* on another, as the callers of a client are. *rounds* asks and answers
//! where messages arrive, as the driver of a node does.

mod bare;
mod network;

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Measurements of each kind; the cheapest counts, the others were disturbed.
const ROUNDS: usize = 3;

/// What went by while something ran.
#[derive(Clone, Copy)]
struct Cost {
    processor_us: f64,
    wall_us: f64,
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The cost of one of `count` requests.
fn measure(count: u64, run: &mut dyn FnMut(u64)) -> Cost {
    run(count / 10);
    let mut best = Cost { processor_us: f64::INFINITY, wall_us: f64::INFINITY };
    for _ in 0..ROUNDS {
        let (processor, wall) = (processor_time(), Instant::now());
        run(count);
        let each = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
        let cost = Cost {
            processor_us: each(processor_time() - processor),
            wall_us: each(wall.elapsed()),
        };
        if cost.processor_us < best.processor_us {
            best = cost;
        }
    }
    best
}

fn main() {
    println!("processor us (wall us) of one RPC, both ends");
    println!(
        "answer  in flight        bare, here  network, rounds      bare, apart   network, apart"
    );
    for answer_len in [64, 1024] {
        for in_flight in [1, 32, 128] {
            let count = if in_flight == 1 { 20_000 } else { 200_000 };
            let bare = bare::Pair::start(in_flight, answer_len);
            let network = network::Pair::start(in_flight, answer_len);
            let costs = [
                measure(count, &mut |count| bare.run_here(count)),
                measure(count, &mut |count| network.run_rounds(count)),
                measure(count, &mut |count| bare.run_apart(count)),
                measure(count, &mut |count| network.run_apart(count)),
            ];
            network.close();
            let show = |cost: Cost| format!("{:6.2} ({:6.2})", cost.processor_us, cost.wall_us);
            println!("{answer_len:6}  {in_flight:9}   {}", costs.map(show).join("   "));
        }
    }
}
