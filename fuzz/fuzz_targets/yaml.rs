//! Whatever the text: reading it ends, and what was read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_content::yaml;
use serde_json::Value;

fuzz_target!(|text: &str| {
    for document in yaml::parse(text) {
        if let Ok(value) = document.value {
            let raw = serde_json::to_vec(&value).expect("a JSON value can always be written");
            let again: Value = serde_json::from_slice(&raw).expect("what was written is JSON");
            assert_eq!(again, value);
        }
    }
    let _ = yaml::lines(text);
});
