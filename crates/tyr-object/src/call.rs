//! What is called.

use tyr::Bytes;

/// A method of a class, and its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The class.
    pub class: String,
    /// Its method.
    pub method: String,
    /// What the method is given; at most 1 MiB.
    pub input: Bytes,
}

impl Call {
    /// This method with this input.
    pub fn new(
        class: impl Into<String>,
        method: impl Into<String>,
        input: impl Into<Bytes>,
    ) -> Self {
        Self { class: class.into(), method: method.into(), input: input.into() }
    }
}
