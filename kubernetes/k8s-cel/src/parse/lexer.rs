//! Text to tokens.
//!
//! Upstream: github.com/google/cel-go/parser/gen/cel_lexer.go: CELLexer

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// An operator, a bracket, or one of `in`, `true`, `false`, `null`.
    Symbol(&'static str),
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    /// `` `name` ``
    Escaped,
    End,
}

/// A token and where it is, in bytes and in characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    /// The place of its first character, counted in characters.
    pub(super) offset: usize,
}

impl<'a> Token<'a> {
    /// The name of a field, which may stand in backticks.
    pub(super) fn field(self) -> Option<&'a str> {
        match self.kind {
            TokenKind::Identifier => Some(self.text),
            TokenKind::Escaped => Some(self.text.trim_matches('`')),
            TokenKind::Symbol(_)
            | TokenKind::Float
            | TokenKind::Int
            | TokenKind::Uint
            | TokenKind::String
            | TokenKind::Bytes
            | TokenKind::End => None,
        }
    }
}

/// A place where no token begins.
pub(super) struct LexError {
    pub(super) offset: usize,
    pub(super) message: String,
}

const SYMBOLS: [&str; 28] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!",
    "?", ":", "+", "*", "/", "%", "in", "true", "false", "null",
];
const WORDS: usize = 4;

/// All tokens, the last one being [`TokenKind::End`], and the places that are none.
pub(super) fn tokens(source: &str) -> (Vec<Token<'_>>, Vec<LexError>) {
    let mut lexer = Lexer { source, at: 0, offset: 0 };
    let (mut tokens, mut errors) = (Vec::new(), Vec::new());
    loop {
        lexer.skip_blank();
        let (start, offset) = (lexer.at, lexer.offset);
        if lexer.rest().is_empty() {
            tokens.push(Token { kind: TokenKind::End, text: "<EOF>", offset });
            return (tokens, errors);
        }
        match lexer.length_of_token() {
            Ok((kind, length)) => {
                lexer.advance(length);
                tokens.push(Token { kind, text: &source[start..start + length], offset });
            }
            Err(length) => {
                lexer.advance(length.max(1));
                let text = source[start..lexer.at].replace('\n', "\\n").replace('\t', "\\t");
                let message = format!("Syntax error: token recognition error at: '{text}'");
                errors.push(LexError { offset, message });
            }
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    offset: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn advance(&mut self, bytes: usize) {
        let mut end = (self.at + bytes).min(self.source.len());
        while !self.source.is_char_boundary(end) {
            end += 1;
        }
        self.offset += self.source[self.at..end].chars().count();
        self.at = end;
    }

    fn skip_blank(&mut self) {
        loop {
            let rest = self.rest();
            let blank =
                rest.len() - rest.trim_start_matches(['\t', ' ', '\r', '\n', '\u{c}']).len();
            let comment = if rest[blank..].starts_with("//") {
                rest[blank..].find('\n').unwrap_or(rest.len() - blank)
            } else {
                0
            };
            if blank + comment == 0 {
                return;
            }
            self.advance(blank + comment);
        }
    }

    /// The kind and the length of the token here, or the length of what is none.
    fn length_of_token(&self) -> Result<(TokenKind, usize), usize> {
        let rest = self.rest();
        let bytes = rest.as_bytes();
        let first = bytes[0];
        if let Some((kind, prefix)) = string_prefix(bytes) {
            return string_length(rest, prefix).map(|length| (kind, length));
        }
        if first.is_ascii_digit() || (first == b'.' && bytes.get(1).is_some_and(u8::is_ascii_digit))
        {
            return Ok(number(bytes));
        }
        if first == b'`' {
            let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-/ ".contains(byte);
            let inner = bytes[1..].iter().take_while(|byte| allowed(byte)).count();
            if inner > 0 && bytes.get(inner + 1) == Some(&b'`') {
                return Ok((TokenKind::Escaped, inner + 2));
            }
            return Err(inner + 1);
        }
        if first.is_ascii_alphabetic() || first == b'_' {
            let length = bytes
                .iter()
                .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
                .count();
            let word =
                SYMBOLS[SYMBOLS.len() - WORDS..].iter().find(|word| **word == &rest[..length]);
            return Ok((
                word.map_or(TokenKind::Identifier, |word| TokenKind::Symbol(word)),
                length,
            ));
        }
        let symbols = &SYMBOLS[..SYMBOLS.len() - WORDS];
        match symbols.iter().find(|symbol| rest.starts_with(**symbol)) {
            Some(symbol) => Ok((TokenKind::Symbol(symbol), symbol.len())),
            None => Err(1),
        }
    }
}

/// Whether a string begins here, and how long what stands before the quote is.
fn string_prefix(bytes: &[u8]) -> Option<(TokenKind, usize)> {
    let is_quote = |index: usize| matches!(bytes.get(index), Some(b'"' | b'\''));
    let lower = |index: usize| bytes.get(index).map(u8::to_ascii_lowercase);
    match (lower(0), lower(1)) {
        _ if is_quote(0) => Some((TokenKind::String, 0)),
        (Some(b'r'), _) if is_quote(1) => Some((TokenKind::String, 1)),
        (Some(b'b'), _) if is_quote(1) => Some((TokenKind::Bytes, 1)),
        (Some(b'b'), Some(b'r')) if is_quote(2) => Some((TokenKind::Bytes, 2)),
        _ => None,
    }
}

/// The length of the string literal at the start of `text`, or of what would have been one.
fn string_length(text: &str, prefix: usize) -> Result<usize, usize> {
    let bytes = text.as_bytes();
    let raw = text[..prefix].contains(['r', 'R']);
    let quote = bytes[prefix];
    let long = bytes[prefix..].starts_with(&[quote; 3]);
    let mut at = prefix + if long { 3 } else { 1 };
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == quote && (!long || bytes[at..].starts_with(&[quote; 3])) {
            return Ok(at + if long { 3 } else { 1 });
        }
        if !long && (byte == b'\n' || byte == b'\r') {
            return Err(at);
        }
        if byte == b'\\' && !raw {
            match escape_length(&bytes[at..]) {
                Some(length) => at += length,
                None => return Err((at + 2).min(bytes.len())),
            }
        } else {
            at += 1;
        }
    }
    // `""` followed by an open `"` is an empty string and the start of another.
    if long { Ok(prefix + 2) } else { Err(bytes.len()) }
}

/// The length of the escape sequence at the start.
fn escape_length(bytes: &[u8]) -> Option<usize> {
    let digits = |count: usize| {
        let all = bytes.get(2..2 + count)?.iter().all(u8::is_ascii_hexdigit);
        all.then_some(2 + count)
    };
    match bytes.get(1)? {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => {
            Some(2)
        }
        b'x' | b'X' => digits(2),
        b'u' => digits(4),
        b'U' => digits(8),
        b'0'..=b'3' => {
            let octal = |index: usize| matches!(bytes.get(index), Some(b'0'..=b'7'));
            (octal(2) && octal(3)).then_some(4)
        }
        _ => None,
    }
}

fn number(bytes: &[u8]) -> (TokenKind, usize) {
    let count = |from: usize, accepts: fn(&u8) -> bool| {
        bytes.get(from..).unwrap_or_default().iter().take_while(|byte| accepts(byte)).count()
    };
    let is_unsigned = |at: usize| matches!(bytes.get(at), Some(b'u' | b'U'));
    if bytes.starts_with(b"0x") {
        let digits = count(2, u8::is_ascii_hexdigit);
        if digits > 0 {
            let end = 2 + digits;
            return if is_unsigned(end) {
                (TokenKind::Uint, end + 1)
            } else {
                (TokenKind::Int, end)
            };
        }
    }
    let mut end = count(0, u8::is_ascii_digit);
    let mut float = false;
    if bytes.get(end) == Some(&b'.') && count(end + 1, u8::is_ascii_digit) > 0 {
        end += 1 + count(end + 1, u8::is_ascii_digit);
        float = true;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let digits = count(end + 1 + sign, u8::is_ascii_digit);
        if digits > 0 {
            end += 1 + sign + digits;
            float = true;
        }
    }
    if float {
        (TokenKind::Float, end)
    } else if is_unsigned(end) {
        (TokenKind::Uint, end + 1)
    } else {
        (TokenKind::Int, end)
    }
}
