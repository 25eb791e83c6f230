//! Email addresses, as Go's `net/mail` reads them (RFC 5322, with a display name and comments).
//!
//! Upstream: k8s.io/kube-openapi/pkg/validation/strfmt/default.go: IsEmail
use std::net::IpAddr;

/// Whether a text is one address, alone, with a name, or as the only member of a group.
pub(super) fn is_address(text: &str) -> bool {
    let mut reader = Reader { rest: text };
    reader.address(true) == Some(1) && reader.skip_comments() && reader.rest.is_empty()
}

/// The part of a text that is not read yet.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn consume(&mut self, expected: char) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Skips white space and comments. Returns whether the comments are closed.
    fn skip_comments(&mut self) -> bool {
        self.skip_space();
        while self.consume('(') {
            if !self.comment() {
                return false;
            }
            self.skip_space();
        }
        true
    }

    /// Skips the rest of a comment. Returns whether it is closed.
    fn comment(&mut self) -> bool {
        let mut depth = 1;
        let mut characters = self.rest.chars();
        while depth > 0 {
            match characters.next() {
                None => break,
                Some('\\') => {
                    if characters.next().is_none() {
                        break;
                    }
                }
                Some('(') => depth += 1,
                Some(')') => depth -= 1,
                Some(_) => {}
            }
        }
        self.rest = characters.as_str();
        depth == 0
    }

    /// Reads an address, or a group if `groups` are allowed. Returns how many addresses there are.
    fn address(&mut self, groups: bool) -> Option<usize> {
        self.skip_space();
        let start = self.rest;
        if self.specification().is_some() {
            self.skip_space();
            return (!self.consume('(') || self.comment()).then_some(1);
        }
        self.rest = start;
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if groups && self.consume(':') {
            return self.group();
        }
        if !self.consume('<') {
            return None;
        }
        self.specification()?;
        self.consume('>').then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        self.skip_space();
        let mut members = 0;
        if self.consume(';') {
            return self.skip_comments().then_some(members);
        }
        loop {
            self.skip_space();
            members += self.address(false)?;
            if !self.skip_comments() {
                return None;
            }
            if self.consume(';') {
                return self.skip_comments().then_some(members);
            }
            if !self.consume(',') {
                return None;
            }
        }
    }

    /// Reads `local-part@domain`.
    fn specification(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            self.quoted().filter(|text| !text.is_empty())?;
        } else {
            self.strict_atom()?;
        }
        if !self.consume('@') {
            return None;
        }
        self.skip_space();
        if !self.consume('[') {
            return self.strict_atom();
        }
        let (literal, rest) = self.rest.split_once(']')?;
        self.rest = rest;
        literal.parse::<IpAddr>().is_ok().then_some(())
    }

    /// Reads words and what stands between them.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            if words > 0 && !self.skip_comments() {
                return None;
            }
            self.skip_space();
            let word = match self.rest.starts_with('"') {
                true => self.quoted().map(|_| ()),
                false => self.atom().map(|_| ()),
            };
            if word.is_none() {
                return (words > 0).then_some(());
            }
            words += 1;
        }
    }

    /// Reads a quoted string. Returns what is between the quotes.
    fn quoted(&mut self) -> Option<&'a str> {
        let body = self.rest.strip_prefix('"')?;
        let mut escaped = false;
        for (index, character) in body.char_indices() {
            let visible = is_visible(character) || matches!(character, ' ' | '\t');
            match character {
                '"' if !escaped => {
                    self.rest = &body[index + 1..];
                    return Some(&body[..index]);
                }
                '\\' if !escaped => escaped = true,
                _ if !visible => return None,
                _ => escaped = false,
            }
        }
        None
    }

    fn atom(&mut self) -> Option<&'a str> {
        let end = self.rest.find(|c| !is_atom(c)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!atom.is_empty()).then_some(atom)
    }

    /// Reads an atom whose dots stand between other characters.
    fn strict_atom(&mut self) -> Option<()> {
        let atom = self.atom()?;
        let fits = !atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..");
        fits.then_some(())
    }
}

fn is_visible(character: char) -> bool {
    ('!'..='~').contains(&character) || !character.is_ascii()
}

fn is_atom(character: char) -> bool {
    is_visible(character) && !"()<>[]:;@\\,\"".contains(character)
}
