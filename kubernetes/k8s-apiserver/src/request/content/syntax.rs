//! What is wrong with JSON, in the words of Go's decoder, which clients of Kubernetes know.

/// How deep documents may nest.
const DEPTH_MAX: usize = 10_000;

/// What can be said of any text that ends too soon.
const END: &str = "unexpected end of JSON input";

/// The first error of a text; nothing if it is JSON.
pub(super) fn error(bytes: &[u8]) -> Option<String> {
    Scanner::new(bytes).document().err()
}

/// How many brackets of a text stand in each other, up to its first error.
pub(super) fn depth(bytes: &[u8]) -> usize {
    let mut scanner = Scanner::new(bytes);
    // What is wrong with it is said elsewhere.
    let _ = scanner.document();
    scanner.deepest
}

/// Makes text of JSON that has halves of characters: each becomes the replacement character.
pub(super) fn repaired(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut out = String::with_capacity(text.len());
    let mut rest: &str = &text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = match (unit(rest), rest.get(6..).and_then(unit)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(0xd800..0xe000), _) => {
                out.push('\u{fffd}');
                rest = &rest[6..];
                continue;
            }
            // An escape of another kind is its backslash and one character.
            _ => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out.push_str(rest);
    out
}

/// The UTF-16 unit that a text begins with as an escape.
fn unit(text: &str) -> Option<u32> {
    u32::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The brackets that are open.
    open: Vec<u8>,
    /// How many of them were open at most.
    deepest: usize,
}

type Scanned = Result<(), String>;

impl<'a> Scanner<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, open: Vec::new(), deepest: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) -> Option<u8> {
        while self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
        self.peek()
    }

    /// The error that the next character is.
    fn unexpected(&self, context: &str) -> String {
        match self.peek() {
            None => END.to_owned(),
            Some(byte) => format!("invalid character {} {context}", shown(byte)),
        }
    }

    fn document(&mut self) -> Scanned {
        loop {
            let is_open = self.value()?;
            if !is_open && !self.after_value()? {
                return Ok(());
            }
        }
    }

    /// Reads a value, or the beginning of one that has others in it; whether it is the latter.
    fn value(&mut self) -> Result<bool, String> {
        match self.skip_space() {
            Some(bracket @ (b'{' | b'[')) => return self.begin(bracket),
            Some(b'"') => self.string()?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal("true")?,
            Some(b'f') => self.literal("false")?,
            Some(b'n') => self.literal("null")?,
            _ => return Err(self.unexpected("looking for beginning of value")),
        }
        Ok(false)
    }

    fn begin(&mut self, bracket: u8) -> Result<bool, String> {
        if self.open.len() >= DEPTH_MAX {
            return Err(self.unexpected("exceeded max depth"));
        }
        self.deepest = self.deepest.max(self.open.len() + 1);
        self.at += 1;
        let next = self.skip_space();
        // The codes of closing brackets are two above those of opening ones.
        if next == Some(bracket + 2) {
            self.at += 1;
            return Ok(false);
        }
        self.open.push(bracket);
        if bracket == b'{' {
            self.key()?;
        }
        Ok(true)
    }

    fn key(&mut self) -> Scanned {
        if self.skip_space() != Some(b'"') {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        self.string()?;
        if self.skip_space() != Some(b':') {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    /// Reads what follows a value; whether another one follows.
    fn after_value(&mut self) -> Result<bool, String> {
        loop {
            let next = self.skip_space();
            let Some(&bracket) = self.open.last() else {
                return match next {
                    None => Ok(false),
                    Some(_) => Err(self.unexpected("after top-level value")),
                };
            };
            let is_object = bracket == b'{';
            match next {
                Some(b',') => {
                    self.at += 1;
                    if is_object {
                        self.key()?;
                    }
                    return Ok(true);
                }
                Some(byte) if byte == bracket + 2 => {
                    self.at += 1;
                    self.open.pop();
                }
                _ if is_object => return Err(self.unexpected("after object key:value pair")),
                _ => return Err(self.unexpected("after array element")),
            }
        }
    }

    fn string(&mut self) -> Scanned {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                None | Some(..0x20) => return Err(self.unexpected("in string literal")),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Scanned {
        self.at += 1;
        match self.peek() {
            Some(b'u') => {
                for _ in 0..4 {
                    self.at += 1;
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.unexpected("in \\u hexadecimal character escape"));
                    }
                }
            }
            Some(byte) if b"bfnrt\\/\"".contains(&byte) => {}
            _ => return Err(self.unexpected("in string escape code")),
        }
        self.at += 1;
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Scanned {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.unexpected(context));
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Scanned {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Scanned {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                let expected = char::from(expected);
                return Err(self.unexpected(&format!("in literal {word} (expecting '{expected}')")));
            }
            self.at += 1;
        }
        Ok(())
    }
}

/// A byte as Go shows a character.
fn shown(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0..0x20 | 0x7f => format!(r"'\x{byte:02x}'"),
        0x80..0xa0 => format!(r"'\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_messages_of_go() {
        let check = |text: &str, expected: &str| {
            assert_eq!(error(text.as_bytes()).unwrap_or_default(), expected, "{text}");
        };
        for text in ["{}", " [1, -0.5e+3, {\"a\": [], \"b\": null}] ", r#""\ud800\n""#, "true"] {
            check(text, "");
        }
        check("", END);
        check("[1,", END);
        check("nonsense", "invalid character 'o' in literal null (expecting 'u')");
        check("{}}", "invalid character '}' after top-level value");
        check("{a", "invalid character 'a' looking for beginning of object key string");
        check(r#"{"a":1,}"#, "invalid character '}' looking for beginning of object key string");
        check(r#"{"a" 1"#, "invalid character '1' after object key");
        check(r#"{"a":1 2"#, "invalid character '2' after object key:value pair");
        check("[1 2]", "invalid character '2' after array element");
        check("[1,]", "invalid character ']' looking for beginning of value");
        check("\"\n\"", r"invalid character '\n' in string literal");
        check(r#""\q""#, "invalid character 'q' in string escape code");
        check(r#""\u00g0""#, "invalid character 'g' in \\u hexadecimal character escape");
        check("-x", "invalid character 'x' in numeric literal");
        check("1.x", "invalid character 'x' after decimal point in numeric literal");
        check(&"[".repeat(DEPTH_MAX + 1), "invalid character '[' exceeded max depth");
    }

    #[test]
    fn depth_counts_the_brackets_that_stand_in_each_other() {
        for (text, expected) in [("1", 0), ("{}", 1), ("[[], [{}], 1]", 3), ("[[x[[", 2)] {
            assert_eq!(depth(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn halves_of_characters_are_replaced() {
        let check = |text: &str, expected: &str| {
            assert_eq!(repaired(text.as_bytes()), expected, "{text}");
        };
        check(r#""\ud83d\ude00 \\ud800 \n""#, r#""\ud83d\ude00 \\ud800 \n""#);
        check(r#""\ud800x\udc00""#, "\"\u{fffd}x\u{fffd}\"");
        check(r#""\ud800\ud83d\ude00""#, "\"\u{fffd}\\ud83d\\ude00\"");
    }
}
