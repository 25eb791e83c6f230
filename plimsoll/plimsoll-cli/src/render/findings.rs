//! Findings of linters, in the formats of tools that show them.

use std::collections::BTreeSet;
use std::io::Write;

use plimsoll_content::diagnostic::Severity;
use plimsoll_resolve::printable::on_one_line;
use serde_json::{Value, json};

/// A format of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingFormat {
    /// SARIF 2.1.0
    Sarif,
    /// JUnit XML
    Junit,
}

/// A finding of any linter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RenderedFinding<'a> {
    /// Path of the file.
    pub(crate) file: &'a str,
    /// Line in it, from 1.
    pub(crate) line: usize,
    /// Column in it, from 1.
    pub(crate) column: usize,
    pub(crate) severity: Severity,
    /// The rule.
    pub(crate) code: &'a str,
    /// What is wrong, as a sentence without a stop.
    pub(crate) message: &'a str,
    /// What helps; `None` if nothing is known to.
    pub(crate) help: Option<&'a str>,
}

impl FindingFormat {
    /// Writes findings of a command. `files` are all that were looked at.
    pub(crate) fn write(
        self,
        command: &str,
        files: &[&str],
        findings: &[RenderedFinding<'_>],
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        match self {
            Self::Sarif => {
                serde_json::to_writer_pretty(&mut *out, &sarif(findings))?;
                writeln!(out)?;
            }
            Self::Junit => out.write_all(junit(command, files, findings).as_bytes())?,
        }
        Ok(())
    }
}

/// Findings for people, one a line and what helps below it.
pub(crate) fn text(findings: &[RenderedFinding<'_>]) -> String {
    let mut text = String::new();
    for it in findings {
        let RenderedFinding { file, line, column, severity, code, message, help } = it;
        let finding = format!("{file}:{line}:{column}: {severity} [{code}]: {message}");
        text.push_str(&format!("{}\n", on_one_line(&finding)));
        if let Some(help) = help {
            text.push_str(&format!("  help: {}\n", on_one_line(help)));
        }
    }
    text
}

fn sarif(findings: &[RenderedFinding<'_>]) -> Value {
    let codes: BTreeSet<&str> = findings.iter().map(|it| it.code).collect();
    let rules: Vec<Value> = codes.into_iter().map(|code| json!({"id": code})).collect();
    let result = |it: &RenderedFinding<'_>| {
        let level = match it.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "note",
        };
        let help = it.help.map(|help| format!(" (help: {help})")).unwrap_or_default();
        json!({
            "ruleId": it.code,
            "level": level,
            "message": {"text": format!("{}{help}", it.message)},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": it.file},
                "region": {"startLine": it.line.max(1), "startColumn": it.column.max(1)},
            }}],
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
            "results": findings.iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

/// A test case for each file: errors are its failures, everything else its output.
fn junit(command: &str, files: &[&str], findings: &[RenderedFinding<'_>]) -> String {
    let files: BTreeSet<&str> =
        files.iter().copied().chain(findings.iter().map(|it| it.file)).collect();
    let is_error = |it: &&RenderedFinding<'_>| it.severity == Severity::Error;
    let failed: BTreeSet<&str> = findings.iter().filter(is_error).map(|it| it.file).collect();
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" \
         tests=\"{}\" failures=\"{}\">\n",
        escaped(command),
        files.len(),
        failed.len()
    );
    for file in files {
        text.push_str(&format!("    <testcase name=\"{}\">\n", escaped(file)));
        for it in findings.iter().filter(|it| it.file == file) {
            let line = escaped(&text_of(it));
            text.push_str(&match it.severity {
                Severity::Error => {
                    let code = escaped(it.code);
                    format!("      <failure type=\"{code}\" message=\"{line}\"/>\n")
                }
                Severity::Warning | Severity::Info => {
                    format!("      <system-out>{line}</system-out>\n")
                }
            });
        }
        text.push_str("    </testcase>\n");
    }
    text.push_str("  </testsuite>\n</testsuites>\n");
    text
}

fn text_of(finding: &RenderedFinding<'_>) -> String {
    text(std::slice::from_ref(finding)).trim_end().to_owned()
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
    use super::*;

    const FINDINGS: [RenderedFinding<'static>; 2] = [
        RenderedFinding {
            file: "a.yaml",
            line: 3,
            column: 5,
            severity: Severity::Error,
            code: "OL001",
            message: "no \"fox\" < here",
            help: Some("look"),
        },
        RenderedFinding {
            file: "b.yaml",
            line: 1,
            column: 1,
            severity: Severity::Info,
            code: "OL013",
            message: "no version",
            help: None,
        },
    ];

    #[test]
    fn every_format_has_every_finding() {
        let written = |format: FindingFormat| {
            let mut out = Vec::new();
            format.write("lint", &["a.yaml", "c.yaml"], &FINDINGS, &mut out).expect("memory");
            String::from_utf8(out).expect("UTF-8")
        };
        assert_eq!(
            text(&FINDINGS),
            "a.yaml:3:5: error [OL001]: no \"fox\" < here\n  help: look\n\
             b.yaml:1:1: info [OL013]: no version\n"
        );
        let junit = written(FindingFormat::Junit);
        assert!(junit.contains("tests=\"3\" failures=\"1\""), "{junit}");
        assert!(junit.contains("no &quot;fox&quot; &lt; here   help: look\"/>"), "{junit}");
        let sarif: Value = serde_json::from_str(&written(FindingFormat::Sarif)).expect("JSON");
        let results = &sarif["runs"][0]["results"];
        assert_eq!(results[0]["level"], "error");
        assert_eq!(results[0]["locations"][0]["physicalLocation"]["region"]["startColumn"], 5);
        assert_eq!(results[1]["level"], "note");
    }
}
