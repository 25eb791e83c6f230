//! Text to trees: a recursive-descent parser of cel-spec's grammar.
//!
//! Ids are given, and positions remembered, as cel-go does it: both show in messages. The depth of a
//! tree is limited, so nothing that walks one can run out of stack.
//!
//! Upstream: github.com/google/cel-go/parser/parser.go: Parse
mod lexer;
mod macros;
#[cfg(test)]
mod tests;
mod unescape;

use crate::ast::{Call, Entry, Expr, ExprId, ExprKind, FieldInit, Item, Select, Struct, operator};
use crate::error::CompileError;
use crate::{CompileErrors, Value};
use lexer::{Token, TokenKind};

/// Deepest nesting, cel-go's.
const DEPTH_MAX: usize = 250;
/// Deepest tree, macros expanded. cel-go has no such limit: its stacks grow. What walks a tree takes
/// some 10 kB of stack for each level (unoptimized), and threads have 2 MB.
const TREE_DEPTH_MAX: usize = 100;
/// Longest expression, in characters.
const LENGTH_MAX: usize = 100_000;
/// Reserved words, which are no identifiers.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
/// What may begin an expression, as messages list it.
const STARTS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
                      NUM_UINT, STRING, BYTES, IDENTIFIER}";
/// A parsed expression and where its nodes are.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub(crate) root: Expr,
    pub(crate) source_info: SourceInfo,
}

/// Where the nodes of a tree are in its text.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceInfo {
    /// The first character of each node, by id.
    offsets: Vec<usize>,
    /// The first character of each line but the first.
    lines: Vec<usize>,
}

impl SourceInfo {
    fn new(source: &str) -> Self {
        let lines = source
            .chars()
            .enumerate()
            .filter(|(_, character)| *character == '\n')
            .map(|(offset, _)| offset + 1)
            .collect();
        Self { offsets: Vec::new(), lines }
    }

    fn add(&mut self, offset: usize) -> ExprId {
        self.offsets.push(offset);
        self.offsets.len() - 1
    }

    /// How many nodes there are.
    pub(crate) fn count(&self) -> usize {
        self.offsets.len()
    }

    fn offset(&self, id: ExprId) -> usize {
        self.offsets.get(id).copied().unwrap_or_default()
    }

    /// An error at a node.
    pub(crate) fn error(&self, id: ExprId, message: impl Into<String>) -> CompileError {
        self.error_at(self.offset(id), message)
    }

    fn error_at(&self, offset: usize, message: impl Into<String>) -> CompileError {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).map_or(0, |before| self.lines[before]);
        CompileError { line: line + 1, column: offset - start, message: message.into() }
    }
}

/// Parses an expression and expands its macros.
pub(crate) fn parse(source: &str) -> Result<Parsed, CompileErrors> {
    let length = source.chars().count();
    if length > LENGTH_MAX {
        let message =
            format!("expression code point size exceeds limit: size: {length}, limit {LENGTH_MAX}");
        let error = CompileError { line: 0, column: 0, message };
        return Err(CompileErrors::new(source, vec![error]));
    }
    let source_info = SourceInfo::new(source);
    let (tokens, unreadable) = lexer::tokens(source);
    let errors = unreadable
        .into_iter()
        .map(|error| source_info.error_at(error.offset, error.message))
        .collect();
    let mut parser = Parser { tokens, at: 0, depth: 0, source_info, errors };
    let root = parser.whole();
    match root {
        Ok(root) if parser.errors.is_empty() && !fits(&root, TREE_DEPTH_MAX) => {
            let message = "max recursion depth exceeded".to_owned();
            let error = CompileError { line: 0, column: 0, message };
            Err(CompileErrors::new(source, vec![error]))
        }
        Ok(root) if parser.errors.is_empty() => {
            Ok(Parsed { root, source_info: parser.source_info })
        }
        Ok(_) | Err(ParseAborted) => Err(CompileErrors::new(source, parser.errors)),
    }
}

/// Whether a tree is no deeper than `levels`.
fn fits(root: &Expr, levels: usize) -> bool {
    let mut level = vec![root];
    for _ in 0..levels {
        level = level.into_iter().flat_map(Expr::children).collect();
        if level.is_empty() {
            return true;
        }
    }
    false
}

/// The text cannot be read further; the error is recorded.
struct ParseAborted;

type ParseResult<T> = Result<T, ParseAborted>;

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    depth: usize,
    source_info: SourceInfo,
    errors: Vec<CompileError>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn ahead(&self, count: usize) -> TokenKind {
        self.tokens[(self.at + count).min(self.tokens.len() - 1)].kind
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn take(&mut self, symbol: &str) -> Option<Token<'a>> {
        let found = matches!(self.peek().kind, TokenKind::Symbol(text) if text == symbol);
        found.then(|| self.next())
    }

    fn node(&mut self, offset: usize, kind: ExprKind) -> Expr {
        Expr { id: self.source_info.add(offset), kind }
    }

    fn call(&mut self, id: ExprId, function: &str, arguments: Vec<Expr>) -> Expr {
        let call = Call { function: function.to_owned(), target: None, arguments };
        Expr { id, kind: ExprKind::Call(Box::new(call)) }
    }

    /// Records an error and resumes.
    fn defect(&mut self, offset: usize, message: impl Into<String>) -> Expr {
        let error = self.source_info.error_at(offset, message);
        self.errors.push(error);
        self.node(offset, ExprKind::Unspecified)
    }

    fn stop<T>(&mut self, offset: usize, message: impl Into<String>) -> ParseResult<T> {
        let error = self.source_info.error_at(offset, message);
        self.errors.push(error);
        Err(ParseAborted)
    }

    fn mismatch<T>(&mut self, expected: &str) -> ParseResult<T> {
        let token = self.peek();
        let message =
            format!("Syntax error: mismatched input '{}' expecting {expected}", token.text);
        self.stop(token.offset, message)
    }

    /// Enters a level of nesting; the caller leaves it.
    fn descend(&mut self) -> ParseResult<()> {
        self.depth += 1;
        if self.depth <= DEPTH_MAX {
            return Ok(());
        }
        let message = format!("expression recursion limit exceeded: {DEPTH_MAX}");
        self.errors = vec![CompileError { line: 0, column: 0, message }];
        Err(ParseAborted)
    }

    fn whole(&mut self) -> ParseResult<Expr> {
        let root = self.expression()?;
        let token = self.peek();
        if token.kind == TokenKind::End {
            return Ok(root);
        }
        let follows =
            if self.ahead(1) == TokenKind::End { "extraneous input" } else { "mismatched input" };
        let message = format!("Syntax error: {follows} '{}' expecting <EOF>", token.text);
        self.stop(token.offset, message)
    }

    fn expression(&mut self) -> ParseResult<Expr> {
        self.descend()?;
        let condition = self.disjunction()?;
        let whole = match self.take("?") {
            Some(operator) => self.choice(operator, condition)?,
            None => condition,
        };
        self.depth -= 1;
        Ok(whole)
    }

    fn choice(&mut self, operator: Token<'a>, condition: Expr) -> ParseResult<Expr> {
        let id = self.source_info.add(operator.offset);
        let truthy = self.disjunction()?;
        if self.take(":").is_none() {
            return self.mismatch("':'");
        }
        let falsy = self.expression()?;
        Ok(self.call(id, operator::CONDITIONAL, vec![condition, truthy, falsy]))
    }

    /// Terms that `||` connects, as a balanced tree.
    fn disjunction(&mut self) -> ParseResult<Expr> {
        let first = self.conjunction()?;
        self.logic("||", operator::OR, first, Self::conjunction)
    }

    /// Terms that `&&` connects, as a balanced tree.
    fn conjunction(&mut self) -> ParseResult<Expr> {
        let first = self.operation(0)?;
        self.logic("&&", operator::AND, first, |parser| parser.operation(0))
    }

    fn logic(
        &mut self,
        symbol: &str,
        function: &str,
        first: Expr,
        term: fn(&mut Self) -> ParseResult<Expr>,
    ) -> ParseResult<Expr> {
        let mut terms = vec![Some(first)];
        let mut operators = Vec::new();
        while let Some(token) = self.take(symbol) {
            terms.push(Some(term(self)?));
            operators.push(self.source_info.add(token.offset));
        }
        Ok(self.balanced(function, &mut terms, &operators))
    }

    fn balanced(
        &mut self,
        function: &str,
        terms: &mut [Option<Expr>],
        operators: &[ExprId],
    ) -> Expr {
        if operators.is_empty() {
            return terms[0].take().expect("each term is taken once");
        }
        let middle = operators.len() / 2;
        let (left, right) = terms.split_at_mut(middle + 1);
        let left = self.balanced(function, left, &operators[..middle]);
        let right = self.balanced(function, right, &operators[middle + 1..]);
        self.call(operators[middle], function, vec![left, right])
    }

    /// Relations, sums and products whose operators bind at least as strongly as `level`; those of
    /// a level bind to the left.
    fn operation(&mut self, level: usize) -> ParseResult<Expr> {
        let depth = self.depth;
        let mut left = self.unary()?;
        while let Some((function, strength)) = binary(self.peek().kind) {
            if strength < level {
                break;
            }
            let token = self.next();
            let id = self.source_info.add(token.offset);
            // The depth of a chain is that of its tree.
            self.descend()?;
            let right = self.operation(strength + 1)?;
            left = self.call(id, function, vec![left, right]);
        }
        self.depth = depth;
        Ok(left)
    }

    fn unary(&mut self) -> ParseResult<Expr> {
        for (symbol, function) in [("!", operator::NOT), ("-", operator::NEGATE)] {
            let is_number = matches!(self.ahead(1), TokenKind::Int | TokenKind::Float);
            if symbol == "-" && is_number {
                break;
            }
            let Some(first) = self.take(symbol) else { continue };
            let mut count = 1;
            while self.take(symbol).is_some() {
                count += 1;
            }
            if count % 2 == 0 {
                return self.member();
            }
            let id = self.source_info.add(first.offset);
            let operand = self.member()?;
            return Ok(self.call(id, function, vec![operand]));
        }
        self.member()
    }

    fn member(&mut self) -> ParseResult<Expr> {
        let depth = self.depth;
        let mut operand = self.primary()?;
        loop {
            if let Some(dot) = self.take(".") {
                operand = self.select(dot, operand)?;
            } else if let Some(open) = self.take("[") {
                let optional = self.take("?").is_some();
                let id = self.source_info.add(open.offset);
                let index = self.expression()?;
                self.close("]")?;
                let function = if optional { operator::OPTIONAL_INDEX } else { operator::INDEX };
                operand = self.call(id, function, vec![operand, index]);
            } else {
                self.depth = depth;
                return Ok(operand);
            }
            self.descend()?;
        }
    }

    /// `.field`, `.?field` or `.method(arguments)`.
    fn select(&mut self, dot: Token<'a>, operand: Expr) -> ParseResult<Expr> {
        let optional = self.take("?").is_some();
        let token = self.peek();
        let Some(name) = token.field() else {
            let message = match (token.kind, token.text) {
                (TokenKind::End, _) => {
                    "Syntax error: no viable alternative at input '.'".to_owned()
                }
                (_, text @ ("true" | "false" | "null")) if !optional => {
                    format!("Syntax error: mismatched input '{text}' expecting IDENTIFIER")
                }
                (_, text) => format!("Syntax error: no viable alternative at input '.{text}'"),
            };
            return self.stop(token.offset, message);
        };
        self.next();
        if optional {
            let id = self.source_info.add(dot.offset);
            let field = self.node(token.offset, ExprKind::Literal(Value::from(name)));
            return Ok(self.call(id, operator::OPTIONAL_SELECT, vec![operand, field]));
        }
        let open = if token.kind == TokenKind::Identifier { self.take("(") } else { None };
        let Some(open) = open else {
            let select = Select { operand, field: name.to_owned(), test_only: false };
            return Ok(self.node(dot.offset, ExprKind::Select(Box::new(select))));
        };
        let id = self.source_info.add(open.offset);
        let arguments = self.arguments()?;
        Ok(self.call_or_macro(id, name, Some(operand), arguments))
    }

    fn call_or_macro(
        &mut self,
        id: ExprId,
        function: &str,
        target: Option<Expr>,
        arguments: Vec<Expr>,
    ) -> Expr {
        match macros::expand(&mut self.source_info, id, function, target, arguments) {
            macros::Expansion::Expanded(expr) => *expr,
            macros::Expansion::Plain(target, arguments) => {
                let call = Call { function: function.to_owned(), target, arguments };
                Expr { id, kind: ExprKind::Call(Box::new(call)) }
            }
            macros::Expansion::Wrong(at, message) => {
                let offset = self.source_info.offset(at);
                self.defect(offset, message)
            }
        }
    }

    /// Arguments up to and with the closing parenthesis.
    fn arguments(&mut self) -> ParseResult<Vec<Expr>> {
        let mut arguments = Vec::new();
        if self.take(")").is_some() {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if self.take(",").is_none() {
                self.close(")")?;
                return Ok(arguments);
            }
        }
    }

    fn close(&mut self, symbol: &str) -> ParseResult<()> {
        if self.take(symbol).is_some() {
            return Ok(());
        }
        let token = self.peek();
        let message = match (symbol, token.kind) {
            (")", TokenKind::End) => format!("missing ')' at '{}'", token.text),
            (_, TokenKind::End) => {
                format!("mismatched input '{}' expecting {{'{symbol}', ','}}", token.text)
            }
            _ => format!("extraneous input '{}' expecting {{'{symbol}', ','}}", token.text),
        };
        self.stop(token.offset, format!("Syntax error: {message}"))
    }

    fn primary(&mut self) -> ParseResult<Expr> {
        let token = self.peek();
        match token.kind {
            TokenKind::Symbol("(") => {
                self.next();
                let inner = self.expression()?;
                if self.take(")").is_none() {
                    let token = self.peek();
                    let message = format!("Syntax error: missing ')' at '{}'", token.text);
                    return self.stop(token.offset, message);
                }
                Ok(inner)
            }
            TokenKind::Symbol("[") => self.list(),
            TokenKind::Symbol("{") => self.map(),
            TokenKind::Identifier | TokenKind::Symbol(".") => self.name(),
            TokenKind::Symbol("-" | "true" | "false" | "null")
            | TokenKind::Int
            | TokenKind::Uint
            | TokenKind::Float
            | TokenKind::String
            | TokenKind::Bytes => self.literal(),
            TokenKind::Symbol(_) | TokenKind::End | TokenKind::Escaped => {
                let kind = if token.kind == TokenKind::End || self.ahead(1) == TokenKind::End {
                    "mismatched"
                } else {
                    "extraneous"
                };
                let before = self.at.checked_sub(1).map(|at| self.tokens[at].kind);
                let may_be_optional =
                    matches!(before, Some(TokenKind::Symbol("["))) && self.opens_index();
                let expected = if may_be_optional {
                    STARTS.replace("'!', ", "'!', '?', ")
                } else {
                    STARTS.to_owned()
                };
                let message =
                    format!("Syntax error: {kind} input '{}' expecting {expected}", token.text);
                self.stop(token.offset, message)
            }
        }
    }

    /// Whether the bracket before the current token follows an operand.
    fn opens_index(&self) -> bool {
        self.at.checked_sub(2).is_some_and(|at| {
            matches!(
                self.tokens[at].kind,
                TokenKind::Identifier | TokenKind::Symbol(")" | "]" | "}") | TokenKind::String
            )
        })
    }

    /// An identifier, a call, or an object with a dotted name.
    fn name(&mut self) -> ParseResult<Expr> {
        let start = self.peek().offset;
        let leading = if self.take(".").is_some() { "." } else { "" };
        let token = self.peek();
        if token.kind != TokenKind::Identifier {
            return self.mismatch("IDENTIFIER");
        }
        if let Some(object) = self.object(leading)? {
            return Ok(object);
        }
        self.next();
        if RESERVED.contains(&token.text) {
            if let Some(_open) = self.take("(") {
                self.arguments()?;
            }
            return Ok(self.defect(start, format!("reserved identifier: {}", token.text)));
        }
        let name = format!("{leading}{}", token.text);
        let Some(open) = self.take("(") else {
            return Ok(self.node(token.offset, ExprKind::Ident(name)));
        };
        let id = self.source_info.add(open.offset);
        let arguments = self.arguments()?;
        Ok(self.call_or_macro(id, &name, None, arguments))
    }

    fn object(&mut self, leading: &str) -> ParseResult<Option<Expr>> {
        let mut length = 1;
        while self.ahead(length) == TokenKind::Symbol(".")
            && self.ahead(length + 1) == TokenKind::Identifier
        {
            length += 2;
        }
        if self.ahead(length) != TokenKind::Symbol("{") {
            return Ok(None);
        }
        let parts: Vec<&str> = (0..length).map(|_| self.next().text).collect();
        let name = format!("{leading}{}", parts.concat());
        let open = self.next();
        let id = self.source_info.add(open.offset);
        let mut fields = Vec::new();
        while self.take("}").is_none() {
            let optional = self.take("?").is_some();
            let token = self.next();
            let Some(name) = token.field() else {
                self.at -= 1;
                return self.mismatch("{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}");
            };
            let Some(colon) = self.take(":") else { return self.mismatch("':'") };
            let id = self.source_info.add(colon.offset);
            let value = self.expression()?;
            fields.push(FieldInit { id, name: name.to_owned(), value, optional });
            if self.take(",").is_none() {
                self.close("}")?;
                break;
            }
        }
        let object = Struct { name, fields };
        Ok(Some(Expr { id, kind: ExprKind::Struct(Box::new(object)) }))
    }

    fn list(&mut self) -> ParseResult<Expr> {
        let open = self.next();
        let id = self.source_info.add(open.offset);
        let mut items = Vec::new();
        self.take_lone_comma("]");
        while self.take("]").is_none() {
            let optional = self.take("?").is_some();
            items.push(Item { value: self.expression()?, optional });
            if self.take(",").is_none() {
                self.close("]")?;
                break;
            }
        }
        Ok(Expr { id, kind: ExprKind::List(items) })
    }

    /// `[,]` and `{,}` are empty.
    fn take_lone_comma(&mut self, close: &'static str) {
        if self.peek().kind == TokenKind::Symbol(",") && self.ahead(1) == TokenKind::Symbol(close) {
            self.next();
        }
    }

    fn map(&mut self) -> ParseResult<Expr> {
        let open = self.next();
        let id = self.source_info.add(open.offset);
        let mut entries = Vec::new();
        self.take_lone_comma("}");
        while self.take("}").is_none() {
            let optional = self.take("?").is_some();
            let key = self.expression()?;
            let Some(colon) = self.take(":") else { return self.mismatch("':'") };
            self.source_info.add(colon.offset);
            let value = self.expression()?;
            entries.push(Entry { key, value, optional });
            if self.take(",").is_none() {
                self.close("}")?;
                break;
            }
        }
        Ok(Expr { id, kind: ExprKind::Map(entries) })
    }

    fn literal(&mut self) -> ParseResult<Expr> {
        let start = self.peek().offset;
        let sign = if self.take("-").is_some() { "-" } else { "" };
        let token = self.next();
        let value = match token.kind {
            TokenKind::Symbol("true") => Ok(Value::Bool(true)),
            TokenKind::Symbol("false") => Ok(Value::Bool(false)),
            TokenKind::Symbol("null") => Ok(Value::Null),
            TokenKind::Int => {
                integer(sign, token.text).map(Value::Int).ok_or("invalid int literal")
            }
            TokenKind::Uint => {
                let text = &token.text[..token.text.len() - 1];
                let value = match text.strip_prefix("0x") {
                    Some(digits) => u64::from_str_radix(digits, 16),
                    None => text.parse(),
                };
                value.map(Value::Uint).map_err(|_| "invalid uint literal")
            }
            TokenKind::Float => {
                let value: Option<f64> = format!("{sign}{}", token.text).parse().ok();
                value
                    .filter(|value| value.is_finite())
                    .map(Value::Double)
                    .ok_or("invalid double literal")
            }
            TokenKind::String => unescape::unescape(token.text, false).and_then(|bytes| {
                String::from_utf8(bytes).map(Value::from).map_err(|_| "unable to unescape string")
            }),
            TokenKind::Bytes => {
                unescape::unescape(&token.text[1..], true).map(|bytes| Value::Bytes(bytes.into()))
            }
            TokenKind::Symbol(_) | TokenKind::Identifier | TokenKind::Escaped | TokenKind::End => {
                self.at -= 1;
                return self.mismatch(STARTS);
            }
        };
        Ok(match value {
            Ok(value) => self.node(start, ExprKind::Literal(value)),
            Err(message) => self.defect(start, message),
        })
    }
}

/// The function of a binary operator, and how strongly it binds.
fn binary(kind: TokenKind) -> Option<(&'static str, usize)> {
    let TokenKind::Symbol(symbol) = kind else { return None };
    Some(match symbol {
        "<" => ("_<_", 0),
        "<=" => ("_<=_", 0),
        ">=" => ("_>=_", 0),
        ">" => ("_>_", 0),
        "==" => (operator::EQUALS, 0),
        "!=" => (operator::NOT_EQUALS, 0),
        "in" => (operator::IN, 0),
        "+" => (operator::ADD, 1),
        "-" => ("_-_", 1),
        "*" => ("_*_", 2),
        "/" => ("_/_", 2),
        "%" => ("_%_", 2),
        _ => return None,
    })
}

fn integer(sign: &str, text: &str) -> Option<i64> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    i64::from_str_radix(&format!("{sign}{digits}"), radix).ok()
}
