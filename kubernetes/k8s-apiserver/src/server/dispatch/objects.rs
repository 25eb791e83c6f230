//! Dispatch of requests for objects, and the form of their responses.
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use k8s_schema::patch as schema_patch;
use serde_json::Value;

use crate::access;
use crate::http::body::Body;
use crate::http::table::{self, IncludeObject, TableForm};
use crate::http::watch::{Watch, WatchForm};
use crate::http::{encode, health, respond};
use crate::json::to_bytes;
use crate::request::accept::{Accept, Format, MetaVersion, View, accepts_gzip};
use crate::request::content::{
    MediaType, decode_applied, decode_custom, decode_json, decode_object, decode_patch,
};
use crate::request::path::ResourcePath;
use crate::request::selector::FieldSelector;
use crate::request::strict::StrictErrors;
use crate::semantics::context::RequestContext;
use crate::semantics::part::ObjectPart;
use crate::semantics::registry::{ApiResource, Scope};
use crate::semantics::{convert, storage_key, warnings};
use crate::server::Shared;
use crate::status::{ApiError, Result, StatusReason};
use crate::storage::ObjectKey;
use crate::verbs::delete::{self, DeleteOptions};
use crate::verbs::list::{ListQuery, Selection, read_revision};
use crate::verbs::update::{self, WriteTarget};
use crate::verbs::{create, patch, pods, scale};

const NO_NAME: &str = "name must be provided";

/// Lists from this size in bytes on are encoded while they are sent.
const PIECES_LEN_MIN: usize = 1 << 20;

/// A request for a resource that is served.
struct ObjectRequest<'a> {
    shared: &'a Arc<Shared>,
    parts: &'a Parts,
    target: &'a ResourcePath,
    body: &'a Bytes,
    resource: Arc<ApiResource>,
    accept: Accept,
    include: IncludeObject,
}

/// Handles a request for objects; `malformed` is the error of its parameters.
///
/// Upstream: k8s.io/apiserver/pkg/endpoints/installer.go: registerResourceHandlers
pub(super) fn answer(
    shared: &Arc<Shared>,
    parts: &Parts,
    target: &ResourcePath,
    malformed: Option<ApiError>,
    context: &mut RequestContext,
    body: &Bytes,
) -> Result<Response<Body>> {
    let found = shared.cluster.read(|cluster| {
        let registry = &cluster.registry;
        Ok(registry.find(&target.group, &target.version, &target.resource).cloned().ok_or_else(
            || registry.all().any(|known| known.custom().is_none() && known.group == target.group),
        ))
    })?;
    let resource = match found {
        Ok(resource) => resource,
        // For groups without built-in resources, kube-apiserver answers in plain text.
        Err(is_built_in) if is_built_in => {
            return Err(ApiError::no_such_path());
        }
        Err(_) => return Ok(health::not_found()),
    };
    if target.watch {
        check_watch_path(&resource, target, &parts.method)?;
    }
    if resource.scope == Scope::Cluster && target.namespace.is_some() {
        if resource.custom().is_some() {
            return Ok(health::not_found());
        }
        return Err(ApiError::no_such_path());
    }
    if let Some(error) = malformed {
        return Err(error);
    }
    context.warnings.extend(warnings::of_resource(&resource));
    let is_custom = resource.custom().is_some();
    let is_everywhere = resource.scope == Scope::Namespaced && target.namespace.is_none();
    if is_custom && is_everywhere && parts.method != Method::GET {
        return Ok(health::not_found());
    }
    let is_list = target.name.is_none() && parts.method == Method::GET;
    // What cannot be read back has no columns either.
    let has_tables = resource.serves("get");
    let accept = Accept::negotiate(&parts.headers, is_list, has_tables)?;
    let include = match accept.view {
        View::Table(_) => IncludeObject::read(context.parameters.include_object.as_deref())?,
        View::Full | View::Metadata(_) => IncludeObject::Metadata,
    };
    let request = ObjectRequest { shared, parts, target, body, accept, include, resource };
    match (&target.name, &target.subresource) {
        (None, _) => request.collection(context),
        (Some(name), None) => request.object(context, name),
        (Some(name), Some(subresource)) => request.subresource(context, name, subresource),
    }
}

/// Checks that a path with the old `watch` prefix is watched: whatever the method, the request was
/// authorized as a watch.
fn check_watch_path(resource: &ApiResource, target: &ResourcePath, method: &Method) -> Result<()> {
    let is_namespaced = resource.scope == Scope::Namespaced;
    let is_placed = match &target.namespace {
        Some(_) => is_namespaced,
        None => !is_namespaced || target.name.is_none(),
    };
    let is_served = is_placed && target.subresource.is_none() && resource.serves("watch");
    match (is_served, resource.custom()) {
        (false, None) => Err(ApiError::no_such_path()),
        (true, _) if *method == Method::GET => Ok(()),
        (true | false, _) => Err(ApiError::method_not_allowed()),
    }
}

impl ObjectRequest<'_> {
    fn namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref()
    }

    fn key(&self, name: &str) -> Result<ObjectKey> {
        match (self.resource.scope, self.namespace()) {
            (Scope::Namespaced, None) => Err(ApiError::no_such_path()),
            (Scope::Namespaced, Some(namespace)) => Ok(ObjectKey::new(namespace, name)),
            (Scope::Cluster, _) => Ok(ObjectKey::new("", name)),
        }
    }

    fn require(&self, verb: &str) -> Result<()> {
        if self.resource.serves(verb) { Ok(()) } else { Err(ApiError::method_not_allowed()) }
    }

    /// Checks that the storage can have the objects of the namespace in the path.
    fn check_collection(&self, context: &RequestContext) -> Result<()> {
        let fields = FieldSelector::parse(&context.parameters.field_selector)?;
        let name = fields.exact("metadata.name").unwrap_or_default();
        storage_key::check_path(&self.resource, self.namespace().unwrap_or_default(), name)
    }

    fn collection(&self, context: &mut RequestContext) -> Result<Response<Body>> {
        let is_custom = self.resource.custom().is_some();
        match self.parts.method {
            Method::GET if context.parameters.watch => {
                self.require("watch")?;
                let selection =
                    Selection::read(&self.resource, self.namespace(), &context.parameters)?;
                self.watch(context, selection)
            }
            Method::GET => self.list(context),
            Method::POST => self.create(context),
            Method::DELETE => self.delete_collection(context),
            // Custom resources accept every method on collections, and then fail without a name.
            Method::PUT if is_custom => Err(ApiError::bad_request(NO_NAME)),
            Method::PATCH if is_custom => {
                self.read_patch()?;
                Err(ApiError::bad_request(NO_NAME))
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn object(&self, context: &mut RequestContext, name: &str) -> Result<Response<Body>> {
        let key = self.key(name)?;
        let target = WriteTarget { resource: &self.resource, key: &key, part: ObjectPart::Main };
        match self.parts.method {
            Method::GET if self.target.watch => {
                let selection =
                    Selection::read(&self.resource, self.namespace(), &context.parameters)?
                        .of_name(name)?;
                self.watch(context, selection)
            }
            Method::GET => {
                read_revision(&context.parameters.resource_version)?;
                self.get(context, &key)
            }
            Method::PUT => {
                self.require("update")?;
                self.put(context, target)
            }
            Method::PATCH => {
                self.require("patch")?;
                self.patch(context, target)
            }
            Method::DELETE => {
                self.require("delete")?;
                self.delete(context, &key)
            }
            // A creation of a custom object ignores the name in the path.
            Method::POST if self.resource.custom().is_some() => self.create(context),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    fn subresource(
        &self,
        context: &mut RequestContext,
        name: &str,
        subresource: &str,
    ) -> Result<Response<Body>> {
        let unknown = || match self.resource.custom() {
            Some(_) if matches!(subresource, "status" | "scale") => {
                ApiError::not_found(self.resource.subject(), name)
            }
            _ => ApiError::no_such_path(),
        };
        let known = self.resource.subresource(subresource).ok_or_else(unknown)?;
        let key = self.key(name)?;
        if self.resource.is("", "ServiceAccount") && subresource == "token" {
            return self.token(context, &key);
        }
        if self.resource.is("", "Pod") && matches!(subresource, "binding" | "eviction") {
            return self.move_pod(context, &key, subresource);
        }
        let part = match subresource {
            "status" => ObjectPart::Status,
            "scale" => return self.scale(context, &key),
            "finalize" => ObjectPart::Subresource("finalize"),
            "approval" => ObjectPart::Subresource("approval"),
            "ephemeralcontainers" => ObjectPart::Subresource("ephemeralcontainers"),
            "resize" => ObjectPart::Subresource("resize"),
            _ => return Err(ApiError::method_not_allowed()),
        };
        let target = WriteTarget { resource: &self.resource, key: &key, part };
        let serves = |verb: &str| known.verbs.iter().any(|served| served == verb);
        match self.parts.method {
            Method::GET if serves("get") => self.get(context, &key),
            Method::PUT if serves("update") => self.put(context, target),
            Method::PATCH if serves("patch") => self.patch(context, target),
            _ => Err(ApiError::method_not_allowed()),
        }
    }

    /// Handles the `binding` and `eviction` subresources of pods.
    fn move_pod(
        &self,
        context: &mut RequestContext,
        key: &ObjectKey,
        subresource: &str,
    ) -> Result<Response<Body>> {
        if self.parts.method != Method::POST {
            return Err(ApiError::method_not_allowed());
        }
        storage_key::check_parent(&key.namespace)?;
        let is_binding = subresource == "binding";
        let kind = if is_binding { "Binding" } else { "Eviction" };
        let object = decode_object(&self.parts.headers, self.body, kind)?;
        let act = if is_binding { pods::bind } else { pods::evict };
        let resource = &self.resource;
        let done = self.shared.cluster.write_for(context, &self.resource, |cluster, context| {
            act(cluster, context, resource, key, &object)
        })?;
        Ok(respond::document(StatusCode::CREATED, self.accept.format, &done))
    }

    /// Handles the `token` subresource of service accounts.
    fn token(&self, context: &mut RequestContext, key: &ObjectKey) -> Result<Response<Body>> {
        if self.parts.method != Method::POST {
            return Err(ApiError::method_not_allowed());
        }
        let request = decode_object(&self.parts.headers, self.body, "TokenRequest")?;
        storage_key::check_parent(&key.namespace)?;
        storage_key::check(&self.resource, key)?;
        let issued = access::token_request::create(
            &self.shared.access,
            &self.shared.cluster,
            context,
            key,
            request,
        )?;
        Ok(respond::document(StatusCode::CREATED, self.accept.format, &issued))
    }

    fn get(&self, context: &mut RequestContext, key: &ObjectKey) -> Result<Response<Body>> {
        self.require("get")?;
        storage_key::check(&self.resource, key)?;
        let as_of = self.parts.extensions.get().copied();
        let stored = self.shared.cluster.read(|cluster| {
            let stored = cluster
                .store
                .find_as_of(&self.resource.storage, key, as_of)
                .ok_or_else(|| ApiError::not_found(self.resource.subject(), &key.name))?;
            if self.resource.is_converted_by_webhook() {
                return convert::shown(cluster, context, &self.resource, stored);
            }
            Ok(Arc::clone(stored))
        })?;
        if matches!(self.accept.view, View::Table(_)) || self.accept.format == Format::Yaml {
            return self.show(StatusCode::OK, &convert::read(&self.resource, &stored));
        }
        let mut out = Vec::with_capacity(stored.bytes().len() + 128);
        encode::object(&mut out, &self.resource, &stored, self.accept.view);
        Ok(respond::compressed(&self.parts.headers, StatusCode::OK, out.into()))
    }

    fn table_form(&self, version: MetaVersion) -> TableForm {
        TableForm { version, include: self.include, now: self.shared.cluster.now() }
    }

    /// The response with an object in the view that the client requested.
    fn show(&self, status: StatusCode, object: &Value) -> Result<Response<Body>> {
        let is_object = object["kind"] == self.resource.kind.as_str();
        let shown = match self.accept.view {
            View::Metadata(version) if is_object => &encode::metadata_view(object, version),
            View::Table(version) if is_object => {
                &table::of_object(&self.resource, object, self.table_form(version))
            }
            View::Full | View::Metadata(_) | View::Table(_) => object,
        };
        Ok(respond::document(status, self.accept.format, shown))
    }

    fn list(&self, context: &mut RequestContext) -> Result<Response<Body>> {
        self.require("list")?;
        let query = ListQuery::read(&self.resource, self.namespace(), &context.parameters)?
            .stale(self.parts.extensions.get().copied());
        self.check_collection(context)?;
        let listing = self.shared.cluster.read(|cluster| {
            let mut listing = query.run(cluster, &self.resource)?;
            listing.items =
                convert::all_in_version(cluster, context, &self.resource, listing.items)?;
            Ok(listing)
        })?;
        let is_plain = self.accept.view == View::Full && self.accept.format == Format::Json;
        let is_long = encode::list_len(&listing) >= PIECES_LEN_MIN;
        let listing = if is_plain && is_long && !accepts_gzip(&self.parts.headers) {
            match encode::list_pieces(Arc::clone(&self.resource), listing) {
                Ok((length, pieces)) => return Ok(respond::pieces(length, pieces)),
                Err(listing) => listing,
            }
        } else {
            listing
        };
        self.show_list(&listing)
    }

    fn show_list(&self, listing: &crate::storage::ListPage) -> Result<Response<Body>> {
        let encoded = if let View::Table(version) = self.accept.view {
            to_bytes(&table::of_list(&self.resource, listing, self.table_form(version)))
        } else {
            encode::list(&self.resource, listing, self.accept.view)
        };
        if self.accept.format == Format::Yaml {
            return Ok(respond::yaml(StatusCode::OK, &decode_json(&encoded)?));
        }
        Ok(respond::compressed(&self.parts.headers, StatusCode::OK, encoded))
    }

    fn watch(&self, context: &RequestContext, selection: Selection) -> Result<Response<Body>> {
        self.check_collection(context)?;
        let now = self.shared.cluster.now();
        let form = WatchForm { view: self.accept.view, include: self.include, now };
        let watch = self.shared.cluster.write(&context.now, |cluster| {
            Watch::begin(cluster, &self.resource, selection, &context.parameters, form)
        })?;
        let mut response = Response::new(Body::stream(watch.into_stream(
            Arc::clone(&self.shared.cluster),
            self.shared.metrics.watch_events(&self.resource),
        )));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        Ok(response)
    }

    fn create(&self, context: &mut RequestContext) -> Result<Response<Body>> {
        self.require("create")?;
        let mut object = self.body_object()?;
        context.strict_errors = self.strict_errors(context);
        let namespace = self.namespace();
        if let Some(answer) = access::review::answer(
            &self.shared.access,
            &self.shared.cluster,
            context,
            &self.resource,
            namespace,
            &object,
        )? {
            return self.show(StatusCode::CREATED, &answer);
        }
        if self.target.namespace.is_none() && self.resource.scope == Scope::Namespaced {
            return Err(ApiError::method_not_allowed());
        }
        if object.is_null() {
            object = Value::Object(serde_json::Map::new());
        }
        let created =
            self.shared.cluster.write_for(context, &self.resource, |cluster, context| {
                create::create(
                    cluster,
                    context,
                    &self.resource,
                    self.namespace(),
                    object,
                    create::CreateSource::Create,
                )
            })?;
        self.show(StatusCode::CREATED, &created)
    }

    fn body_object(&self) -> Result<Value> {
        let is_custom = self.resource.custom().is_some();
        let decode = if is_custom { decode_custom } else { decode_object };
        decode(&self.parts.headers, self.body, &self.resource.kind)
    }

    fn strict_errors(&self, context: &RequestContext) -> StrictErrors {
        let is_typed = self.resource.custom().is_none();
        StrictErrors::of(self.parts, self.body, &context.parameters, is_typed)
    }

    fn put(&self, context: &mut RequestContext, target: WriteTarget<'_>) -> Result<Response<Body>> {
        let object = self.body_object()?;
        context.strict_errors = self.strict_errors(context);
        let (updated, is_new) =
            self.shared.cluster.write_for(context, &self.resource, |cluster, context| {
                update::put(cluster, context, target, object)
            })?;
        self.show(written(is_new), &updated)
    }

    fn read_patch(&self) -> Result<patch::Patch> {
        let custom = self.resource.custom().is_some();
        let media_type = match MediaType::of(&self.parts.headers) {
            Some(
                MediaType::StrategicMergePatch
                | MediaType::Json
                | MediaType::Yaml
                | MediaType::Protobuf,
            )
            | None
                if custom =>
            {
                return Err(ApiError::new(
                    StatusReason::UnsupportedMediaType,
                    "the body of the request was in an unknown format - accepted media types \
                     include: application/json-patch+json, application/merge-patch+json, \
                     application/apply-patch+yaml",
                ));
            }
            Some(
                media_type @ (MediaType::JsonPatch
                | MediaType::MergePatch
                | MediaType::StrategicMergePatch
                | MediaType::ApplyPatch),
            ) => media_type,
            Some(MediaType::Json | MediaType::Yaml | MediaType::Protobuf) | None => {
                return Err(ApiError {
                    details: Some(Box::default()),
                    ..ApiError::new(
                        StatusReason::UnsupportedMediaType,
                        "415: Unsupported Media Type",
                    )
                });
            }
        };
        let document = match media_type {
            MediaType::ApplyPatch => decode_applied(self.body)?,
            _ => decode_patch(self.body)?,
        };
        if media_type == MediaType::MergePatch {
            patch::check_merge_document(&document)?;
        }
        Ok(patch::Patch { media_type, document })
    }

    fn patch(
        &self,
        context: &mut RequestContext,
        target: WriteTarget<'_>,
    ) -> Result<Response<Body>> {
        let document = self.read_patch()?;
        context.strict_errors = self.strict_errors(context);
        let (patched, is_new) =
            self.shared.cluster.write_for(context, &self.resource, |cluster, context| {
                patch::patch(cluster, context, target, &document)
            })?;
        self.show(written(is_new), &patched)
    }

    fn scale(&self, context: &mut RequestContext, key: &ObjectKey) -> Result<Response<Body>> {
        let resource = &self.resource;
        let scale = match self.parts.method {
            Method::GET => {
                self.shared.cluster.read(|cluster| scale::get(cluster, context, resource, key))?
            }
            Method::PUT => {
                let wanted = decode_object(&self.parts.headers, self.body, "Scale")?;
                self.shared.cluster.write_for(context, &self.resource, |cluster, context| {
                    scale::write(cluster, context, resource, key, |_| Ok(wanted))
                })?
            }
            Method::PATCH => {
                let patch = self.read_patch()?;
                self.shared.cluster.write_for(context, &self.resource, |cluster, context| {
                    if patch.media_type == MediaType::ApplyPatch {
                        return scale::apply(cluster, context, resource, key, &patch.document);
                    }
                    scale::write(cluster, context, resource, key, |present| {
                        match patch.media_type {
                            MediaType::JsonPatch => {
                                schema_patch::json_patch(&present, &patch.document)
                                    .map_err(|error| ApiError::bad_request(error.to_string()))
                            }
                            _ => Ok(schema_patch::merge_patch(&present, &patch.document)),
                        }
                    })
                })?
            }
            _ => return Err(ApiError::method_not_allowed()),
        };
        Ok(respond::document(StatusCode::OK, self.accept.format, &scale))
    }

    /// The options in the body of a deletion; none without a body.
    fn delete_body(&self) -> Result<Option<Value>> {
        if self.body.is_empty() {
            return Ok(None);
        }
        decode_object(&self.parts.headers, self.body, "DeleteOptions").map(Some)
    }

    fn delete(&self, context: &mut RequestContext, key: &ObjectKey) -> Result<Response<Body>> {
        let options = DeleteOptions::read(&context.parameters, self.delete_body()?.as_ref())?;
        storage_key::check(&self.resource, key)?;
        let deleted =
            self.shared.cluster.write_for(context, &self.resource, |cluster, context| {
                delete::delete_with_admission(cluster, context, &self.resource, key, &options)
            })?;
        self.show(StatusCode::OK, &delete::answer(&self.resource, &deleted))
    }

    fn delete_collection(&self, context: &mut RequestContext) -> Result<Response<Body>> {
        self.require("deletecollection")?;
        let body = self.delete_body()?;
        self.check_collection(context)?;
        let listing =
            self.shared.cluster.write_for(context, &self.resource, |cluster, context| {
                delete::delete_collection(
                    cluster,
                    context,
                    &self.resource,
                    self.namespace(),
                    body.as_ref(),
                )
            })?;
        self.show_list(&listing)
    }
}

fn written(is_new: bool) -> StatusCode {
    if is_new { StatusCode::CREATED } else { StatusCode::OK }
}
