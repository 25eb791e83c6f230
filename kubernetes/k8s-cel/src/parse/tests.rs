//! What the parser takes, and that nothing makes it overflow.
use super::parse;

#[test]
fn deep_and_long_texts_are_refused_or_read_within_the_stack() {
    let texts = [
        "(".repeat(5000),
        "[".repeat(5000),
        "-".repeat(5000),
        "!".repeat(5000) + "true",
        "a".to_owned() + &".b".repeat(5000),
        "a".to_owned() + &"[0]".repeat(5000),
        "1".to_owned() + &" + 1".repeat(5000),
        "true".to_owned() + &" && true".repeat(5000),
        "a ? b : ".repeat(5000),
        "{1: ".repeat(5000),
        "\"".repeat(4999),
    ];
    let read = texts.iter().filter(|text| parse(text).is_ok()).count();
    assert_eq!(read, 2, "chains of `!` and of `&&` are read");
}

#[test]
fn nesting_is_read_up_to_its_limit() {
    let nested = |depth: usize| "(".repeat(depth) + "1" + &")".repeat(depth);
    assert!(parse(&nested(200)).is_ok());
    assert!(parse(&nested(260)).is_err());
}
