//! Real payloads, which clusters accept, have no fields that an API server would refuse.

use std::path::Path;

use plimsoll_content::diagnostic::FindingCode;
use plimsoll_content::lint::lint;
use plimsoll_content::payload::TemplateContext;
use plimsoll_source::read_directory;

use super::{committed, full_data};

#[test]
fn nothing_of_a_payload_is_refused() {
    check(&committed("payload"));
}

#[test]
fn nothing_of_a_whole_release_is_refused() {
    let Some([payload]) = full_data(["PLIMSOLL_PAYLOAD"]) else { return };
    check(&payload);
}

fn check(payload: &Path) {
    let files = read_directory(payload).expect("a payload");
    let findings = lint(&files, &TemplateContext::default());
    let refused: Vec<String> = findings
        .iter()
        .filter(|finding| finding.code == FindingCode::InvalidField)
        .map(ToString::to_string)
        .collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
