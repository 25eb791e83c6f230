//! Text of others on a terminal: nothing in it may move the cursor, begin a line or turn the
//! direction of what follows.

/// A text on one line, with control characters and invisible ones that change how others are shown
/// as escapes, such as `\\n` and `\\u{202e}`.
pub fn on_one_line(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// A text of several lines: as [`on_one_line`], except for the ends of lines and tabs.
pub fn on_lines(text: &str) -> String {
    let shown = |character: char| match character {
        '\n' | '\t' => String::from(character),
        _ if is_hidden(character) => character.escape_default().collect(),
        _ => String::from(character),
    };
    text.chars().map(shown).collect()
}

/// Control characters, marks and overrides of direction, characters without width, separators of
/// lines, and tags.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    //! What is escaped.

    use super::*;

    #[test]
    fn what_moves_the_cursor_or_hides_is_escaped() {
        let check = |text: &str, line: &str, lines: &str| {
            assert_eq!(on_one_line(text), line);
            assert_eq!(on_lines(text), lines);
        };
        check("plain, also größer 日本", "plain, also größer 日本", "plain, also größer 日本");
        check("a\nb\tc", "a\\nb\\tc", "a\nb\tc");
        check("\u{1b}[2Ja\r", "\\u{1b}[2Ja\\r", "\\u{1b}[2Ja\\r");
        check("x\u{202e}gpj", "x\\u{202e}gpj", "x\\u{202e}gpj");
        check("a\u{200b}b\u{2028}", "a\\u{200b}b\\u{2028}", "a\\u{200b}b\\u{2028}");
    }
}
