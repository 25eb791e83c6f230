//! List: selection and pages.
use std::sync::Arc;

use k8s_schema::{FieldError, FieldErrorKind};

use crate::request::parameters::{EXACT, NOT_OLDER_THAN, OptionsKind, Parameters};
use crate::request::selector::{FieldSelector, LabelSelector};
use crate::semantics::cluster::Cluster;
use crate::semantics::convert;
use crate::semantics::registry::ApiResource;
use crate::status::{ApiError, Result, StatusCause, StatusReason};
use crate::storage::{AsOf, ListPage, Store, Stored};

mod selectable;
mod token;

use token::ContinueToken;

/// The kind of the parameters in error messages.
const OPTIONS: OptionsKind = OptionsKind("ListOptions");

/// The objects that a list, a watch or a deletion of a collection selects.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// The namespace of the objects; none for all namespaces.
    pub(crate) namespace: Option<String>,
    labels: LabelSelector,
    fields: FieldSelector,
}

/// A list request.
#[derive(Clone, Debug)]
pub(crate) struct ListQuery {
    /// The selected objects.
    pub(crate) selection: Selection,
    limit: usize,
    continued: Option<ContinueToken>,
    /// The state to list if the request accepts any; for tests of stale reads.
    as_of: Option<AsOf>,
    exact: Option<u64>,
    not_older_than: u64,
}

impl Selection {
    /// Reads the selectors of a request.
    ///
    /// # Errors
    /// When a selector is malformed or uses a field that is not selectable.
    pub(crate) fn read(
        resource: &ApiResource,
        namespace: Option<&str>,
        parameters: &Parameters,
    ) -> Result<Self> {
        let labels = LabelSelector::parse(&parameters.label_selector)?;
        let fields = FieldSelector::parse(&parameters.field_selector)?;
        fields.paths().try_for_each(|path| selectable::check(resource, path))?;
        Ok(Self { namespace: namespace.map(str::to_owned), labels, fields })
    }

    /// The same selection, restricted to the object of one name.
    ///
    /// # Errors
    /// When its field selector does not select this name.
    ///
    /// Upstream: k8s.io/apiserver/pkg/endpoints/handlers/get.go: ListResource
    pub(crate) fn of_name(mut self, name: &str) -> Result<Self> {
        if self.fields.is_empty() {
            self.fields = FieldSelector::of_name(name);
        } else if self.fields.exact("metadata.name") != Some(name) {
            let why = "fieldSelector metadata.name doesn't match requested name";
            return Err(ApiError::bad_request(why));
        }
        Ok(self)
    }

    /// Whether an object is selected.
    pub(crate) fn matches(&self, resource: &ApiResource, stored: &Stored) -> bool {
        if let Some(namespace) = &self.namespace
            && !stored.key.is_in(namespace)
        {
            return false;
        }
        if !self.labels.is_empty() && !self.labels.matches(|key| stored.label(key)) {
            return false;
        }
        if self.fields.is_empty() {
            return true;
        }
        let decoded = (!self.fields.is_of_keys()).then(|| convert::read(resource, stored));
        self.fields.matches(|path| match path {
            "metadata.name" => stored.key.name.to_string(),
            "metadata.namespace" => stored.key.namespace.to_string(),
            _ => decoded
                .as_ref()
                .map_or_else(String::new, |object| selectable::value(resource, object, path)),
        })
    }

    /// Whether it has no selectors.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}

/// Reads a resource version of a request; `0` if it is empty.
///
/// # Errors
/// When it is not a number.
pub(crate) fn read_revision(text: &str) -> Result<u64> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        ApiError::new(
            StatusReason::Unknown,
            format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            ),
        )
    })
}

/// Checks that the parameters of a list do not exclude each other.
///
/// Upstream: k8s.io/apimachinery/pkg/apis/meta/internalversion/validation/validation.go: ValidateListOptions
fn check_parameters(parameters: &Parameters) -> Result<()> {
    const MATCH: &str = "resourceVersionMatch";
    let forbidden = |field: &str, why: &str| FieldError::new(field, FieldErrorKind::Forbidden, why);
    let how = parameters.resource_version_match.as_str();
    let mut problems = Vec::new();
    if !how.is_empty() {
        if parameters.resource_version.is_empty() {
            problems.push(forbidden(
                MATCH,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !parameters.continue_token.is_empty() {
            problems.push(forbidden(
                MATCH,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if how != EXACT && how != NOT_OLDER_THAN {
            let supported = r#"supported values: "Exact", "NotOlderThan", """#;
            let problem = FieldError::new(MATCH, FieldErrorKind::NotSupported, supported);
            problems.push(problem.with_value(how.into()));
        }
        if how == EXACT && parameters.resource_version == "0" {
            problems.push(forbidden(
                MATCH,
                r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#,
            ));
        }
    }
    if parameters.send_initial_events.is_some() {
        problems.push(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    if problems.is_empty() { Ok(()) } else { Err(OPTIONS.invalid_all(&problems)) }
}

impl ListQuery {
    /// Reads a list request.
    ///
    /// # Errors
    /// When parameters are invalid or exclude each other.
    pub(crate) fn read(
        resource: &ApiResource,
        namespace: Option<&str>,
        parameters: &Parameters,
    ) -> Result<Self> {
        check_parameters(parameters)?;
        let revision = read_revision(&parameters.resource_version).map_err(|error| {
            ApiError::bad_request(format!("invalid resource version: {}", error.message))
        })?;
        let selection = Selection::read(resource, namespace, parameters)?;
        let continued = if parameters.continue_token.is_empty() {
            None
        } else if revision > 0 {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        } else {
            Some(token::read(&parameters.continue_token)?)
        };
        // For historical reasons, a page with a resource version is of exactly that version.
        let is_exact = match parameters.resource_version_match.as_str() {
            "" => parameters.limit > 0 && revision > 0,
            how => how == EXACT,
        };
        // kube-apiserver serves such lists from its cache, which ignores the limit.
        let is_any = parameters.resource_version == "0";
        Ok(Self {
            selection,
            limit: if is_any { 0 } else { parameters.limit },
            continued,
            exact: is_exact.then_some(revision),
            not_older_than: revision,
            as_of: None,
        })
    }

    /// The same request, answered from an earlier state if it accepts that.
    pub(crate) fn stale(self, as_of: Option<AsOf>) -> Self {
        Self { as_of, ..self }
    }

    /// Runs the list.
    ///
    /// # Errors
    /// When the requested revision is compacted or in the future.
    ///
    /// Upstream: k8s.io/apiserver/pkg/storage/etcd3/store.go: GetList
    pub(crate) fn run(&self, cluster: &Cluster, resource: &ApiResource) -> Result<ListPage> {
        let store = &cluster.store;
        if self.not_older_than > store.revision() {
            return Err(too_new(self.not_older_than, store));
        }
        let stale = self.as_of.map(|as_of| {
            let revision = as_of.revision(store.revision());
            revision.max(self.not_older_than).max(store.oldest(&resource.storage))
        });
        let past = match (&self.continued, self.exact) {
            (Some(continued), _) => continued.revision,
            (None, exact) => exact.or(stale),
        };
        let namespace = self.selection.namespace.as_deref();
        let after = self.continued.as_ref().map(|continued| &continued.after);
        match past.filter(|revision| *revision < store.revision()) {
            None => {
                let objects = store.list_after(&resource.storage, namespace, after);
                let total = match &self.continued {
                    None => Some(store.count_in(&resource.storage, namespace)),
                    Some(continued) => continued.left,
                };
                Ok(self.page(resource, store.revision(), objects, total))
            }
            Some(revision) => {
                let objects = store
                    .list_at(&resource.storage, namespace, revision, after)
                    .map_err(|_| self.expired())?;
                let total = self.continued.as_ref().and_then(|continued| continued.left);
                Ok(self.page(resource, revision, objects, total))
            }
        }
    }

    /// Upstream: k8s.io/apiserver/pkg/storage/etcd3/errors.go: handleCompactedErrorForPaging
    fn expired(&self) -> ApiError {
        let Some(continued) = &self.continued else {
            return ApiError::new(
                StatusReason::Expired,
                "The resourceVersion for the provided list is too old.",
            );
        };
        ApiError {
            continue_token: Some(token::write(None, &continued.after, None).into()),
            ..ApiError::new(
                StatusReason::Expired,
                "The provided continue parameter is too old to display a consistent list result. \
                 You can start a new list without the continue parameter, or use the continue \
                 token in this response to retrieve the remainder of the results. Continuing with \
                 the provided token results in an inconsistent list - objects that were created, \
                 modified, or deleted between the time the first chunk was returned and now may \
                 show up in the list.",
            )
        }
    }

    fn page<'a>(
        &self,
        resource: &ApiResource,
        revision: u64,
        mut objects: impl Iterator<Item = &'a Arc<Stored>>,
        total: Option<usize>,
    ) -> ListPage {
        let limit = if self.limit == 0 { usize::MAX } else { self.limit };
        let items: Vec<Arc<Stored>> = objects
            .by_ref()
            .filter(|stored| self.selection.matches(resource, stored))
            .take(limit)
            .cloned()
            .collect();
        let is_full = items.len() == limit;
        let rest = items.last().filter(|_| is_full).and_then(|last| {
            // Counting is only cheap without selectors; at an earlier revision it needs all
            // objects, which only the first page reads.
            let left = if self.selection.is_everything() {
                let left = total
                    .map_or_else(|| objects.count(), |total| total.saturating_sub(items.len()));
                Some(left).filter(|left| *left > 0).map(Some)
            } else {
                objects.any(|stored| self.selection.matches(resource, stored)).then_some(None)
            };
            left.map(|left| (token::write(Some(revision), &last.key, left), left))
        });
        ListPage { revision, items, rest }
    }
}

/// Upstream: k8s.io/apiserver/pkg/storage/errors.go: NewTooLargeResourceVersionError
fn too_new(asked: u64, store: &Store) -> ApiError {
    let mut error = ApiError::new(
        StatusReason::Timeout,
        format!("Timeout: Too large resource version: {asked}, current: {}", store.revision()),
    )
    .with_causes([StatusCause {
        reason: "ResourceVersionTooLarge".to_owned(),
        message: "Too large resource version".to_owned(),
        field: String::new(),
    }]);
    error.details.get_or_insert_default().retry_after_seconds = 1;
    error
}
