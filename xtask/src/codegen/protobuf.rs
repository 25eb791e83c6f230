//! The tables of protocol buffers: `cargo xtask codegen protobuf --from DIR`.
//!
//! DIR holds the Go modules `k8s.io/{api,apimachinery,apiextensions-apiserver,kube-aggregator}`, as
//! a module cache keeps them. Their `generated.proto` files tell numbers and types of fields; the
//! tags of their Go structs tell what the same fields are called in JSON and which of them JSON
//! leaves out when they are zero. What comes out is `kubernetes/k8s-schema/data/protobuf.bin`, a
//! compressed JSON document: `packages` by group-version, and `messages`, each either the name of a
//! special form or a list of fields `[number, JSON name, type, flags]`.
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use protox::file::{File, FileResolver, GoogleFileResolver};
use serde_json::{Map, Value, json};

use super::go_structs::{self, Tag};

const OUTPUT: &str = "kubernetes/k8s-schema/data/protobuf.bin";
const MODULES: [&str; 4] = ["api", "apimachinery", "apiextensions-apiserver", "kube-aggregator"];
const META_PACKAGE: &str = "k8s.io.apimachinery.pkg.apis.meta.v1";

/// Flags of a field.
const REPEATED: u8 = 1;
const MAP: u8 = 2;
const KEEPS_ZERO: u8 = 4;

const LABEL_REPEATED: i32 = 3;
const TYPE_MESSAGE: i32 = 11;

/// Messages that JSON shows in a form of their own, by the end of their name.
const SPECIAL: [(&str, &str); 13] = [
    ("pkg.api.resource.Quantity", "quantity"),
    ("pkg.util.intstr.IntOrString", "intOrString"),
    ("meta.v1.Time", "time"),
    ("meta.v1.MicroTime", "microTime"),
    ("meta.v1.Duration", "duration"),
    ("meta.v1.FieldsV1", "json"),
    ("meta.v1.Verbs", "items"),
    ("pkg.runtime.RawExtension", "json"),
    ("pkg.runtime.Unknown", "json"),
    ("apiextensions.v1.JSON", "json"),
    ("apiextensions.v1.JSONSchemaPropsOrArray", "schemaOrArray"),
    ("apiextensions.v1.JSONSchemaPropsOrBool", "schemaOrBool"),
    ("apiextensions.v1.JSONSchemaPropsOrStringArray", "schemaOrStrings"),
];

/// Finds `k8s.io/MODULE/...` in `MODULE@VERSION/...`.
struct Modules {
    directories: BTreeMap<String, PathBuf>,
}

impl Modules {
    fn find(directory: &Path) -> Result<Self> {
        let mut directories = BTreeMap::new();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let module = name.split('@').next().unwrap_or_default();
            if name.contains('@') && MODULES.contains(&module) {
                directories.insert(module.to_owned(), path);
            }
        }
        if directories.len() < MODULES.len() {
            bail!("{} does not hold all of {MODULES:?}", directory.display());
        }
        Ok(Self { directories })
    }

    /// The file or directory of an import path such as `k8s.io/api/core/v1`.
    fn path(&self, import: &str) -> Option<PathBuf> {
        let (module, rest) = import.strip_prefix("k8s.io/")?.split_once('/')?;
        Some(self.directories.get(module)?.join(rest))
    }

    /// Import paths of the packages of all stable group-versions.
    fn stable_packages(&self) -> Result<Vec<String>> {
        let mut packages = vec![
            "k8s.io/apimachinery/pkg/apis/meta/v1".to_owned(),
            "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1".to_owned(),
            "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1".to_owned(),
        ];
        for group in fs::read_dir(&self.directories["api"])? {
            let group = group?;
            if !group.file_type()?.is_dir() {
                continue;
            }
            for version in fs::read_dir(group.path())? {
                let (group, version) = (group.file_name(), version?.file_name());
                let (group, version) = (group.to_string_lossy(), version.to_string_lossy());
                let is_stable = version
                    .strip_prefix('v')
                    .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
                let package = format!("k8s.io/api/{group}/{version}");
                if is_stable && self.path(&package).is_some_and(|path| has_messages(&path)) {
                    packages.push(package);
                }
            }
        }
        packages.sort();
        Ok(packages)
    }
}

fn has_messages(package: &Path) -> bool {
    package.join("generated.proto").exists()
}

impl FileResolver for Modules {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let path = self.path(name).ok_or_else(|| protox::Error::file_not_found(name))?;
        let source = fs::read_to_string(path).map_err(protox::Error::new)?;
        File::from_source(name, &source)
    }
}

/// Writes the tables.
pub(super) fn write(directory: &Path) -> Result<()> {
    let modules = Modules::find(directory)?;
    let packages = modules.stable_packages()?;
    let mut group_versions = Map::new();
    for package in packages.iter().filter(|package| !package.contains("apimachinery")) {
        let path = modules.path(package).context("the package was found before")?;
        let group = go_structs::group_name(&path)?;
        let version = package.rsplit('/').next().unwrap_or_default();
        let name = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        group_versions.insert(name, proto_package(package).into());
    }
    let messages = read_messages(directory, &packages)?;
    let document = json!({"meta": META_PACKAGE, "packages": group_versions, "messages": messages});
    let target = crate::workspace_root()?.join(OUTPUT);
    fs::write(&target, super::pack(&document)?)
        .with_context(|| format!("cannot write {}", target.display()))
}

fn proto_package(import: &str) -> String {
    import.replace('/', ".").replace('-', "_")
}

fn read_messages(directory: &Path, packages: &[String]) -> Result<Map<String, Value>> {
    let modules = Modules::find(directory)?;
    let mut resolver = protox::file::ChainFileResolver::new();
    resolver.add(Modules::find(directory)?);
    resolver.add(GoogleFileResolver::new());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    for package in packages {
        compiler
            .open_file(format!("{package}/generated.proto"))
            .with_context(|| format!("cannot compile {package}"))?;
    }
    let mut messages = Map::new();
    for file in compiler.file_descriptor_set().file {
        let import = file.name().trim_end_matches("/generated.proto").to_owned();
        let Some(path) = modules.path(&import) else {
            continue;
        };
        let structs = go_structs::read(&path)?;
        for message in &file.message_type {
            let name = format!("{}.{}", file.package(), message.name());
            if let Some(form) = special_form(&name) {
                messages.insert(name, form.into());
                continue;
            }
            let maps: BTreeMap<String, _> = message
                .nested_type
                .iter()
                .map(|nested| (format!(".{name}.{}", nested.name()), nested))
                .collect();
            let Some(tags) = structs.get(message.name()) else {
                // A Go list that needed a message of its own.
                let is_list = message.field.len() == 1 && message.field[0].name() == "items";
                if is_list {
                    messages.insert(name, "items".into());
                } else if message.field.is_empty() {
                    messages.insert(name, json!([]));
                }
                continue;
            };
            let mut fields = Vec::new();
            for field in &message.field {
                let tag = tags
                    .get(&field.number())
                    .with_context(|| format!("{name}.{} has no tag", field.name()))?;
                let (mut flags, mut field_type) = (0, (field.r#type, field.type_name()));
                if let Some(entry) = maps.get(field.type_name()) {
                    flags |= MAP;
                    let value = entry.field.iter().find(|part| part.number() == 2);
                    let value = value.with_context(|| format!("{name} has a map of nothing"))?;
                    field_type = (value.r#type, value.type_name());
                } else if field.label == Some(LABEL_REPEATED) {
                    flags |= REPEATED;
                }
                if tag.keeps_zero {
                    flags |= KEEPS_ZERO;
                }
                let type_name = type_name(field_type.0, field_type.1)
                    .with_context(|| format!("{name}.{} has a strange type", field.name()))?;
                fields.push(field_entry(field.number(), tag, &type_name, flags));
            }
            messages.insert(name, fields.into());
        }
    }
    check_references(&messages)?;
    Ok(messages)
}

fn field_entry(number: i32, tag: &Tag, type_name: &str, flags: u8) -> Value {
    json!([number, tag.json_name, type_name, flags])
}

fn special_form(name: &str) -> Option<&'static str> {
    SPECIAL.iter().find(|(end, _)| name.ends_with(end)).map(|(_, form)| *form)
}

fn type_name(field_type: Option<i32>, message: &str) -> Option<String> {
    let scalar = match field_type? {
        TYPE_MESSAGE => return Some(message.trim_start_matches('.').to_owned()),
        1 => "double",
        3 | 5 => "int",
        8 => "bool",
        9 => "string",
        12 => "bytes",
        _ => return None,
    };
    Some(scalar.to_owned())
}

/// Every message that a field refers to is in the tables.
fn check_references(messages: &Map<String, Value>) -> Result<()> {
    let missing: BTreeSet<&str> = messages
        .values()
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(|field| field[2].as_str())
        .filter(|name| name.contains('.') && !messages.contains_key(*name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!("messages without a Go struct: {missing:?}")
}
