//! Where published OpenAPI says less, or something else, than kube-apiserver does.
//!
//! Everything that is true of a built-in type and not written in its OpenAPI document belongs here,
//! apart from defaults that are code in kube-apiserver (see `builtin_defaults`).
use super::node::{Node, Scalar};

/// Definitions that kube-apiserver treats specially.
///
/// - A quantity and an int-or-string are published as a choice between a number and a string, with
///   no type; for ownership and validation they are scalars.
pub(super) fn node(definition: &str) -> Option<Node> {
    match definition {
        "io.k8s.apimachinery.pkg.api.resource.Quantity"
        | "io.k8s.apimachinery.pkg.util.intstr.IntOrString" => Some(Node {
            scalar: Some(Scalar::Untyped),
            int_or_string: definition.ends_with("IntOrString"),
            ..Node::default()
        }),
        _ => None,
    }
}
