//! Credentials that count, and errors about those that cannot be used.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// What a directory of files gives for a reference; `~` is the directory, where all the places are
/// that may have a file.
fn found(
    files: &[(&str, &str)],
    reference: &str,
    given: Option<&str>,
    variables: &[&str],
) -> String {
    let here = tempfile::tempdir().expect("a directory");
    let root = here.path();
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("it lies in a directory")).expect("a directory");
        fs::write(&path, text).expect("a file");
        if text.starts_with("#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
        }
    }
    let environment = |name: &str| {
        let value = variables.iter().find_map(|it| it.strip_prefix(name)?.strip_prefix('='));
        Some(value?.replace('~', root.to_str()?).into())
    };
    let given = given.map(|it| root.join(it));
    let reference = reference.parse().expect("a reference");
    let text = match find(&reference, given.as_deref(), &environment) {
        Ok(Credentials { auth: RegistryAuth::Basic(user, password), origin }) => {
            format!("{user} {password} {origin}")
        }
        Ok(Credentials { auth: RegistryAuth::Bearer(token), origin }) => {
            format!("{token} {origin}")
        }
        Ok(Credentials { auth: RegistryAuth::Anonymous, origin }) => origin,
        Err(error) => format!("error: {error}"),
    };
    text.replace(root.to_str().expect("it is text"), "~")
}

/// Credentials of several repositories in one file: `user:secret` and so on.
const SEVERAL: &str = r#"{"auths": {
    "quay.io": {"auth": "aG9zdDpzZWNyZXQ="},
    "quay.io/ocp": {"auth": "bmFtZXNwYWNlOnNlY3JldA=="},
    "quay.io/ocp/release": {"username": "repository", "password": "secret"},
    "https://index.docker.io/v1/": {"auth": "ZG9ja2VyOnNlY3JldA=="},
    "token.example": {"registrytoken": "abc"},
    "broken.example": {"auth": "c2VjcmV0"},
    "identity.example": {"auth": "", "identitytoken": "abc"}
}}"#;

#[test]
fn the_longest_path_that_leads_to_the_repository_counts() {
    let check = |reference: &str, expected: &str| {
        assert_eq!(found(&[("a", SEVERAL)], reference, Some("a"), &[]), expected, "{reference}");
    };
    let of = "with the credentials of ~/a";
    check("quay.io/ocp/release:1", &format!("repository secret {of}"));
    check("quay.io/ocp/other:1", &format!("namespace secret {of}"));
    check("quay.io/ocpx/other:1", &format!("host secret {of}"));
    check("docker.io/library/nginx:1", &format!("docker secret {of}"));
    check("token.example/a", &format!("abc {of}"));
    check(
        "other.example/a",
        "without credentials; none for it are in ~/a; give a file with some with --registry-auth FILE",
    );
    check(
        "broken.example/a",
        "error: cannot use the credentials in ~/a: the `auth` of `broken.example` is not USER:PASSWORD as base64",
    );
    check(
        "identity.example/a",
        "error: cannot use the credentials in ~/a: `identity.example` has an identity token, which is not supported",
    );
}

#[test]
fn files_are_looked_for_where_podman_and_docker_keep_them() {
    let one = |user: &str| {
        let auth = STANDARD.encode(format!("{user}:x"));
        format!(r#"{{"auths": {{"quay.io": {{"auth": "{auth}"}}}}}}"#)
    };
    let (given, named, podman, docker, home) =
        (one("given"), one("named"), one("podman"), one("docker"), one("home"));
    let mut files = vec![
        ("given.json", given.as_str()),
        ("named.json", &named),
        ("run/containers/auth.json", &podman),
        ("docker/config.json", &docker),
        (".docker/config.json", &home),
    ];
    let variables = [
        "REGISTRY_AUTH_FILE=~/named.json",
        "XDG_RUNTIME_DIR=~/run",
        "DOCKER_CONFIG=~/docker",
        "HOME=~",
    ];
    let user = |files: &[(&str, &str)], given: Option<&str>, variables: &[&str]| {
        let text = found(files, "quay.io/a", given, variables);
        text.split(' ').next().unwrap_or_default().to_owned()
    };
    assert_eq!(user(&files, Some("given.json"), &variables), "given");
    assert_eq!(user(&files, None, &variables), "named");
    assert_eq!(user(&files, None, &variables[1..]), "podman");
    files.remove(2);
    assert_eq!(user(&files, None, &variables[1..]), "docker");
    assert_eq!(user(&files, None, &variables[3..]), "home");
    assert_eq!(
        found(&[], "quay.io/a", Some("a"), &[]),
        "error: cannot use the credentials in ~/a: No such file or directory (os error 2)"
    );
    assert_eq!(
        found(&[], "quay.io/a", None, &["HOME=~"]),
        "without credentials; none for it are in ~/.docker/config.json; give a file with some with \
         --registry-auth FILE"
    );
    let broken = found(&[("a", "{\"auths\": secret")], "quay.io/a", Some("a"), &[]);
    assert!(
        broken.starts_with(
            "error: cannot use the credentials in ~/a: not in the format of docker's config.json: "
        ),
        "{broken}"
    );
    assert!(!broken.contains("secret"), "{broken}");
}

#[test]
fn helpers_are_asked() {
    let helper = "#!/bin/sh\nread -r server\ncase $server in\n\
        quay.io) echo '{\"ServerURL\":\"x\",\"Username\":\"helped\",\"Secret\":\"secret\"}';;\n\
        token.example) echo '{\"ServerURL\":\"x\",\"Username\":\"<token>\",\"Secret\":\"secret\"}';;\n\
        broken.example) echo secret; exit 3;;\n\
        *) echo 'credentials not found in native keychain'; exit 1;;\nesac\n";
    let check = |config: &str, reference: &str, expected: &str| {
        let files = [("bin/docker-credential-here", helper), ("a", config)];
        assert_eq!(
            found(&files, reference, Some("a"), &["PATH=~/bin:/bin"]),
            expected,
            "{reference}"
        );
    };
    let store = r#"{"credsStore": "here"}"#;
    check(store, "quay.io/a", "helped secret with the credentials of ~/a");
    check(
        store,
        "other.example/a",
        "without credentials; none for it are in ~/a; give a file with some with --registry-auth FILE",
    );
    check(
        store,
        "broken.example/a",
        "error: the credential helper `docker-credential-here` gives no credentials for \
         `broken.example`: it ends with exit status: 3",
    );
    check(
        store,
        "token.example/a",
        "error: the credential helper `docker-credential-here` gives no credentials for \
         `token.example`: it has an identity token, which is not supported",
    );
    check(
        r#"{"credHelpers": {"quay.io": "here"}, "auths": {"quay.io": {"auth": "aG9zdDpzZWNyZXQ="}}}"#,
        "quay.io/a",
        "helped secret with the credentials of ~/a",
    );
    check(
        r#"{"credHelpers": {"quay.io": "../here"}}"#,
        "quay.io/a",
        "error: the credential helper `docker-credential-../here` gives no credentials for \
         `quay.io`: it is not the name of a program",
    );
    check(
        r#"{"credHelpers": {"quay.io": "absent"}}"#,
        "quay.io/a",
        "error: the credential helper `docker-credential-absent` gives no credentials for \
         `quay.io`: No such file or directory (os error 2)",
    );
}
