//! Credentials for registries, from the files that podman, docker and their like keep.
//!
//! The first file that has credentials for a repository gives them. In a file, the longest path that
//! leads to the repository counts: `host/namespace/repository` before `host/namespace` before `host`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oci_client::secrets::RegistryAuth;
use serde::Deserialize;

use super::error::RegistryError;
use super::reference::ImageReference;
use crate::bounded::{WRITTEN_SIZE_MAX, read_file};

/// The user name with which helpers mark identity tokens.
const TOKEN_USER: &str = "<token>";

/// The value of an environment variable.
pub(super) type Environment<'e> = &'e dyn Fn(&str) -> Option<OsString>;

/// Credentials and where they are from.
#[derive(Debug, Clone)]
pub(super) struct Credentials {
    pub(super) auth: RegistryAuth,
    /// In words, for errors: `with the credentials of FILE`.
    pub(super) origin: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AuthFile {
    auths: BTreeMap<String, AuthEntry>,
    cred_helpers: BTreeMap<String, String>,
    creds_store: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct AuthEntry {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
    registrytoken: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct HelperAnswer {
    username: String,
    secret: String,
}

/// The files that may have credentials, in the order in which they are read. The first one is
/// required to be there if it was named.
fn files(given: Option<&Path>, environment: Environment<'_>) -> (Vec<PathBuf>, bool) {
    if let Some(given) = given {
        return (vec![given.to_owned()], true);
    }
    let directory = |name: &str| environment(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    if let Some(file) = directory("REGISTRY_AUTH_FILE") {
        return (vec![file], true);
    }
    let docker = directory("DOCKER_CONFIG").or_else(|| Some(directory("HOME")?.join(".docker")));
    let podman = directory("XDG_RUNTIME_DIR").map(|it| it.join("containers/auth.json"));
    (podman.into_iter().chain(docker.map(|it| it.join("config.json"))).collect(), false)
}

/// Finds the credentials for a repository; without any, access is anonymous.
///
/// # Errors
/// [`RegistryError::Configuration`] when a file cannot be read, [`RegistryError::Helper`] when a
/// credential helper fails.
pub(super) fn find(
    reference: &ImageReference,
    given: Option<&Path>,
    environment: Environment<'_>,
) -> Result<Credentials, RegistryError> {
    let (files, is_required) = files(given, environment);
    for path in &files {
        let text = match read_file(path, WRITTEN_SIZE_MAX) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_required => continue,
            Err(error) => return Err(unusable(path, &error.to_string())),
        };
        // Errors of the parser name a place, and no content.
        let file: AuthFile = serde_json::from_slice(&text).map_err(|error| {
            unusable(path, &format!("not in the format of docker's config.json: {error}"))
        })?;
        if let Some(auth) = in_file(&file, path, reference, environment)? {
            let origin = format!("with the credentials of {}", path.display());
            return Ok(Credentials { auth, origin });
        }
    }
    let searched: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let origin = match searched.as_slice() {
        [] => "without credentials; give a file with some with --registry-auth FILE".to_owned(),
        _ => format!(
            "without credentials; none for it are in {}; give a file with some with \
             --registry-auth FILE",
            searched.join(" or ")
        ),
    };
    Ok(Credentials { auth: RegistryAuth::Anonymous, origin })
}

fn in_file(
    file: &AuthFile,
    path: &Path,
    reference: &ImageReference,
    environment: Environment<'_>,
) -> Result<Option<RegistryAuth>, RegistryError> {
    let host = reference.host();
    let helpers = file.cred_helpers.iter().find(|(key, _)| same_host(normal(key), host));
    if let Some((key, helper)) = helpers {
        return ask(helper, key, host, environment);
    }
    for name in paths(&reference.name()) {
        let entry = file.auths.iter().find(|(key, _)| same_host(normal(key), name));
        if let Some((_, entry)) = entry
            && let Some(auth) = entry_auth(entry, path, name)?
        {
            return Ok(Some(auth));
        }
    }
    if file.creds_store.is_empty() {
        return Ok(None);
    }
    // Docker keeps those of its own registry under another name.
    let key = if host == "docker.io" { "https://index.docker.io/v1/" } else { host };
    ask(&file.creds_store, key, host, environment)
}

/// The repository, the namespaces that it lies in, and the host, the longest first.
fn paths(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| Some(name.rsplit_once('/')?.0))
}

/// A key without scheme and version, as docker wrote it long ago.
fn normal(key: &str) -> &str {
    let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let key = key.trim_end_matches('/');
    key.strip_suffix("/v1").or_else(|| key.strip_suffix("/v2")).unwrap_or(key)
}

fn same_host(key: &str, name: &str) -> bool {
    key == name || key == "index.docker.io" && name == "docker.io"
}

fn entry_auth(
    entry: &AuthEntry,
    path: &Path,
    name: &str,
) -> Result<Option<RegistryAuth>, RegistryError> {
    let AuthEntry { auth, username, password, identitytoken, registrytoken } = entry;
    if !registrytoken.is_empty() {
        return Ok(Some(RegistryAuth::Bearer(registrytoken.clone())));
    }
    if !identitytoken.is_empty() {
        return Err(unusable(
            path,
            &format!("`{name}` has an identity token, which is not supported"),
        ));
    }
    if auth.is_empty() {
        let is_there = !username.is_empty();
        return Ok(is_there.then(|| RegistryAuth::Basic(username.clone(), password.clone())));
    }
    let decoded = STANDARD.decode(auth.trim()).ok().and_then(|it| String::from_utf8(it).ok());
    match decoded.as_deref().and_then(|it| it.split_once(':')) {
        // Docker fills it up with zeros.
        Some((user, password)) => Ok(Some(RegistryAuth::Basic(
            user.to_owned(),
            password.trim_end_matches('\0').to_owned(),
        ))),
        None => {
            Err(unusable(path, &format!("the `auth` of `{name}` is not USER:PASSWORD as base64")))
        }
    }
}

/// Asks a credential helper: its name follows `docker-credential-`.
fn ask(
    helper: &str,
    key: &str,
    host: &str,
    environment: Environment<'_>,
) -> Result<Option<RegistryAuth>, RegistryError> {
    let program = format!("docker-credential-{helper}");
    let failed = |problem: String| RegistryError::Helper {
        program: program.clone(),
        host: host.to_owned(),
        problem,
    };
    let is_name = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.');
    if !helper.bytes().all(is_name) {
        return Err(failed("it is not the name of a program".to_owned()));
    }
    let mut command = Command::new(&program);
    if let Some(path) = environment("PATH") {
        command.env("PATH", path);
    }
    let asked = command
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .and_then(|mut child| {
            if let Some(mut stdin) = child.stdin.take() {
                stdin.write_all(key.as_bytes())?;
            }
            child.wait_with_output()
        });
    let output = asked.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stdout);
        if said.contains("credentials not found") {
            return Ok(None);
        }
        return Err(failed(format!("it ends with {}", output.status)));
    }
    let answer: HelperAnswer = serde_json::from_slice(&output.stdout)
        .map_err(|_| failed("its answer has no Username and Secret".to_owned()))?;
    if answer.username == TOKEN_USER {
        return Err(failed("it has an identity token, which is not supported".to_owned()));
    }
    Ok(Some(RegistryAuth::Basic(answer.username, answer.secret)))
}

fn unusable(path: &Path, problem: &str) -> RegistryError {
    RegistryError::Configuration {
        what: "credentials",
        path: path.to_owned(),
        problem: problem.to_owned(),
    }
}

#[cfg(test)]
mod tests;
