//! Quantities and the form that kube-apiserver gives them.
use super::*;

#[test]
fn quantities_take_their_canonical_form() {
    for (given, expected) in [
        ("0", "0"),
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1000Ki", "1000Ki"),
        ("1000", "1k"),
        ("1048576", "1048576"),
        ("1e3", "1e3"),
        ("1.2e3", "1200"),
        ("12e6", "12e6"),
        ("-1", "-1"),
        ("+1", "1"),
        ("100u", "100u"),
        ("0.1n", "1n"),
        (".5", "500m"),
        ("1.", "1"),
        ("10E", "9223372036854775807"),
    ] {
        let quantity = Quantity::parse(given).map(|quantity| quantity.to_string());
        assert_eq!(quantity.as_deref(), Some(expected), "{given}");
    }
}

#[test]
fn other_texts_are_no_quantities() {
    for given in ["", "abc", "1x", ".", "1.2.3", "1 Gi", "--1", "1ki", "e3", "1e"] {
        assert!(Quantity::parse(given).is_none(), "{given}");
    }
}
