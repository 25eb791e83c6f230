//! The programs that render components: `helm`, and `kustomize` or `kubectl`.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use plimsoll_content::authoring::{ChartValues, Component, ReleaseSource};
use plimsoll_content::yaml;
use serde_json::Value;

use super::child::{self, Bounds, Stop};

/// The namespace that charts are rendered for whose component names none: Helm would take the one of
/// whatever cluster is configured.
const DEFAULT_NAMESPACE: &str = "default";
/// What a program may take. The largest charts that people publish are rendered in some seconds, to some
/// megabytes; a kustomization may have to download its bases.
const BOUNDS: Bounds =
    Bounds { time: Duration::from_secs(300), memory: 4 << 30, output: 256 << 20 };
/// What the line begins with in which Helm names the template of what follows.
const TEMPLATE_LINE: &str = "# Source: ";

/// A program and its version.
type Version = (String, String);

/// Why a component cannot be rendered; said of the component.
#[derive(Debug, thiserror::Error)]
pub(super) enum RenderError {
    #[error("{what}: install {program}, which is not in PATH")]
    Missing { what: &'static str, program: &'static str },
    #[error("cannot be rendered: {program}: {source}")]
    Run { program: &'static str, source: io::Error },
    #[error("cannot be rendered: {program}: {message}")]
    Failed { program: &'static str, message: String },
    #[error(
        "cannot be rendered: {program} prints more than {max} MiB{}: look for what its templates \
         repeat", in_template(.template), max = BOUNDS.output >> 20
    )]
    Size { program: &'static str, template: Option<String> },
    #[error(
        "cannot be rendered: {0} has no end within {max} s: look for templates that repeat or include \
         themselves", max = BOUNDS.time.as_secs()
    )]
    Time(&'static str),
    #[error(
        "cannot be rendered: {0} takes more than {max} GiB of memory: look for templates that repeat or \
         include themselves", max = BOUNDS.memory >> 30
    )]
    Memory(&'static str),
    #[error("cannot be rendered: the values `{}` cannot be read: {source}", .path.display())]
    Values { path: PathBuf, source: io::Error },
    #[error(
        "is rendered differently each time{}, so its release could not be built again: give the \
         values that the chart generates in values", in_template(.0)
    )]
    Random(Option<String>),
}

fn in_template(template: &Option<String>) -> String {
    template.as_ref().map_or_else(String::new, |name| format!(" ({name})"))
}

/// Renders a Helm chart.
pub(super) fn helm(
    directory: &Path,
    source: &ReleaseSource,
    component: &Component,
) -> Result<(String, Version), RenderError> {
    const HELM: &str = "helm";
    const WHAT: &str = "is a Helm chart";
    let version = run(HELM, Command::new(HELM).args(["version", "--template", "{{.Version}}"]))?
        .ok_or(RenderError::Missing { what: WHAT, program: HELM })?;
    let values = values(directory, component)?;
    let mut command = Command::new(HELM);
    command.args(["template", &component.name]).arg(directory.join(&component.name));
    command.args(["--include-crds", "--namespace"]);
    command.arg(component.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE));
    if let Some(version) = &source.kube_version {
        command.args(["--kube-version", version]);
    }
    for version in &component.api_versions {
        command.args(["--api-versions", version]);
    }
    if let Some(values) = &values {
        command.arg("--values").arg(values.path());
    }
    let missing = RenderError::Missing { what: WHAT, program: HELM };
    let first = run(HELM, &mut command)?.ok_or(missing)?;
    // Charts may generate keys and passwords, and look at the clock.
    let second = run(HELM, &mut command)?;
    if second.as_deref() != Some(first.as_str()) {
        return Err(RenderError::Random(first_difference(&first, &second.unwrap_or_default())));
    }
    Ok((first, (HELM.to_owned(), version.trim().to_owned())))
}

/// A file with the values of a component.
enum ValuesFile {
    Source(PathBuf),
    Temporary(tempfile::NamedTempFile),
}

impl ValuesFile {
    fn path(&self) -> &OsStr {
        match self {
            Self::Source(path) => path.as_os_str(),
            Self::Temporary(file) => file.path().as_os_str(),
        }
    }
}

fn values(directory: &Path, component: &Component) -> Result<Option<ValuesFile>, RenderError> {
    match &component.values {
        ChartValues::Own => Ok(None),
        ChartValues::File(name) => {
            let path = directory.join(name);
            match inside(directory, &path) {
                Ok(()) => Ok(Some(ValuesFile::Source(path))),
                Err(source) => Err(RenderError::Values { path: name.into(), source }),
            }
        }
        ChartValues::Inline(values) => {
            let file = tempfile::Builder::new().suffix(".yaml").tempfile().and_then(|mut file| {
                file.write_all(yaml::write(values).as_bytes())?;
                Ok(file)
            });
            let unwritten = |source| RenderError::Run { program: "helm", source };
            Ok(Some(ValuesFile::Temporary(file.map_err(unwritten)?)))
        }
    }
}

/// The template in which two outputs of Helm begin to differ.
fn first_difference(first: &str, second: &str) -> Option<String> {
    let mut template = None;
    let mut others = second.lines();
    for line in first.lines() {
        if let Some(name) = line.strip_prefix(TEMPLATE_LINE) {
            template = Some(name.to_owned());
        }
        if others.next() != Some(line) {
            break;
        }
    }
    template
}

/// Checks that a file is in the source.
pub(super) fn inside(directory: &Path, path: &Path) -> io::Result<()> {
    if fs::canonicalize(path)?.starts_with(fs::canonicalize(directory)?) {
        return Ok(());
    }
    Err(io::Error::other("it is not in the source"))
}

/// Renders a kustomization.
pub(super) fn kustomize(folder: &Path) -> Result<(String, Version), RenderError> {
    const KUSTOMIZE: &str = "kustomize";
    const KUBECTL: &str = "kubectl";
    let version = |text: String| (KUSTOMIZE.to_owned(), text.trim().to_owned());
    if let Some(found) = run(KUSTOMIZE, Command::new(KUSTOMIZE).arg("version"))? {
        let text = run(KUSTOMIZE, Command::new(KUSTOMIZE).arg("build").arg(folder))?;
        return Ok((text.unwrap_or_default(), version(found)));
    }
    let mut asked = Command::new(KUBECTL);
    asked.args(["version", "--client", "-o", "json"]);
    let found = run(KUBECTL, &mut asked)?.ok_or(RenderError::Missing {
        what: "is a kustomization",
        program: "kustomize or kubectl",
    })?;
    let found: Value = serde_json::from_str(&found).unwrap_or_default();
    let found = found["kustomizeVersion"].as_str().unwrap_or("of kubectl").to_owned();
    let text = run(KUBECTL, Command::new(KUBECTL).arg("kustomize").arg(folder))?;
    Ok((text.unwrap_or_default(), version(found)))
}

/// The last template that an output of Helm names.
fn last_template(output: &[u8]) -> Option<String> {
    let mut lines = output.rsplit(|byte| *byte == b'\n');
    let name = lines.find_map(|line| line.strip_prefix(TEMPLATE_LINE.as_bytes()))?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// What a program prints; `None` if there is no such program.
fn run(program: &'static str, command: &mut Command) -> Result<Option<String>, RenderError> {
    let printed = match child::run(command, BOUNDS) {
        Ok(printed) => printed,
        Err(Stop::System(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(Stop::System(source)) => return Err(RenderError::Run { program, source }),
        Err(Stop::Time) => return Err(RenderError::Time(program)),
        Err(Stop::Memory) => return Err(RenderError::Memory(program)),
        Err(Stop::Output(output)) => {
            return Err(RenderError::Size { program, template: last_template(&output) });
        }
    };
    if !printed.status.success() {
        let stderr = String::from_utf8_lossy(&printed.stderr);
        let lines: Vec<&str> =
            stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let message = if lines.is_empty() { printed.status.to_string() } else { lines.join("; ") };
        return Err(RenderError::Failed { program, message });
    }
    String::from_utf8(printed.stdout)
        .map(Some)
        .map_err(|_| RenderError::Failed { program, message: "its output is not UTF-8".to_owned() })
}
