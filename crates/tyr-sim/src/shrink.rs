//! A smaller run that still fails.
