//! A bundle, its configuration and the namespaces that it watches, as objects in the order they are
//! applied.
