//! Where a file name puts its manifests: `0000_<run level>_<component>_…`.

/// What stands before the run level.
const PREFIX: &str = "0000_";

/// Where a file name puts its manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position<'a> {
    /// The run level.
    pub level: u32,
    /// The component: letters and digits in groups joined by single hyphens.
    pub component: &'a str,
}

impl<'a> Position<'a> {
    /// Reads a file name; `None` if it has another form.
    pub fn of(file: &'a str) -> Option<Self> {
        let (level, rest) = file.strip_prefix(PREFIX)?.split_once('_')?;
        let (component, _) = rest.split_once('_')?;
        let is_word =
            |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_number = level.bytes().all(|byte| byte.is_ascii_digit());
        let level = level.parse().ok().filter(|_| is_number)?;
        component.split('-').all(is_word).then_some(Self { level, component })
    }
}

#[cfg(test)]
mod tests {
    //! File names and where they put their manifests.

    use super::Position;

    #[test]
    fn names_of_another_form_have_no_position() {
        let check = |file: &str, expected: Option<(u32, &str)>| {
            let found = Position::of(file).map(|position| (position.level, position.component));
            assert_eq!(found, expected, "{file}");
        };
        check("0000_50_dns-operator_00-namespace.yaml", Some((50, "dns-operator")));
        check("0000_00_a_b_c.yaml", Some((0, "a")));
        check("0000_100_a1_b", Some((100, "a1")));
        for other in [
            "0000_50_a.yaml",
            "0001_50_a_b.yaml",
            "0000_x_a_b.yaml",
            "0000__a_b.yaml",
            "0000_+5_a_b.yaml",
            "0000_50_a--b_c.yaml",
            "0000_50_a.b_c.yaml",
            "0000_50__b.yaml",
            "50_a_b.yaml",
            "0000_99999999999_a_b.yaml",
        ] {
            check(other, None);
        }
    }
}
