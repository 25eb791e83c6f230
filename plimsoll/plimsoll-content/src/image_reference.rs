//! References to images, as container runtimes read them: `registry/repository:tag@digest`.

/// Longest tag.
const TAG_LEN_MAX: usize = 128;

/// Returns whether a text is a reference to an image.
pub(crate) fn is_image_reference(text: &str) -> bool {
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    digest.is_none_or(is_digest) && tag.is_none_or(is_tag) && is_name(name)
}

fn is_digest(text: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|it| it.is_ascii_alphanumeric());
    text.split_once(':').is_some_and(|(algorithm, value)| {
        algorithm.split(['+', '.', '-', '_']).all(is_word)
            && !value.is_empty()
            && value.bytes().all(|it| it.is_ascii_hexdigit())
    })
}

fn is_tag(text: &str) -> bool {
    let fits = |it: u8| it.is_ascii_alphanumeric() || b"_.-".contains(&it);
    text.len() <= TAG_LEN_MAX
        && text.bytes().all(fits)
        && !text.is_empty()
        && !text.starts_with(['.', '-'])
}

/// Whether a text is a repository, with or without the registry before it.
fn is_name(text: &str) -> bool {
    let path = match text.split_once('/') {
        Some((first, rest)) if is_registry(first) => rest,
        _ => text,
    };
    path.split('/').all(is_part)
}

fn is_registry(text: &str) -> bool {
    let fits = |it: u8| it.is_ascii_alphanumeric() || b".-:[]".contains(&it);
    let is_host = text.contains(['.', ':'])
        || text == "localhost"
        || text.bytes().any(|it| it.is_ascii_uppercase());
    is_host && text.bytes().all(fits)
}

fn is_part(text: &str) -> bool {
    let letter = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let fits = |it: u8| letter(it) || b"._-".contains(&it);
    text.bytes().all(fits)
        && text.bytes().next().is_some_and(letter)
        && text.bytes().last().is_some_and(letter)
}

#[cfg(test)]
mod tests {
    //! What is a reference, and what is not.

    use super::is_image_reference;

    #[test]
    fn references_have_a_registry_a_repository_a_tag_and_a_digest() {
        for text in [
            "nginx",
            "nginx:1.29",
            "library/nginx@sha256:0123abcd",
            "localhost:5000/a/b",
            "registry.example.org:443/a-b/c_d:v1.0@sha256:0123abcd",
            "quay.io/a/b__c",
        ] {
            assert!(is_image_reference(text), "{text}");
        }
        for text in [
            "",
            "???",
            "Nginx",
            "nginx:",
            "nginx:a b",
            "nginx@sha256",
            "nginx@sha256:xyz",
            "a//b",
            "https://example.org/web",
            "example.org/Web",
            "-a",
        ] {
            assert!(!is_image_reference(text), "{text}");
        }
    }
}
