//! What a simulated node has applied.
