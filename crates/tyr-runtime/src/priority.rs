//! Which threads run first where there are more than processors.
//!
//! Leases, heartbeats and gossip are little work that must not be late: a node whose monitor is
//! not heard for a second is replaced, and everybody waits for that. So their threads go before
//! those that work for clients, as far as the system lets a process say so: for root, with
//! `CAP_SYS_NICE`, or within the limit `RLIMIT_NICE`. Without the right nothing changes.

/// How much before others, as `nice` has it: ten steps are about nine times the share.
#[cfg(target_os = "linux")]
const FIRST: i32 = -10;

/// The calling thread goes first from now on, if the system allows it.
pub fn go_first() {
    // Elsewhere this would be said of the whole process.
    #[cfg(target_os = "linux")]
    {
        let thread = rustix::thread::gettid();
        if let Err(error) = rustix::process::setpriority_process(Some(thread), FIRST) {
            tracing::debug!(%error, "the thread has no priority over others");
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;
    use rustix::thread::gettid;

    #[test]
    fn one_thread_goes_first_and_the_others_stay_as_they_were() {
        let before = getpriority_process(None).unwrap();
        let of_thread = std::thread::spawn(|| {
            super::go_first();
            getpriority_process(Some(gettid())).unwrap()
        });
        let after = of_thread.join().unwrap();
        // Who may not, stays.
        assert!(after == super::FIRST || after == before, "{after}");
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
