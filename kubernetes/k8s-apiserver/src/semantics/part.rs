//! The parts of an object that have endpoints of their own.

/// The part of an object that a write reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectPart {
    /// All but the status, if that has an endpoint of its own.
    Main,
    /// The status.
    Status,
    /// Another subresource that takes the whole object, such as `finalize` or `approval`.
    Subresource(&'static str),
}

impl ObjectPart {
    /// The subresource in `managedFields`.
    pub(crate) fn subresource(self) -> &'static str {
        match self {
            Self::Main => "",
            Self::Status => "status",
            Self::Subresource(name) => name,
        }
    }
}
