//! `plimsoll operator policy explain`: what a user may request, and under which conditions.

use std::io::Write;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use plimsoll_api::olm::action::{ActionRequester, ActionSpec};
use plimsoll_operators::actions::attributes::NamedClass;
use plimsoll_operators::actions::check::unknown_class;
use plimsoll_operators::actions::policy::explanation::{ExplainedRule, explained};
use plimsoll_operators::actions::policy::{NamedPolicy, PolicyRequest, is_about};
use serde::Serialize;

use super::{Policies, PolicyFiles, authenticated};
use crate::exit;
use crate::render::format::Format;
use crate::render::table;

/// Arguments of `plimsoll operator policy explain`.
#[derive(Debug, Args)]
pub struct ExplainArguments {
    /// Classes of Actions; all without any
    #[arg(value_name = "CLASS")]
    classes: Vec<String>,
    #[command(flatten)]
    files: PolicyFiles,
    /// User who requests Actions; `system:serviceaccount:NAMESPACE:NAME` for a service account
    #[arg(long = "as", value_name = "USER")]
    user: String,
    /// Group of the user; may be given several times
    #[arg(long = "as-group", value_name = "GROUP")]
    groups: Vec<String>,
    /// Output format
    #[arg(long, short, value_name = "FORMAT", default_value_t)]
    output: Format,
}

/// What a policy says of a class.
#[derive(Debug, Serialize)]
struct ExplainedPolicy {
    class: String,
    /// Empty if no policy is about the class.
    policy: String,
    /// `Enforce`, `Warn` or `Audit`; empty without a policy.
    mode: &'static str,
    rules: Vec<ExplainedRule>,
}

/// Runs `plimsoll operator policy explain`.
///
/// # Errors
///
/// When files cannot be read, or there is no class of a name.
pub(in super::super) fn explain(
    arguments: &ExplainArguments,
    out: &mut dyn Write,
) -> Result<ExitCode, anyhow::Error> {
    let policies = arguments.files.read()?;
    let requester = authenticated(&arguments.user, &arguments.groups);
    let mut classes = Vec::new();
    for name in &arguments.classes {
        match NamedClass::find(&policies.classes, name) {
            Some(class) => classes.push(class),
            None => bail!("{}", unknown_class(name, &policies.classes)),
        }
    }
    if arguments.classes.is_empty() {
        classes = policies.classes.iter().collect();
    }
    let explained: Vec<ExplainedPolicy> =
        classes.into_iter().flat_map(|it| of_class(it, &policies, &requester)).collect();
    if arguments.output == Format::Name {
        bail!("-o name does not apply: what is printed are no objects");
    }
    if !arguments.output.write(&explained, out)? {
        print(&explained, out)?;
    }
    Ok(exit::SUCCESS.into())
}

/// Returns what policies say of a class for a user: at least that none does.
fn of_class(
    class: &NamedClass,
    policies: &Policies,
    requester: &ActionRequester,
) -> Vec<ExplainedPolicy> {
    let labels = policies.files.labels(&policies.namespace);
    let spec = ActionSpec::default();
    let (namespace, windows) = (&policies.namespace, &policies.windows);
    let request = PolicyRequest::unplanned(namespace, &labels, requester, &spec, class, windows);
    let about = policies.files.policies.iter().filter(|it| is_about(&it.spec, &request));
    let of_policy = |NamedPolicy { name, spec }: &NamedPolicy| {
        let modes = [("Enforce", &spec.enforce), ("Warn", &spec.warn), ("Audit", &spec.audit)];
        let rules = modes.map(|(mode, rules)| {
            rules.as_ref().map(|rules| ExplainedPolicy {
                class: class.name.clone(),
                policy: name.clone(),
                mode,
                rules: explained(rules),
            })
        });
        rules.into_iter().flatten()
    };
    let mut found: Vec<ExplainedPolicy> = about.flat_map(of_policy).collect();
    if !found.iter().any(|it| it.mode == "Enforce") {
        let meaning = "no policy grants it".to_owned();
        found.push(ExplainedPolicy {
            class: class.name.clone(),
            policy: String::new(),
            mode: "",
            rules: vec![ExplainedRule { rule: String::new(), meaning }],
        });
    }
    found
}

fn print(explained: &[ExplainedPolicy], out: &mut dyn Write) -> Result<(), anyhow::Error> {
    let rows: Vec<Vec<String>> = explained
        .iter()
        .flat_map(|it| {
            let row = |rule: &ExplainedRule| {
                let texts = [&it.class, &it.policy, it.mode, &rule.rule, &rule.meaning];
                texts.map(str::to_owned).to_vec()
            };
            it.rules.iter().map(row)
        })
        .collect();
    table::print_whole(out, &["CLASS", "POLICY", "MODE", "RULE", "MEANING"], &rows)?;
    Ok(())
}
