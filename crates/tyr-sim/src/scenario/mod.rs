//! Workloads and faults, composed in a few lines of text.
