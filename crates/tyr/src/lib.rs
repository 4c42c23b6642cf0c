//! Týr, a transactional blob store: open a directory, run transactions over many blobs.
