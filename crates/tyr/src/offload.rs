//! Work that may wait for the disk, away from the executor's threads.

/// Runs `work` on a pool of threads meant for blocking.
pub(crate) async fn offload<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    ::blocking::unblock(work).await
}
