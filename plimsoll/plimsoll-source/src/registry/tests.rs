//! Against a registry in this process, with faults.

mod server;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use crate::store::oci::write::digest_of;
use crate::store::tests::{Layout, files};
use crate::store::{OciLayout, PayloadStore, StoreError};
use server::{Fault, Server};

/// How long a registry may take that never answers. Others answer at once; if one does not on a busy
/// machine, it is asked again.
const TIME_MAX: Duration = Duration::from_secs(1);

/// A client that does not wait between attempts and sees no environment.
fn client() -> Registry {
    client_with(RegistrySettings::default())
}

fn client_with(settings: RegistrySettings) -> Registry {
    let conditions =
        Conditions { first_wait: Duration::ZERO, environment: |_| None, ..Conditions::default() };
    Registry { settings, conditions }
}

/// The files of the only release that a reference means.
fn fetched(registry: &Registry, reference: &ImageReference) -> Result<Vec<SourceFile>, String> {
    let store = RegistryStore::new(registry.clone(), reference.clone(), None);
    let text = |error: StoreError| error.to_string();
    let listing = store.list().map_err(text)?;
    let Some(head) = listing.releases.first() else { return Err(listing.defects.join("; ")) };
    Ok(store.fetch(&head.image, &AtomicBool::new(false)).map_err(text)?.files)
}

fn sorted(mut files: Vec<SourceFile>) -> Vec<SourceFile> {
    files.sort_by(|one, other| one.name.cmp(&other.name));
    files
}

/// A server with release 1.0.0 as `a/release:1.0.0`, and the digests of its manifest and its layer.
fn served() -> (Server, String, String) {
    let server = Server::start();
    let copied = client().push_release(&files("1.0.0"), &server.reference("a/release"));
    let copied = copied.expect("it is pushed");
    assert_eq!(copied.reference, server.reference("a/release:1.0.0"));
    let layer = {
        let state = server.state.lock().expect("no thread panics while it holds the lock");
        let is_layer = |blob: &&Vec<u8>| blob.starts_with(b"\x1f\x8b");
        digest_of(state.blobs.values().find(is_layer).expect("there is a layer"))
    };
    server.set(|state| state.requests.clear());
    (server, copied.digest, layer)
}

#[test]
fn what_is_pushed_is_what_is_pulled_and_the_same_files_have_the_same_digest() {
    let (server, digest, _) = served();
    let (by_tag, by_digest) =
        (server.reference("a/release:1.0.0"), server.reference(&format!("a/release@{digest}")));
    assert_eq!(fetched(&client(), &by_tag).map(sorted), Ok(sorted(files("1.0.0"))));
    assert_eq!(fetched(&client(), &by_digest).map(sorted), Ok(sorted(files("1.0.0"))));
    let mut turned = files("1.0.0");
    turned.reverse();
    let again = client().push_release(&turned, &server.reference("b/release:other"));
    assert_eq!(again.expect("it is pushed").digest, digest);
    let other = client().push_release(&files("1.1.0+x"), &server.reference("a/release"));
    let other = other.expect("it is pushed");
    assert_ne!(other.digest, digest);
    assert_eq!(other.reference.tag(), Some("1.1.0_x"));
}

#[test]
fn a_repository_is_a_store_that_is_read_once() {
    let (server, digest, _) = served();
    let push =
        |version: &str| client().push_release(&files(version), &server.reference("a/release"));
    push("1.1.0").expect("it is pushed");
    server.set(|state| {
        let key = |tag: &str| ("a/release".to_owned(), tag.to_owned());
        let broken = ("application/json".to_owned(), b"{}".to_vec());
        state.manifests.insert(key("broken"), broken.clone());
        state.manifests.insert(key("sha256-0.sig"), broken);
        let again = state.manifests[&key("1.1.0")].clone();
        state.manifests.insert(key("latest"), again);
    });
    let cache = tempfile::tempdir().expect("a directory");
    let open = || RegistryStore::new(client(), server.reference("a/release"), Some(cache.path()));
    let store = open();
    let listing = store.list().expect("it can be read");
    let images: Vec<&str> = listing.releases.iter().map(|it| it.release.version.as_str()).collect();
    assert_eq!(images, ["1.0.0", "1.1.0"]);
    assert_eq!(listing.defects.len(), 1, "{:?}", listing.defects);
    assert!(listing.defects[0].contains("has no layers"), "{:?}", listing.defects);
    // Blobs that are in the cache are not requested again.
    server.set(|state| state.requests.clear());
    open().list().expect("it can be read");
    assert_eq!(server.requests("/blobs/"), Vec::<String>::new());
    let manifests = server.requests("/manifests/");
    assert_eq!(manifests.len(), 4, "each tag but that of a signature: {manifests:?}");
    // A digest is not even asked for; another one is refused.
    server.set(|state| state.requests.clear());
    let fetch = |image: &str| store.fetch(image, &AtomicBool::new(false)).map(|it| it.files);
    let fetched = fetch(&format!("elsewhere.example/x@{digest}")).expect("it is there");
    assert_eq!(sorted(fetched), sorted(files("1.0.0")));
    assert_eq!(server.requests(""), Vec::<String>::new());
    let error = fetch(&format!("a@sha256:{}", "0".repeat(64))).expect_err("it is not there");
    assert!(error.to_string().ends_with("it has 1.0.0, 1.1.0"), "{error}");
    // What breaks in the cache is fetched again.
    for blob in fs::read_dir(cache.path().join("blobs/sha256")).expect("there are blobs") {
        fs::write(blob.expect("a blob").path(), "broken").expect("it can be written");
    }
    assert!(fetch(&format!("a@{digest}")).is_ok());
    let cancelled = store.fetch(&format!("a@sha256:{}", "0".repeat(64)), &AtomicBool::new(true));
    assert!(matches!(cancelled, Err(StoreError::Cancelled)), "{cancelled:?}");
}

/// A text with `DIGEST` in place of each digest.
fn without_digests(text: &str) -> String {
    let mut parts = text.split("sha256:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "DIGEST" + &part[64..])
}

/// Pulls the release of a server with faults; what comes of it, and the ranges asked for.
fn pulled(
    faults: &[(&'static str, Fault)],
    is_without_ranges: bool,
) -> (Result<(), String>, usize) {
    let (server, _, _) = served();
    server.set(|state| {
        state.faults.extend(faults);
        state.is_without_ranges = is_without_ranges;
    });
    let mut registry = client();
    let has = |wanted: Fault| faults.iter().any(|(_, fault)| *fault == wanted);
    if has(Fault::Silence) {
        registry.conditions.read_time_max = TIME_MAX;
    }
    if has(Fault::Endless) {
        registry.conditions.request_time_max = TIME_MAX;
    }
    // HTTPS is tried only once, so that one late answer would decide: leave it out.
    registry.settings.plain_http = has(Fault::Silence) || has(Fault::Endless);
    let got = fetched(&registry, &server.reference("a/release:1.0.0"));
    let got = got.map(|got| assert_eq!(sorted(got), sorted(files("1.0.0"))));
    let got = got.map_err(|error| without_digests(&error).replace(&server.host, "HOST"));
    (got, server.requests("bytes=").len())
}

#[test]
fn what_passes_is_tried_again() {
    let check = |faults: &[(&'static str, Fault)]| {
        assert_eq!(pulled(faults, false).0, Ok(()), "{faults:?}");
    };
    for place in ["/v2/ ", "/manifests/", "/blobs/"] {
        check(&[(place, Fault::Status(503)), (place, Fault::Status(429))]);
        check(&[(place, Fault::Status(500)); 5]);
    }
    check(&[("/manifests/", Fault::Half)]);
    check(&[("/manifests/", Fault::Silence), ("/blobs/", Fault::Silence)]);
    check(&[("/manifests/", Fault::Endless)]);
}

#[test]
fn a_layer_that_breaks_off_goes_on_where_it_did() {
    let half = [("/blobs/", Fault::Half); 2];
    assert_eq!(pulled(&half, false), (Ok(()), 2));
    // Or from its beginning, if the registry cannot do that.
    assert_eq!(pulled(&half, true), (Ok(()), 2));
    // What is put together wrongly is fetched once more.
    let wrong = [("/blobs/", Fault::Half), ("bytes=", Fault::Wrong)];
    assert_eq!(pulled(&wrong, false), (Ok(()), 1));
}

#[test]
fn what_does_not_pass_is_said() {
    let check = |faults: &[(&'static str, Fault)], expected: &str| {
        assert_eq!(pulled(faults, false).0, Err(expected.to_owned()), "{faults:?}");
    };
    check(
        &[("/blobs/", Fault::Wrong); 2],
        "`HOST/a/release@DIGEST`: its content does not match its digest",
    );
    check(
        &[("/manifests/", Fault::Endless); 6],
        "the registry `HOST` answers with an error for `HOST/a/release:1.0.0`: no complete answer \
         within 1 s",
    );
    check(
        &[("/manifests/", Fault::Status(503)); 6],
        "the registry `HOST` answers with an error for `HOST/a/release:1.0.0`: status 503 \
         {\"errors\":[{\"code\":\"UNKNOWN\",\"message\":\"said by the registry\"}]}",
    );
    check(
        &[("/manifests/", Fault::Status(418))],
        "the registry `HOST` answers with an error for `HOST/a/release:1.0.0`: said by the registry",
    );
    check(
        &[("/manifests/", Fault::Status(404))],
        "the registry `HOST` answers with an error for `HOST/a/release:1.0.0`: said by the registry",
    );
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let (server, _, _) = served();
    let check = |path: &str, expected: &str| {
        let error = fetched(&client(), &server.reference(path)).expect_err("it is not there");
        assert_eq!(error.replace(&server.host, "HOST"), expected);
    };
    check("a/release:2", "the registry has no image `HOST/a/release:2`; the repository has 1.0.0");
    check("a/nothing:2", "the registry has no image `HOST/a/nothing:2`");
    check("a/nothing", "the registry has no repository `HOST/a/nothing`");
}

#[test]
fn content_that_is_not_that_of_the_digest_is_refused() {
    let (server, digest, _) = served();
    let by_digest = server.reference(&format!("a/release@{digest}"));
    let key = ("a/release".to_owned(), digest.clone());
    server.set(|state| {
        let (_, manifest) = state.manifests.get_mut(&key).expect("it is there");
        let text = String::from_utf8(manifest.clone()).expect("it is text");
        *manifest = text.replace("1.0.0", "1.0.1").into_bytes();
    });
    let error = fetched(&client(), &by_digest).expect_err("it is refused");
    assert_eq!(error, format!("`{by_digest}`: what the registry gives does not match the digest"));
    // A layer that is longer than its descriptor says.
    let (server, _, layer) = served();
    server.set(|state| state.blobs.get_mut(&layer).expect("it is there").push(0));
    let error =
        fetched(&client(), &server.reference("a/release:1.0.0")).expect_err("it is refused");
    let size = server.state.lock().expect("no panic").blobs[&layer].len() - 1;
    assert_eq!(
        error,
        format!(
            "`{}/a/release@{layer}`: it is larger than the {size} bytes that its image says",
            server.host
        )
    );
}

#[test]
fn credentials_are_sent_and_never_shown() {
    let (server, _, _) = served();
    let header = format!("Basic {}", STANDARD.encode("user:secret"));
    server.set(|state| state.authorization = header);
    let here = tempfile::tempdir().expect("a directory");
    let path = here.path().join("auth.json");
    let with = |password: &str| {
        let auth = STANDARD.encode(format!("user:{password}"));
        let text = json!({ "auths": { server.host.as_str(): { "auth": auth } } });
        fs::write(&path, text.to_string()).expect("a file");
        let settings = RegistrySettings { auth_file: Some(path.clone()), ..Default::default() };
        fetched(&client_with(settings), &server.reference("a/release:1.0.0"))
    };
    assert_eq!(with("secret").map(sorted), Ok(sorted(files("1.0.0"))));
    let refused = |error: String| error.replace(&server.host, "HOST");
    assert_eq!(
        with("wrong").map_err(refused),
        Err(format!(
            "the registry refuses access to `HOST/a/release:1.0.0` with the credentials of {}",
            path.display()
        ))
    );
    let error = fetched(&client(), &server.reference("a/release:1.0.0")).expect_err("refused");
    assert_eq!(
        refused(error),
        "the registry refuses access to `HOST/a/release:1.0.0` without credentials; give a file with \
         some with --registry-auth FILE"
    );
}

#[test]
fn a_mirror_is_asked_first_and_the_registry_if_it_fails() {
    let (server, _, _) = served();
    let here = tempfile::tempdir().expect("a directory");
    let path = here.path().join("registries.conf");
    let text = format!(
        "[[registry]]\nlocation = \"{0}/far\"\n[[registry.mirror]]\nlocation = \"127.0.0.1:1/a\"\n\
         [[registry.mirror]]\nlocation = \"{0}/a\"\n",
        server.host
    );
    fs::write(&path, text).expect("a file");
    let settings = RegistrySettings { registries_conf: Some(path), ..Default::default() };
    let registry = client_with(settings);
    let far = server.reference("far/release:1.0.0");
    assert_eq!(fetched(&registry, &far).map(sorted), Ok(sorted(files("1.0.0"))));
    // To what is pushed, mirrors are nothing.
    registry.push_release(&files("2.0.0"), &server.reference("far/release")).expect("pushed");
    assert_eq!(server.requests("PUT /v2/a/"), Vec::<String>::new());
    let far = server.reference("far/release:2.0.0");
    assert_eq!(fetched(&registry, &far).map(sorted), Ok(sorted(files("2.0.0"))));
}

/// The blobs of a layout, by name.
fn blobs(layout: &Path) -> Vec<String> {
    let entries = fs::read_dir(layout.join("blobs/sha256")).expect("there are blobs");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("a blob").file_name();
    let mut names: Vec<_> = entries.map(|it| name(it).into_string().expect("text")).collect();
    names.sort();
    names
}

#[test]
fn a_mirror_of_all_architectures_keeps_digests_on_the_way_there_and_back() {
    let built = Layout::new();
    let paths: Vec<(String, Vec<u8>)> = files("1.0.0")
        .iter()
        .map(|it| (format!("{}/{}", it.directory, it.name), it.bytes.to_vec()))
        .collect();
    let paths: Vec<(&str, &[u8])> =
        paths.iter().map(|(it, bytes)| (it.as_str(), &**bytes)).collect();
    let own = built.image(&[built.layer(&paths, true)]);
    let mut foreign = built.image(&[built.layer(&[("x", b"x")], false)]);
    foreign["platform"] = json!({ "architecture": "s390x", "os": "linux" });
    let index = json!({ "schemaVersion": 2, "manifests": [foreign, own] });
    let mut index = built.blob(index.to_string().as_bytes(), "index.v1+json");
    index["annotations"] = json!({ "org.opencontainers.image.ref.name": "v1" });
    built.index(std::slice::from_ref(&index));
    let digest = index["digest"].as_str().expect("a digest").to_owned();

    let server = Server::start();
    let there = client().push_from_layout(built.path(), &server.reference("a/release"));
    let expected = CopiedImage { reference: server.reference("a/release:v1"), digest };
    assert_eq!(there.expect("it is pushed"), std::slice::from_ref(&expected));
    let back = tempfile::tempdir().expect("a directory");
    let layout = back.path().join("layout");
    let copied = client().pull_to_layout(&server.reference("a/release"), &layout);
    assert_eq!(copied.expect("it is pulled"), std::slice::from_ref(&expected));
    assert_eq!(blobs(&layout), blobs(built.path()));
    // As a release, only the image for this machine is pulled.
    let cache = tempfile::tempdir().expect("a directory");
    let store = RegistryStore::new(client(), server.reference("a/release:v1"), Some(cache.path()));
    assert_eq!(store.list().expect("it can be read").releases[0].release.version, "1.0.0");
    assert_eq!(blobs(cache.path()).len(), blobs(built.path()).len() - 2);
    // The layout is a store as well, under the name that the image had.
    let listing = OciLayout::new(&layout).list().expect("it can be read");
    assert_eq!(listing.releases[0].image, format!("{}/a/release@{}", server.host, expected.digest));
    // From one repository to another.
    let copied = client().copy(&expected.reference, &server.reference("b/c:x"));
    let expected = CopiedImage { reference: server.reference("b/c:x"), ..expected };
    assert_eq!(copied.expect("it is copied"), [expected]);
}

#[test]
fn a_layout_of_several_images_has_no_single_tag() {
    let server = Server::start();
    let here = tempfile::tempdir().expect("a directory");
    for version in ["1.0.0", "1.1.0"] {
        let pushed = client().push_release(&files(version), &server.reference("a/release"));
        let from = pushed.expect("it is pushed").reference;
        client().pull_to_layout(&from, here.path()).expect("it is pulled");
    }
    let error = client().push_from_layout(here.path(), &server.reference("b:x"));
    let error = error.expect_err("there are two").to_string();
    assert!(error.contains("the layout lists several images"), "{error}");
    let pushed = client().push_from_layout(here.path(), &server.reference("b"));
    let pushed = pushed.expect("each has its tag");
    let tags: Vec<_> = pushed.iter().map(|it| it.reference.tag()).collect();
    assert_eq!(tags, [Some("1.0.0"), Some("1.1.0")]);
    let occupied = tempfile::tempdir().expect("a directory");
    fs::write(occupied.path().join("file"), "text").expect("a file");
    let error = client().pull_to_layout(&server.reference("b:1.0.0"), occupied.path());
    let error = error.expect_err("it is occupied").to_string();
    assert!(error.ends_with("neither an OCI image layout nor empty"), "{error}");
}
