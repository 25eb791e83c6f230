//! Malformed objects of built-in kinds, and what kube-apiserver says of them.
