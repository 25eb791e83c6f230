//! Label selectors: first tokens, then requirements.
use serde_json::Value;

use crate::names;
use crate::status::{ApiError, Result};

/// What may stand between a key and its values.
const OPERATORS: &str = "in, notin, =, ==, !=, gt, lt";

/// A label selector: all of its requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Missing,
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Reads a selector such as `a=b,c!=d,e in (f,g),!h`.
    ///
    /// # Errors
    /// When the text does not follow the grammar.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/labels/selector.go: Parse
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut parser = Parser { tokens: tokens(text), position: 0 };
        parser.selector().map_err(ApiError::bad_request)
    }

    /// Reads a `LabelSelector` of the API, with `matchLabels` and `matchExpressions`.
    ///
    /// `None` when it is malformed: such a selector selects nothing.
    pub(crate) fn of_object(selector: &Value) -> Option<Self> {
        let mut terms: Vec<String> = Vec::new();
        for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
            terms.push(format!("{key}={}", value.as_str().unwrap_or_default()));
        }
        for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
            let key = expression["key"].as_str()?;
            let values = expression["values"].as_array().into_iter().flatten();
            let values = values.filter_map(Value::as_str).collect::<Vec<_>>().join(",");
            terms.push(match expression["operator"].as_str()? {
                "In" => format!("{key} in ({values})"),
                "NotIn" => format!("{key} notin ({values})"),
                "Exists" => key.to_owned(),
                "DoesNotExist" => format!("!{key}"),
                _ => return None,
            });
        }
        Self::parse(&terms.join(",")).ok()
    }

    /// Whether it holds for everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object with these labels is selected.
    ///
    /// Upstream: k8s.io/apimachinery/pkg/labels/selector.go: Matches
    pub(crate) fn matches<'a>(&self, find: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = find(&requirement.key);
            match &requirement.operator {
                Operator::In(values) => {
                    value.is_some_and(|value| values.iter().any(|one| one == value))
                }
                Operator::NotIn(values) => {
                    value.is_none_or(|value| values.iter().all(|one| one != value))
                }
                Operator::Exists => value.is_some(),
                Operator::Missing => value.is_none(),
                Operator::Greater(bound) => parsed(value).is_some_and(|value| value > *bound),
                Operator::Less(bound) => parsed(value).is_some_and(|value| value < *bound),
            }
        })
    }
}

fn parsed(value: Option<&str>) -> Option<i64> {
    value.and_then(|value| value.parse().ok())
}

/// A piece of a selector. The end is an empty word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A key, a value, or `in` and `notin`, which can be either.
    Word(&'a str),
    /// One of `= == != < > ! ( ) ,`.
    Sign(&'a str),
    /// Signs in a row that mean nothing.
    Unknown(&'a str),
    End,
}

const SIGNS: [&str; 9] = ["==", "!=", "=", "!", ">", "<", "(", ")", ","];

fn tokens(text: &str) -> Vec<Token<'_>> {
    let is_sign = |character: char| "=!(),><".contains(character);
    let is_space = |character: char| matches!(character, ' ' | '\t' | '\r' | '\n');
    let mut tokens = Vec::new();
    // A zero ends a text.
    let text = text.split('\0').next().unwrap_or_default();
    let mut rest = text.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let len = if is_sign(first) {
            match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
                Some(sign) => {
                    tokens.push(Token::Sign(&rest[..sign.len()]));
                    sign.len()
                }
                None => {
                    tokens.push(Token::Unknown(&rest[..first.len_utf8()]));
                    first.len_utf8()
                }
            }
        } else {
            let end = rest.find(|character| is_sign(character) || is_space(character));
            let end = end.unwrap_or(rest.len());
            tokens.push(Token::Word(&rest[..end]));
            end
        };
        rest = rest[len..].trim_start_matches(is_space);
    }
    tokens.push(Token::End);
    tokens
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Sign(text) | Self::Unknown(text) => text,
            Self::End => "",
        }
    }

    fn is_sign(self, sign: &str) -> bool {
        matches!(self, Self::Sign(found) if found == sign)
    }
}

/// Reads requirements off the tokens; errors are in the words of Kubernetes.
struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    position: usize,
}

type Parsed<T> = std::result::Result<T, String>;

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.position).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn selector(&mut self) -> Parsed<LabelSelector> {
        let mut requirements = Vec::new();
        if self.peek() == Token::End {
            return Ok(LabelSelector { requirements });
        }
        loop {
            let token = self.peek();
            if !matches!(token, Token::Word(_)) && !token.is_sign("!") {
                let expected = if requirements.is_empty() {
                    "!, identifier, or 'end of string'"
                } else {
                    "identifier after ','"
                };
                return Err(format!("found '{}', expected: {expected}", token.text()));
            }
            let requirement =
                self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?;
            requirements.push(requirement);
            match self.next() {
                Token::End => return Ok(LabelSelector { requirements }),
                Token::Sign(",") => {}
                other => {
                    let found = other.text();
                    return Err(format!("found '{found}', expected: ',' or 'end of string'"));
                }
            }
        }
    }

    /// Upstream: k8s.io/apimachinery/pkg/labels/selector.go: parseRequirement
    fn requirement(&mut self) -> Parsed<Requirement> {
        let missing = self.peek().is_sign("!");
        if missing {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        if let Some(problem) = names::qualified_name_problem(key) {
            return Err(format!("<nil>: Invalid value: {key:?}: {problem}"));
        }
        let operator = if missing {
            Operator::Missing
        } else if self.peek() == Token::End || self.peek().is_sign(",") {
            Operator::Exists
        } else {
            self.operator(key)?
        };
        Ok(Requirement { key: key.to_owned(), operator })
    }

    fn operator(&mut self, key: &str) -> Parsed<Operator> {
        match self.next() {
            Token::Word("in") => Ok(Operator::In(check(key, self.values()?)?)),
            Token::Word("notin") => Ok(Operator::NotIn(check(key, self.values()?)?)),
            Token::Sign("=" | "==") => Ok(Operator::In(check(key, vec![self.value()?])?)),
            Token::Sign("!=") => Ok(Operator::NotIn(check(key, vec![self.value()?])?)),
            Token::Sign(">") => Ok(Operator::Greater(bound(&self.value()?)?)),
            Token::Sign("<") => Ok(Operator::Less(bound(&self.value()?)?)),
            other => Err(format!("found '{}', expected: {OPERATORS}", other.text())),
        }
    }

    fn value(&mut self) -> Parsed<String> {
        if self.peek() == Token::End || self.peek().is_sign(",") {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(value) => Ok(value.to_owned()),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    /// The values in parentheses; some may be empty.
    fn values(&mut self) -> Parsed<Vec<String>> {
        let token = self.next();
        if !token.is_sign("(") {
            return Err(format!("found '{}' expected: '('", token.text()));
        }
        let mut values = Vec::new();
        let mut value = String::new();
        loop {
            match self.next() {
                Token::Word(word) => {
                    word.clone_into(&mut value);
                    let after = self.peek();
                    if !after.is_sign(",") && !after.is_sign(")") {
                        return Err(format!("found '{}', expected: ',' or ')'", after.text()));
                    }
                }
                Token::Sign(",") => values.push(std::mem::take(&mut value)),
                Token::Sign(")") => {
                    values.push(value);
                    return Ok(values);
                }
                other if values.is_empty() && value.is_empty() => {
                    let found = other.text();
                    return Err(format!("found '{found}', expected: ',', ')' or identifier"));
                }
                other => {
                    return Err(format!("found '{}', expected: ',', or identifier", other.text()));
                }
            }
        }
    }
}

/// Upstream: k8s.io/apimachinery/pkg/labels/selector.go: NewRequirement
fn check(key: &str, values: Vec<String>) -> Parsed<Vec<String>> {
    for (index, value) in values.iter().enumerate() {
        if let Some(problem) = names::label_value_problem(value) {
            return Err(format!("values[{index}][{key}]: Invalid value: {value:?}: {problem}"));
        }
    }
    Ok(values)
}

fn bound(value: &str) -> Parsed<i64> {
    value.parse().map_err(|_| {
        format!(
            "values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an \
             integer"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(selector: &str, labels: &[(&str, &str)], expected: bool) {
        let parsed = LabelSelector::parse(selector).unwrap();
        let found = parsed
            .matches(|key| labels.iter().find(|(name, _)| *name == key).map(|(_, value)| *value));
        assert_eq!(found, expected, "{selector} {labels:?}");
    }

    #[test]
    fn label_selectors_select() {
        let labels = [("app", "web"), ("tier", "3")];
        check("", &labels, true);
        check("app=web", &labels, true);
        check("app == web , tier", &labels, true);
        check("app!=web", &labels, false);
        check("other!=web", &labels, true);
        check("app in (db, web)", &labels, true);
        check("app notin (db,web)", &labels, false);
        check("!other", &labels, true);
        check("!app", &labels, false);
        check("tier>2", &labels, true);
        check("tier<2", &labels, false);
        check("missing in ()", &labels, false);
        check("in in (in)", &[("in", "in")], true);
    }

    #[test]
    fn malformed_label_selectors_are_refused() {
        for selector in ["a=b,,c", "a in (b", "a b (c)", "=b", "a=b c", "a>x", "-", "a,", "!", "é"]
        {
            assert!(LabelSelector::parse(selector).is_err(), "{selector}");
        }
    }
}
