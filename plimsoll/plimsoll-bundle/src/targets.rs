//! Which namespaces an operator may be installed for (BUN-12).
//!
//! Upstream: github.com/operator-framework/operator-controller/internal/operator-controller/rukpak/render/render.go: validateTargetNamespaces

use std::collections::BTreeSet;

use k8s_cel::names;

use crate::csv::InstallMode;

/// The namespaces that an operator watches: the given ones, each once and in the given order, or all
/// (one empty name) if none are given and the operator can do that.
///
/// # Errors
/// Why it cannot be installed for them.
pub(crate) fn target_namespaces(
    modes: &BTreeSet<InstallMode>,
    install_namespace: &str,
    wanted: &[String],
) -> Result<Vec<String>, String> {
    let mut targets: Vec<String> = Vec::new();
    for namespace in wanted {
        if !targets.contains(namespace) {
            targets.push(namespace.clone());
        }
    }
    if install_namespace.is_empty() {
        return Err("the namespace that it is installed into is not given".to_owned());
    }
    for namespace in
        targets.iter().filter(|it| !it.is_empty()).chain([&install_namespace.to_owned()])
    {
        if let Some(error) = names::label(namespace).into_iter().next() {
            return Err(format!("`{namespace}` is not the name of a namespace: {error}"));
        }
    }
    let can = |mode| modes.contains(&mode);
    if targets.is_empty() {
        if can(InstallMode::AllNamespaces) {
            return Ok(vec![String::new()]);
        }
        let number = if can(InstallMode::MultiNamespace) { "one or more" } else { "one" };
        return Err(format!(
            "it has to be installed for {number} namespace, none is given{}",
            supported(modes)
        ));
    }
    let listed = || targets.join(", ");
    let refusal = match targets.as_slice() {
        [all] if all.is_empty() => {
            (!can(InstallMode::AllNamespaces)).then(|| "it cannot watch all namespaces".to_owned())
        }
        [own] if own == install_namespace => (!can(InstallMode::OwnNamespace))
            .then(|| format!("it cannot watch the namespace that it runs in, {own}")),
        [_] => (!can(InstallMode::SingleNamespace))
            .then(|| format!("it cannot watch another single namespace: {}", listed())),
        several if several.iter().any(String::is_empty) => {
            Some(format!("it cannot watch all namespaces and {} besides", listed()))
        }
        _ if !can(InstallMode::MultiNamespace) => {
            Some(format!("it cannot watch several namespaces: {}", listed()))
        }
        several if several.iter().any(|it| it == install_namespace) => {
            (!can(InstallMode::OwnNamespace)).then(|| {
                format!("it cannot watch the namespace that it runs in, {install_namespace}")
            })
        }
        _ => None,
    };
    match refusal {
        Some(refusal) => Err(format!("{refusal}{}", supported(modes))),
        None => Ok(targets),
    }
}

fn supported(modes: &BTreeSet<InstallMode>) -> String {
    if modes.is_empty() {
        return "; it supports no install mode".to_owned();
    }
    let names: Vec<&str> = modes.iter().map(|mode| mode.as_str()).collect();
    format!("; it supports {}", names.join(", "))
}
