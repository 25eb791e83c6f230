//! Whatever the template: it is filled in or refused, and text without braces stays as it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_content::template::{TemplateValues, render};

fuzz_target!(|text: &str| {
    let values = TemplateValues {
        release_image: "image".to_owned(),
        cluster_profile: "profile".to_owned(),
        images: [("a".to_owned(), "b".to_owned())].into(),
    };
    let rendered = render(text, &values);
    if !text.contains("{{") {
        assert_eq!(rendered.as_deref(), Ok(text));
    }
});
