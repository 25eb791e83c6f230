//! Numbers of things, in words.

/// Returns how many things there are: `1 error`, `2 errors`. `thing` is the noun for one, which an `s` makes several.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_thing_is_no_plural() {
        assert_eq!([0, 1, 2].map(|it| counted(it, "error")), ["0 errors", "1 error", "2 errors"]);
    }
}
