//! Diagnostics of all commands, for people, programs, code review and test reports.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use plimsoll_content::diagnostic::{Diagnostic, Severity, has_errors};
use plimsoll_resolve::printable::on_one_line;
use serde::Serialize;
use serde_json::{Value, json};

use super::format::Format;
use crate::exit;

/// The diagnostics in machine-readable form.
#[derive(Debug, Serialize)]
struct DiagnosticReport<'a> {
    errors: usize,
    warnings: usize,
    infos: usize,
    findings: &'a [Diagnostic],
}

/// Writes the diagnostics of a command that looked at `files`. Returns failure if there is an error.
pub(crate) fn write(
    command: &str,
    files: &[String],
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
            Format::Json.write(&sarif(diagnostics), out)?;
        }
        Format::Junit => out.write_all(junit(command, files, diagnostics).as_bytes())?,
        format => {
            if !format.write(&report, out)? {
                out.write_all(text(diagnostics).as_bytes())?;
                writeln!(out, "{} errors, {} warnings", report.errors, report.warnings)?;
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

fn sarif(diagnostics: &[Diagnostic]) -> Value {
    let codes: BTreeSet<&str> = diagnostics.iter().map(|it| &*it.code).collect();
    let rules: Vec<Value> = codes.into_iter().map(|code| json!({"id": code})).collect();
    let result = |it: &Diagnostic| {
        let level = match it.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "note",
        };
        let help = it.help.as_ref().map(|help| format!(" (help: {help})")).unwrap_or_default();
        let mut location = json!({"artifactLocation": {"uri": it.file}});
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

/// A test case for each file: errors are its failures, everything else its output.
fn junit(command: &str, files: &[String], diagnostics: &[Diagnostic]) -> String {
    let files: BTreeSet<&String> =
        files.iter().chain(diagnostics.iter().map(|it| &it.file)).collect();
    let errors = diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let failed: BTreeSet<&String> = errors.map(|it| &it.file).collect();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" \
         tests=\"{}\" failures=\"{}\">\n",
        escaped(command),
        files.len(),
        failed.len()
    );
    for file in files {
        xml.push_str(&format!("    <testcase name=\"{}\">\n", escaped(file)));
        for it in diagnostics.iter().filter(|it| it.file == *file) {
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
            write("lint", &files, &diagnostics, &format, &mut out).expect("memory");
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(
            written(Format::Text),
            "a.yaml:3:5: error [OL001]: no \"fox\" < here\n  help: look\n\
             b.yaml:1:1: info [OL013]: no version\n\
             c.yaml: warning [OL006]: package hen: not needed\n1 errors, 1 warnings\n"
        );
        let junit = written(Format::Junit);
        assert!(junit.contains("tests=\"4\" failures=\"1\""), "{junit}");
        assert!(junit.contains("no &quot;fox&quot; &lt; here   help: look\"/>"), "{junit}");
        let sarif: Value = serde_json::from_str(&written(Format::Sarif)).expect("JSON");
        let results = &sarif["runs"][0]["results"];
        assert_eq!(results[0]["level"], "error");
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
}
