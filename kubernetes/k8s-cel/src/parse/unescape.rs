//! String literals to what they stand for.
//!
//! Upstream: github.com/google/cel-go/parser/unescape.go: unescape

/// The octets of a quoted literal without its `b`; escapes of bytes literals stand for octets,
/// those of strings for characters.
pub(super) fn unescape(literal: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let literal = literal.replace("\r\n", "\n").replace('\r', "\n");
    let raw = literal.starts_with(['r', 'R']);
    let quoted = if raw { &literal[1..] } else { &literal[..] };
    let long = quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\""));
    let margin = if long { 3 } else { 1 };
    let inner = quoted.get(margin..quoted.len().saturating_sub(margin));
    let inner = inner.ok_or("unable to unescape string")?;
    if raw || !inner.contains('\\') {
        return Ok(inner.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(first) = rest.chars().next() {
        if first == '\\' {
            rest = escape(&rest[1..], is_bytes, &mut out)?;
        } else {
            let length = first.len_utf8();
            out.extend_from_slice(&rest.as_bytes()[..length]);
            rest = &rest[length..];
        }
    }
    Ok(out)
}

/// Writes what the escape sequence at the start of `text` stands for; returns what follows.
fn escape<'a>(text: &'a str, is_bytes: bool, out: &mut Vec<u8>) -> Result<&'a str, &'static str> {
    const UNABLE: &str = "unable to unescape string";
    let kind = *text.as_bytes().first().ok_or(UNABLE)?;
    let simple = match kind {
        b'a' => Some(7),
        b'b' => Some(8),
        b'f' => Some(12),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        b'v' => Some(11),
        b'\\' | b'\'' | b'"' | b'`' | b'?' => Some(kind),
        _ => None,
    };
    if let Some(octet) = simple {
        out.push(octet);
        return Ok(&text[1..]);
    }
    let (start, count, radix) = match kind {
        b'x' | b'X' => (1, 2, 16),
        b'u' if !is_bytes => (1, 4, 16),
        b'U' if !is_bytes => (1, 8, 16),
        b'0'..=b'3' => (0, 3, 8),
        _ => return Err(UNABLE),
    };
    let digits = text.get(start..start + count).ok_or(UNABLE)?;
    let code = u32::from_str_radix(digits, radix).map_err(|_| UNABLE)?;
    if is_bytes {
        out.push(u8::try_from(code).map_err(|_| UNABLE)?);
    } else {
        let character = char::from_u32(code).ok_or("invalid unicode code point")?;
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Ok(&text[start + count..])
}
