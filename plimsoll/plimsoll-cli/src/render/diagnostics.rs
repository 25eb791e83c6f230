//! Diagnostics of all commands, for people, programs, code review and test reports.

mod uri;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use plimsoll_content::diagnostic::{Diagnostic, Severity, has_errors};
use plimsoll_resolve::printable::on_one_line;
use serde::Serialize;
use serde_json::{Value, json};

use self::uri::UriBase;
use super::count::counted;
use super::format::Format;
use crate::exit;

/// What a command checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checked<'a> {
    /// The command, as reports name it.
    pub(crate) command: &'a str,
    /// The directory that paths of diagnostics are relative to; empty for the working directory.
    pub(crate) directory: &'a Path,
    /// What is checked by itself.
    pub(crate) cases: Cases<'a>,
}

/// What is a test case by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cases<'a> {
    /// Files, by their paths.
    Files(&'a [String]),
    /// Packages, by their names. What concerns no package is of its file.
    Packages(&'a [String]),
}

impl<'a> Cases<'a> {
    fn names(self) -> &'a [String] {
        match self {
            Self::Files(names) | Self::Packages(names) => names,
        }
    }

    /// Returns the case that a diagnostic belongs to.
    fn of(self, diagnostic: &Diagnostic) -> &str {
        match self {
            Self::Packages(_) if !diagnostic.package.is_empty() => &diagnostic.package,
            Self::Files(_) | Self::Packages(_) => &diagnostic.file,
        }
    }
}

/// The diagnostics in machine-readable form.
#[derive(Debug, Serialize)]
struct DiagnosticReport<'a> {
    errors: usize,
    warnings: usize,
    infos: usize,
    findings: &'a [Diagnostic],
}

/// Writes the diagnostics of a command. Returns failure if there is an error.
pub(crate) fn write(
    checked: &Checked<'_>,
    diagnostics: &[Diagnostic],
    format: &Format,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let count = |severity| diagnostics.iter().filter(|it| it.severity == severity).count();
    let report = DiagnosticReport {
        errors: count(Severity::Error),
        warnings: count(Severity::Warning),
        infos: count(Severity::Info),
        findings: diagnostics,
    };
    match format {
        Format::Sarif => {
            let base = UriBase::of(checked.directory)?;
            Format::Json.write(&sarif(&base, diagnostics), out)?;
        }
        Format::Junit => out.write_all(junit(checked, diagnostics).as_bytes())?,
        format => {
            if !format.write(&report, out)? {
                out.write_all(text(diagnostics).as_bytes())?;
                let errors = counted(report.errors, "error");
                writeln!(out, "{errors}, {}", counted(report.warnings, "warning"))?;
            }
        }
    }
    Ok(if has_errors(diagnostics) { exit::FAILURE } else { exit::SUCCESS }.into())
}

/// Returns diagnostics for people, one a line and what helps below it.
pub(crate) fn text(diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for it in diagnostics {
        text.push_str(&format!("{}\n", on_one_line(&it.to_string())));
        if let Some(help) = &it.help {
            text.push_str(&format!("  help: {}\n", on_one_line(help)));
        }
    }
    text
}

fn sarif(base: &UriBase, diagnostics: &[Diagnostic]) -> Value {
    let codes: BTreeSet<&str> = diagnostics.iter().map(|it| &*it.code).collect();
    let rules: Vec<Value> = codes.into_iter().map(|code| json!({"id": code})).collect();
    let result = |it: &Diagnostic| {
        let level = match it.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "note",
        };
        let help = it.help.as_ref().map(|help| format!(" (help: {help})")).unwrap_or_default();
        let mut location = json!({"artifactLocation": {"uri": base.uri(&it.file)}});
        if let Some(line) = it.line {
            let column = it.column.unwrap_or(1);
            location["region"] = json!({"startLine": line, "startColumn": column});
        }
        json!({
            "ruleId": it.code,
            "level": level,
            "message": {"text": format!("{}{help}", it.statement())},
            "locations": [{"physicalLocation": location}],
        })
    };
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "plimsoll",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "results": diagnostics.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

/// A test case for each file or package: errors are its failures, everything else its output.
fn junit(checked: &Checked<'_>, diagnostics: &[Diagnostic]) -> String {
    let Checked { command, cases, .. } = *checked;
    let named = cases.names().iter().map(String::as_str);
    let names: BTreeSet<&str> = named.chain(diagnostics.iter().map(|it| cases.of(it))).collect();
    let errors = diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let failed: BTreeSet<&str> = errors.map(|it| cases.of(it)).collect();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" \
         tests=\"{}\" failures=\"{}\">\n",
        escaped(command),
        names.len(),
        failed.len()
    );
    for name in names {
        xml.push_str(&format!("    <testcase name=\"{}\">\n", escaped(name)));
        for it in diagnostics.iter().filter(|it| cases.of(it) == name) {
            let line = escaped(text(std::slice::from_ref(it)).trim_end());
            xml.push_str(&match it.severity {
                Severity::Error => {
                    let code = escaped(&it.code);
                    format!("      <failure type=\"{code}\" message=\"{line}\"/>\n")
                }
                Severity::Warning | Severity::Info => {
                    format!("      <system-out>{line}</system-out>\n")
                }
            });
        }
        xml.push_str("    </testcase>\n");
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

/// A text as XML has it; control characters, which it cannot have, as blanks.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use plimsoll_content::diagnostic::LoadoutCode;

    use super::*;

    #[test]
    fn every_format_has_every_diagnostic() {
        let at = |line, column| (Some(line), Some(column));
        let diagnostic = |file: &str, (line, column), code: LoadoutCode, message: &str| {
            Diagnostic { line, column, ..code.diagnostic(file, message) }
        };
        let mut diagnostics = [
            diagnostic("a.yaml", at(3, 5), LoadoutCode::PackageNotFound, "no \"fox\" < here"),
            diagnostic("b.yaml", at(1, 1), LoadoutCode::Unpinned, "no version"),
            diagnostic("c.yaml", (None, None), LoadoutCode::Orphan, "not needed"),
        ];
        diagnostics[0].help = Some("look".to_owned());
        diagnostics[2].package = "hen".to_owned();
        let written = |format: Format| {
            let mut out = Vec::new();
            let files = ["a.yaml".to_owned(), "d.yaml".to_owned()];
            let (command, directory) = ("lint", Path::new("some dir"));
            let checked = Checked { command, directory, cases: Cases::Files(&files) };
            write(&checked, &diagnostics, &format, &mut out).expect("memory");
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(
            written(Format::Text),
            "a.yaml:3:5: error [OL001]: no \"fox\" < here\n  help: look\n\
             b.yaml:1:1: info [OL013]: no version\n\
             c.yaml: warning [OL006]: package hen: not needed\n1 error, 1 warning\n"
        );
        let junit = written(Format::Junit);
        assert!(junit.contains("tests=\"4\" failures=\"1\""), "{junit}");
        assert!(junit.contains("no &quot;fox&quot; &lt; here   help: look\"/>"), "{junit}");
        let sarif: Value = serde_json::from_str(&written(Format::Sarif)).expect("JSON");
        let results = &sarif["runs"][0]["results"];
        assert_eq!(results[0]["level"], "error");
        let uri =
            results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str();
        assert!(uri.is_some_and(|uri| uri.ends_with("some%20dir/a.yaml")), "{uri:?}");
        assert_eq!(results[0]["locations"][0]["physicalLocation"]["region"]["startColumn"], 5);
        assert_eq!(results[1]["level"], "note");
        assert_eq!(results[2]["message"]["text"], "package hen: not needed");
        assert_eq!(results[2]["locations"][0]["physicalLocation"].get("region"), None);
        let json: Value = serde_json::from_str(&written(Format::Json)).expect("JSON");
        assert_eq!(json["infos"], 1);
        let found: Vec<Diagnostic> =
            serde_json::from_value(json["findings"].clone()).expect("them");
        assert_eq!(found, diagnostics);
    }

    #[test]
    fn packages_are_test_cases_where_they_are_checked() {
        let mut diagnostics = [
            LoadoutCode::PackageNotFound.diagnostic("catalog.yaml", "one"),
            LoadoutCode::PackageNotFound.diagnostic("catalog.yaml", "two"),
        ];
        diagnostics[0].package = "fox".to_owned();
        let packages = ["fox", "hen", "owl"].map(str::to_owned);
        let cases = Cases::Packages(&packages);
        let checked = Checked { command: "lint", directory: Path::new(""), cases };
        let xml = junit(&checked, &diagnostics);
        assert!(xml.contains("tests=\"4\" failures=\"2\""), "{xml}");
        for name in ["catalog.yaml", "fox", "hen", "owl"] {
            assert!(xml.contains(&format!("<testcase name=\"{name}\">")), "{xml}");
        }
    }
}
