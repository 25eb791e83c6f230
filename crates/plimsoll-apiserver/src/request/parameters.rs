//! Query parameters.
use percent_encoding::percent_decode_str;
use plimsoll_schema::{FieldError, FieldErrorKind};

use crate::status::{ApiError, Result, Subject};

/// How a request treats fields that the schema does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// Dropped in silence.
    Ignore,
    /// Dropped with a warning.
    #[default]
    Warn,
    /// Refused.
    Strict,
}

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// Whether a write is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DryRun {
    /// It is.
    #[default]
    Off,
    /// Only its result is computed.
    All,
}

/// How the resource version of a list is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    /// Exactly this state.
    Exact,
    /// This state or a newer one.
    NotOlderThan,
}

/// All query parameters that the server knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters {
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    pub(crate) resource_version: String,
    pub(crate) resource_version_match: Option<VersionMatch>,
    pub(crate) watch: bool,
    pub(crate) allow_watch_bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) dry_run: DryRun,
    pub(crate) field_manager: Option<String>,
    pub(crate) field_validation: FieldValidation,
    pub(crate) force: Option<bool>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) include_object: Option<String>,
}

impl Parameters {
    /// Reads a query string; empty pairs and unknown names are skipped.
    ///
    /// # Errors
    /// When a value cannot be what its name says.
    pub(crate) fn parse(query: &str, options: OptionsKind) -> Result<Self> {
        let mut parameters = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            parameters.set(options, &decoded(name), decoded(value))?;
        }
        Ok(parameters)
    }

    fn set(&mut self, options: OptionsKind, name: &str, value: String) -> Result<()> {
        match name {
            "labelSelector" => self.label_selector = value,
            "fieldSelector" => self.field_selector = value,
            "limit" => self.limit = number(name, &value)?.unwrap_or_default(),
            "continue" => self.continue_token = value,
            "resourceVersion" => self.resource_version = value,
            "resourceVersionMatch" => {
                self.resource_version_match = parse_version_match(&value)?;
            }
            "watch" => self.watch = flag(&value),
            "allowWatchBookmarks" => self.allow_watch_bookmarks = flag(&value),
            "sendInitialEvents" => self.send_initial_events = Some(flag(&value)),
            "timeoutSeconds" => self.timeout_seconds = number(name, &value)?,
            "dryRun" => self.dry_run = parse_dry_run(options, &value)?,
            "fieldManager" => self.field_manager = Some(value),
            "fieldValidation" => self.field_validation = parse_field_validation(options, &value)?,
            "force" => self.force = Some(flag(&value)),
            "propagationPolicy" => self.propagation = Some(parse_propagation(options, &value)?),
            "orphanDependents" => {
                self.propagation.get_or_insert(if flag(&value) {
                    Propagation::Orphan
                } else {
                    Propagation::Background
                });
            }
            "gracePeriodSeconds" => self.grace_period_seconds = number(name, &value)?,
            "includeObject" => self.include_object = Some(value),
            _ => {}
        }
        Ok(())
    }
}

/// The options document that a request's parameters stand for; errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptionsKind(pub(crate) &'static str);

impl OptionsKind {
    /// An error about one of the options.
    pub(crate) fn invalid(self, problem: FieldError) -> ApiError {
        ApiError::invalid(Subject { group: "meta.k8s.io", noun: self.0 }, "", &[problem])
    }

    fn unsupported(self, field: &str, value: serde_json::Value, supported: &str) -> ApiError {
        self.invalid(
            FieldError::new(
                field,
                FieldErrorKind::NotSupported,
                format!("supported values: {supported}"),
            )
            .with_value(value),
        )
    }
}

/// Reads a `dryRun` value.
pub(crate) fn parse_dry_run(options: OptionsKind, value: &str) -> Result<DryRun> {
    match value {
        "" => Ok(DryRun::Off),
        "All" => Ok(DryRun::All),
        other => Err(options.unsupported("dryRun", serde_json::json!([other]), "\"All\"")),
    }
}

/// Reads a `propagationPolicy` value.
pub(crate) fn parse_propagation(options: OptionsKind, value: &str) -> Result<Propagation> {
    match value {
        "Background" => Ok(Propagation::Background),
        "Foreground" => Ok(Propagation::Foreground),
        "Orphan" => Ok(Propagation::Orphan),
        other => Err(options.unsupported(
            "propagationPolicy",
            other.into(),
            r#""Foreground", "Background", "Orphan", "nil""#,
        )),
    }
}

fn parse_field_validation(options: OptionsKind, value: &str) -> Result<FieldValidation> {
    match value {
        "" | "Warn" => Ok(FieldValidation::Warn),
        "Ignore" => Ok(FieldValidation::Ignore),
        "Strict" => Ok(FieldValidation::Strict),
        other => Err(options.unsupported(
            "fieldValidation",
            other.into(),
            r#""", "Ignore", "Strict", "Warn""#,
        )),
    }
}

fn parse_version_match(value: &str) -> Result<Option<VersionMatch>> {
    match value {
        "" => Ok(None),
        "Exact" => Ok(Some(VersionMatch::Exact)),
        "NotOlderThan" => Ok(Some(VersionMatch::NotOlderThan)),
        other => Err(ApiError::bad_request(format!(
            "invalid resourceVersionMatch value {other:?}: must be Exact or NotOlderThan"
        ))),
    }
}

/// Reads a boolean as kube-apiserver's query conversion does: anything but these is true.
fn flag(value: &str) -> bool {
    !matches!(value, "false" | "False" | "0")
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<Option<T>> {
    if value.is_empty() {
        return Ok(None);
    }
    value
        .parse()
        .map(Some)
        .map_err(|_| ApiError::bad_request(format!("invalid {name} value {value:?}: not a number")))
}

fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: OptionsKind = OptionsKind("ListOptions");

    #[test]
    fn untidy_queries_are_read() {
        for query in ["?", "", "&", "?&"] {
            let parsed = Parameters::parse(query.trim_start_matches('?'), OPTIONS).unwrap();
            assert_eq!(parsed.limit, 0, "{query}");
        }
        let parsed =
            Parameters::parse("&limit=500&watch=true&labelSelector=a%3Db%2Cc+in+(d)", OPTIONS)
                .unwrap();
        assert_eq!(parsed.limit, 500);
        assert!(parsed.watch);
        assert_eq!(parsed.label_selector, "a=b,c in (d)");
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        for query in ["limit=x", "dryRun=Some", "propagationPolicy=Up", "fieldValidation=Loose"] {
            assert!(Parameters::parse(query, OPTIONS).is_err(), "{query}");
        }
    }
}
