//! Whether a CustomResourceDefinition may be replaced by another one, and what it would break.
