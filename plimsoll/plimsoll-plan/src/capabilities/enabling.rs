//! What enabling a capability would bring to a cluster.

use std::collections::BTreeSet;

use plimsoll_content::Manifest;
use plimsoll_content::capability::CapabilityRegistry;
use plimsoll_content::inclusion::{
    Context, Decision, EnabledCapabilities, capability_names, decide,
};

/// What enabling a capability would bring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enabling<'a> {
    /// The manifests that would be applied that are not now. For a capability that is enabled:
    /// those that are applied because it is.
    pub manifests: Vec<&'a Manifest>,
    /// Manifests of the capability that would still be left out, and the other capabilities that
    /// they belong to and that are disabled.
    pub partly: Vec<(&'a Manifest, BTreeSet<&'a str>)>,
    /// How many manifests of it are for other clusters: another profile, feature set or gate.
    pub elsewhere: usize,
    /// What it requires that is not enabled.
    pub missing: BTreeSet<&'a str>,
}

/// What enabling a capability would bring to a cluster where some are enabled. The capabilities
/// of the context are not considered.
pub fn enabling<'a>(
    name: &str,
    manifests: &'a [Manifest],
    context: &Context,
    enabled: &BTreeSet<String>,
    registry: &'a CapabilityRegistry,
) -> Enabling<'a> {
    let without = Context { capabilities: None, ..context.clone() };
    let mut with: BTreeSet<String> = enabled.clone();
    with.insert(name.to_owned());
    let all = manifests.iter().flat_map(|it| capability_names(&it.annotations));
    let known = all.map(str::to_owned).collect();
    let capabilities = EnabledCapabilities { known, enabled: with.clone() };
    let with_it = Context { capabilities: Some(capabilities), ..context.clone() };
    let mut found = Enabling {
        manifests: Vec::new(),
        partly: Vec::new(),
        elsewhere: 0,
        missing: registry.missing_for(name, enabled),
    };
    for manifest in manifests {
        let names = capability_names(&manifest.annotations);
        if !names.contains(&name) {
            continue;
        }
        if decide(manifest, &without) != Decision::Included {
            found.elsewhere += 1;
        } else if decide(manifest, &with_it) == Decision::Included {
            found.manifests.push(manifest);
        } else {
            let others = names.into_iter().filter(|name| !with.contains(*name)).collect();
            found.partly.push((manifest, others));
        }
    }
    found
}
