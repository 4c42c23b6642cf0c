//! A node of Týr: drives the machines and the store with threads, clocks and disks.
