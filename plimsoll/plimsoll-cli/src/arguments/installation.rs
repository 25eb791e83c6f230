//! What a new cluster requests of its release: capabilities, by name or by an install-config.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use plimsoll_api::config::CapabilitiesSpec;
use plimsoll_content::Payload;
use plimsoll_content::inclusion::DEFAULT_FEATURE_SET;
use plimsoll_content::yaml;
use plimsoll_plan::capabilities::install_config::{Assessment, assess};
use plimsoll_source::bounded::{WRITTEN_SIZE_MAX, read_text};
use serde_json::Value;

use super::capability::{check_names, set_named};

/// The capabilities that a new cluster requests; without any of these, those of the default set.
#[derive(Debug, Clone, Default, Args)]
pub struct InstallationArguments {
    /// Install-config with the capabilities to request; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["baseline", "capability"])]
    pub install_config: Option<PathBuf>,
    /// Capability set to request, as in a ClusterVersion; without it, vCurrent
    #[arg(long, value_name = "SET")]
    pub baseline: Option<String>,
    /// A capability to request beyond the set; repeatable
    #[arg(long, value_name = "NAME")]
    pub capability: Vec<String>,
}

/// What a new cluster requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RequestedInstallation {
    /// For the ClusterVersion; `None` for those of the default set.
    pub(crate) capabilities: Option<CapabilitiesSpec>,
    /// The feature set that is given, or that of the install-config; `None` for neither.
    pub(crate) feature_set: Option<String>,
}

impl InstallationArguments {
    /// What is requested of a release, with the feature set that an option gives.
    ///
    /// # Errors
    ///
    /// When the release has no capability or set of a name, or the install-config cannot be read or
    /// is invalid; the message says which may be meant.
    pub(crate) fn of(
        &self,
        payload: &Payload,
        profile: &str,
        feature_set: Option<&str>,
    ) -> anyhow::Result<RequestedInstallation> {
        if let Some(path) = &self.install_config {
            return InstallConfig::read(path)?.request(payload, profile, feature_set);
        }
        let registry = &payload.capabilities;
        if let Some(set) = &self.baseline {
            set_named(registry, "--baseline", set)?;
        }
        check_names(registry, "--capability", &self.capability)?;
        let is_chosen = self.baseline.is_some() || !self.capability.is_empty();
        Ok(RequestedInstallation {
            capabilities: is_chosen.then(|| CapabilitiesSpec {
                baseline_capability_set: self.baseline.clone().unwrap_or_default(),
                additional_enabled_capabilities: self.capability.clone(),
            }),
            feature_set: feature_set.map(str::to_owned),
        })
    }
}

/// An install-config as it was read.
#[derive(Debug)]
pub(crate) struct InstallConfig {
    /// How messages name it.
    pub(crate) name: String,
    /// Its content.
    pub(crate) value: Value,
}

impl InstallConfig {
    /// Reads a file, or standard input for `-`.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is not one YAML document.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let is_input = path.as_os_str() == "-";
        let name = match is_input {
            true => "standard input".to_owned(),
            false => format!("`{}`", path.display()),
        };
        let text = if is_input { read_input() } else { read_text(path, WRITTEN_SIZE_MAX) };
        let text = text.with_context(|| format!("failed to read {name}"))?;
        let value = parse(&text).with_context(|| format!("{name} is not an install-config"))?;
        Ok(Self { name, value })
    }

    /// Assesses it for a release; a feature set that is given replaces its own.
    ///
    /// # Errors
    ///
    /// When the release does not have the feature set.
    pub(crate) fn assess(
        &self,
        payload: &Payload,
        profile: &str,
        feature_set: Option<&str>,
    ) -> anyhow::Result<Assessment> {
        let feature_set = feature_set.or(self.feature_set()).unwrap_or(DEFAULT_FEATURE_SET);
        payload
            .check_feature_set(feature_set)
            .with_context(|| format!("featureSet of {}", self.name))?;
        let gates = payload.feature_gates(profile, feature_set);
        Ok(assess(&self.value, &payload.capabilities, &gates))
    }

    /// The feature set that it names; `None` if it names none.
    fn feature_set(&self) -> Option<&str> {
        self.value["featureSet"].as_str().filter(|set| !set.is_empty())
    }

    /// What it requests.
    fn request(
        &self,
        payload: &Payload,
        profile: &str,
        feature_set: Option<&str>,
    ) -> anyhow::Result<RequestedInstallation> {
        let Assessment { refusals, enabled: _, disabled: _, spec } =
            self.assess(payload, profile, feature_set)?;
        if !refusals.is_empty() {
            let lines: String = refusals.iter().map(|refusal| format!("\n  {refusal}")).collect();
            bail!("--install-config: {} is invalid{lines}", self.name);
        }
        let feature_set = feature_set.or(self.feature_set()).map(str::to_owned);
        Ok(RequestedInstallation { capabilities: spec, feature_set })
    }
}

/// Reads standard input, as far as a file that people write may be large.
///
/// # Errors
///
/// The error of the system, or that it is larger or not UTF-8.
pub(crate) fn read_input() -> io::Result<String> {
    read_within(io::stdin(), WRITTEN_SIZE_MAX)
}

fn read_within(input: impl Read, bytes_max: u64) -> io::Result<String> {
    let mut text = Vec::new();
    input.take(bytes_max.saturating_add(1)).read_to_end(&mut text)?;
    if u64::try_from(text.len()).is_ok_and(|it| it > bytes_max) {
        let message = format!("it has more than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(text)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

fn parse(text: &str) -> anyhow::Result<Value> {
    let mut documents = yaml::parse(text);
    match documents.len() {
        1 => {}
        0 => bail!("it is empty"),
        several => bail!("it has {several} documents, an install-config has one"),
    }
    let value = documents.remove(0).value;
    value.map_err(|error| anyhow::anyhow!("line {}, column {}: {error}", error.line, error.column))
}

#[cfg(test)]
mod tests {
    //! What a new cluster requests. What is refused is in the table of invocations.

    use plimsoll_content::inclusion::DEFAULT_PROFILE;
    use plimsoll_content::payload::{TemplateContext, parse};
    use plimsoll_simulation::sample;
    use serde_json::{Value, json};

    use super::{InstallationArguments, read_within};

    #[test]
    fn input_that_is_too_large_is_refused_and_not_cut_off() {
        let read = |text: &str| read_within(text.as_bytes(), 4).map_err(|it| it.to_string());
        assert_eq!(read("four"), Ok("four".to_owned()));
        assert_eq!(read("fives"), Err("it has more than 4 bytes".to_owned()));
    }

    /// Baseline, capabilities, and an install-config.
    fn check(
        baseline: Option<&str>,
        capabilities: &[&str],
        config: Option<&str>,
        expected: &(Value, Option<&str>),
    ) {
        let payload = parse(sample::v1(), &TemplateContext::default()).expect("it is in order");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), config.unwrap_or_default()).expect("it is written");
        let arguments = InstallationArguments {
            install_config: config.map(|_| file.path().to_owned()),
            baseline: baseline.map(str::to_owned),
            capability: capabilities.iter().map(|&name| name.to_owned()).collect(),
        };
        let found = arguments.of(&payload, DEFAULT_PROFILE, None).expect("it is valid");
        let spec = serde_json::to_value(&found.capabilities).expect("it is JSON");
        let found = (spec, found.feature_set.as_deref());
        assert_eq!(&found, expected, "{baseline:?} {capabilities:?} {config:?}");
    }

    #[test]
    fn a_new_cluster_requests_what_is_chosen() {
        check(None, &[], None, &(Value::Null, None));
        check(Some("None"), &[], None, &(json!({"baselineCapabilitySet": "None"}), None));
        let both = |name: &str| json!({"baselineCapabilitySet": "None", "additionalEnabledCapabilities": [name]});
        check(Some("None"), &["Console"], None, &(both("Console"), None));
        let added = json!({"additionalEnabledCapabilities": ["Console"]});
        check(None, &["Console"], None, &(added, None));
        let config = "platform: {none: {}}\nfeatureSet: TechPreviewNoUpgrade\ncapabilities:\n  \
                      baselineCapabilitySet: None\n  additionalEnabledCapabilities: [Ingress]\n";
        check(None, &[], Some(config), &(both("Ingress"), Some("TechPreviewNoUpgrade")));
        check(None, &[], Some("platform: {none: {}}\n"), &(Value::Null, None));
    }
}
