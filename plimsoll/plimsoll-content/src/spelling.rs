//! Misspelt names.

/// The maximum number of letters that are added, left out, replaced or swapped in a misspelt name.
const EDITS_MAX: usize = 2;

/// Whether a name is another one, misspelt; case counts.
pub fn is_misspelt(name: &str, meant: &str) -> bool {
    name != meant && strsim::osa_distance(name, meant) <= EDITS_MAX
}

#[cfg(test)]
mod tests {
    //! Names that are misspelt, and others.

    use super::is_misspelt;

    #[test]
    fn two_letters_may_be_wrong() {
        for name in ["Operater", "Opreator", "Operators", "operator", "Oprator", "Oparater"] {
            assert!(is_misspelt(name, "Operator"), "{name}");
        }
        for name in ["Operator", "OperatorGroup", "Deployment", "Opretaer", ""] {
            assert!(!is_misspelt(name, "Operator"), "{name}");
        }
        assert!(is_misspelt("olm.oi", "olm.io"));
    }
}
