//! Query parameters.
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use super::query::Query;
use crate::status::{ApiError, Result, Subject};
use k8s_schema::{FieldError, FieldErrorKind};

/// The treatment of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    /// They are dropped.
    Ignore,
    /// They are dropped with a warning.
    #[default]
    Warn,
    /// The request is rejected.
    Strict,
}

/// The propagation policy of a deletion: what happens to the dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They are deleted after the object.
    Background,
    /// They are deleted before the object.
    Foreground,
    /// They are orphaned.
    Orphan,
}

impl Propagation {
    /// The name in requests.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// Whether a write is persisted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DryRun {
    /// It is persisted.
    #[default]
    Off,
    /// It is only computed (`dryRun=All`).
    All,
}

/// `resourceVersionMatch`: exactly the state of the resource version.
pub(crate) const EXACT: &str = "Exact";

/// `resourceVersionMatch`: the state of the resource version or a newer one.
pub(crate) const NOT_OLDER_THAN: &str = "NotOlderThan";

/// The query parameters of requests for objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters {
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    /// The page size; zero is no limit.
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    pub(crate) resource_version: String,
    /// The `resourceVersionMatch`; empty if it is missing.
    pub(crate) resource_version_match: String,
    pub(crate) watch: bool,
    pub(crate) allow_watch_bookmarks: bool,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) dry_run: DryRun,
    pub(crate) field_manager: Option<String>,
    pub(crate) field_validation: FieldValidation,
    pub(crate) force: Option<bool>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) include_object: Option<String>,
}

impl Parameters {
    /// Reads the parameters of a query; unknown names are skipped.
    ///
    /// # Errors
    /// When a value is malformed.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/zz_generated.conversion.go: Convert_url_Values_To_v1_ListOptions
    pub(crate) fn read(query: &Query, options: OptionsKind) -> Result<Self> {
        let mut parameters = Self::default();
        for (name, value) in query.first_of_each() {
            parameters.set(options, name, value.to_owned())?;
        }
        Ok(parameters)
    }

    fn set(&mut self, options: OptionsKind, name: &str, value: String) -> Result<()> {
        match name {
            // Reads ignore the parameters of writes, and what is no list those of lists.
            "dryRun" | "fieldValidation" | "propagationPolicy" if options.is_of_reads() => {}
            "limit" | "timeoutSeconds" if !options.is_of_lists() => {}
            "labelSelector" => self.label_selector = value,
            "fieldSelector" => self.field_selector = value,
            "limit" => {
                self.limit =
                    number::<i64>(&value)?.map_or(0, |limit| usize::try_from(limit).unwrap_or(0));
            }
            "continue" => self.continue_token = value,
            "resourceVersion" => self.resource_version = value,
            "resourceVersionMatch" => self.resource_version_match = value,
            "watch" => self.watch = flag(&value),
            "allowWatchBookmarks" => self.allow_watch_bookmarks = flag(&value),
            "sendInitialEvents" => self.send_initial_events = Some(flag(&value)),
            "timeoutSeconds" => {
                self.timeout_seconds =
                    number::<i64>(&value)?.and_then(|given| given.try_into().ok());
            }
            "dryRun" => self.dry_run = parse_dry_run(options, &value)?,
            "fieldManager" => {
                check_field_manager(options, &value)?;
                self.field_manager = Some(value);
            }
            "fieldValidation" => self.field_validation = parse_field_validation(options, &value)?,
            "force" => self.force = Some(flag(&value)),
            "propagationPolicy" => self.propagation = Some(parse_propagation(options, &value)?),
            "orphanDependents" => self.orphan_dependents = Some(flag(&value)),
            "gracePeriodSeconds" => self.grace_period_seconds = number(&value)?,
            "includeObject" => self.include_object = Some(value),
            _ => {}
        }
        Ok(())
    }
}

/// The kind of options that the parameters of a request are, for error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptionsKind(pub(crate) &'static str);

impl OptionsKind {
    /// An error about one of the options.
    pub(crate) fn invalid(self, problem: FieldError) -> ApiError {
        self.invalid_all(&[problem])
    }

    /// An error about several of the options.
    pub(crate) fn invalid_all(self, problems: &[FieldError]) -> ApiError {
        ApiError::invalid(Subject { group: "meta.k8s.io", noun: self.0 }, "", problems)
    }

    fn is_of_reads(self) -> bool {
        matches!(self.0, "ListOptions" | "GetOptions")
    }

    /// Whether the parameters of lists count; deletions of collections have them too.
    fn is_of_lists(self) -> bool {
        matches!(self.0, "ListOptions" | "DeleteOptions")
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
///
/// Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go: ValidateDryRun
pub(crate) fn parse_dry_run(options: OptionsKind, value: &str) -> Result<DryRun> {
    match value {
        "All" => Ok(DryRun::All),
        other => Err(options.unsupported("dryRun", serde_json::json!([other]), "\"All\"")),
    }
}

/// Longest name of a field manager, in bytes.
const FIELD_MANAGER_LEN_MAX: usize = 128;

/// Checks that a field manager has a short, printable name.
///
/// Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go: ValidateFieldManager
fn check_field_manager(options: OptionsKind, name: &str) -> Result<()> {
    let mut problems = Vec::new();
    if name.len() > FIELD_MANAGER_LEN_MAX {
        let detail = format!("may not be more than {FIELD_MANAGER_LEN_MAX} bytes");
        problems.push(FieldError::new("fieldManager", FieldErrorKind::TooLong, detail));
    }
    for (position, odd) in name.char_indices().filter(|(_, letter)| !is_printable(*letter)) {
        let code = u32::from(odd);
        let detail = format!("invalid character U+{code:04X} (at position {position})");
        let problem = FieldError::new("fieldManager", FieldErrorKind::Invalid, detail);
        problems.push(problem.with_shown(quoted(name)));
    }
    if problems.is_empty() { Ok(()) } else { Err(options.invalid_all(&problems)) }
}

/// Whether Go considers a character printable.
fn is_printable(letter: char) -> bool {
    letter == ' ' || !(letter.is_control() || letter.is_whitespace())
}

/// A quoted text with Go's escapes for characters that are not printable.
fn quoted(text: &str) -> String {
    let mut shown = String::from('"');
    for letter in text.chars() {
        let code = u32::from(letter);
        match letter {
            '"' | '\\' => shown.extend(['\\', letter]),
            '\t' => shown.push_str("\\t"),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            _ if is_printable(letter) => shown.push(letter),
            _ if code < 0x80 => shown.push_str(&format!("\\x{code:02x}")),
            _ => shown.push_str(&format!("\\u{code:04x}")),
        }
    }
    shown.push('"');
    shown
}

/// Reads a `propagationPolicy` value.
///
/// Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go: ValidateDeleteOptions
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

/// Upstream: k8s.io/apimachinery/pkg/apis/meta/v1/validation/validation.go: ValidateFieldValidation
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

/// Reads a boolean as kube-apiserver's query conversion does: anything but these is true.
///
/// Upstream: k8s.io/apimachinery/pkg/runtime/conversion.go: Convert_Slice_string_To_bool
pub(crate) fn flag(value: &str) -> bool {
    value != "0" && !value.eq_ignore_ascii_case("false")
}

/// Upstream: k8s.io/apimachinery/pkg/runtime/conversion.go: Convert_Slice_string_To_int64
fn number<T: FromStr<Err = ParseIntError>>(value: &str) -> Result<Option<T>> {
    if value.is_empty() {
        return Ok(None);
    }
    value.parse().map(Some).map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        ApiError::bad_request(format!("strconv.ParseInt: parsing {value:?}: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: OptionsKind = OptionsKind("ListOptions");

    fn read(query: &str, options: OptionsKind) -> Result<Parameters> {
        Parameters::read(&Query::parse(query), options)
    }

    #[test]
    fn untidy_queries_are_read() {
        for query in ["?", "", "&", "?&", "limit=%zz", "limit=5;x", "limit=%5"] {
            let parsed = read(query.trim_start_matches('?'), OPTIONS).unwrap();
            assert_eq!(parsed.limit, 0, "{query}");
        }
        let parsed = read("&limit=500&watch=true&labelSelector=a%3Db%2Cc+in+(d)", OPTIONS).unwrap();
        assert_eq!(parsed.limit, 500);
        assert!(parsed.watch);
        assert_eq!(parsed.label_selector, "a=b,c in (d)");
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        for query in ["limit=x", "dryRun=Some", "propagationPolicy=Up", "fieldValidation=Loose"] {
            let options = OptionsKind("DeleteOptions");
            assert!(read(query, options).is_err(), "{query}");
            let is_for_reads = query.starts_with("limit");
            assert_eq!(read(query, OPTIONS).is_err(), is_for_reads, "{query}");
        }
    }
}
