//! Týr's protocols as pure machines: commit, reads, versions.
