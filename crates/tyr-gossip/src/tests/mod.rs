//! Machines on a network and a clock of the test's own; and some on real sockets.
//!
//! [`world`] is the network: it delays, loses, doubles and cuts, from one seed. What is tested on
//! it: [`detection`] finds what failed and in which time, [`faults`] nothing else, [`rumours`] what
//! travels besides. [`sockets`] has the driver on the loopback.

mod detection;
mod faults;
mod rumours;
mod sockets;
mod world;
