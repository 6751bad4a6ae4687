//! How expressions are written: a parser by precedence, which takes any text and stops at the first mistake.

use super::{
    Expression, Field, Mistake, Names, Node, Op, Tensor,
    language::{LIMITS, Language, MATRIX, PACK, RULE, SUM},
};
use crate::diagnostic::did_you_mean;
use nx_vulkan_abi::DType;
use std::ops::Range;

/// Parentheses, calls and signs inside each other.
const MAX_DEPTH: usize = 48;

const COMPARISON: u8 = 3;

/// Binary operators with their precedence; the higher binds tighter. A prefix of another comes after it.
const OPERATORS: &[(&str, Op, u8)] = &[
    ("||", Op::Or, 1),
    ("&&", Op::And, 2),
    ("==", Op::Equal, COMPARISON),
    ("!=", Op::NotEqual, COMPARISON),
    ("<=", Op::LessEqual, COMPARISON),
    (">=", Op::GreaterEqual, COMPARISON),
    ("<", Op::Less, COMPARISON),
    (">", Op::Greater, COMPARISON),
    ("+", Op::Add, SUM),
    ("-", Op::Subtract, SUM),
    ("*", Op::Multiply, 5),
    ("/", Op::Divide, 5),
    ("%", Op::Remainder, 5),
];

impl Expression {
    /// Parses `text`; any text gives an expression or a mistake.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse(text: &str) -> Result<Expression, Mistake> {
        Expression::parse_with(text, &Names::new())
    }

    pub(crate) fn parse_with(text: &str, names: &Names) -> Result<Expression, Mistake> {
        let mut parser = Parser::new(text, &PACK, names)?;
        let root = parser.inner()?;
        parser.end("an operator or the end")?;
        Ok(Expression::new(text, root))
    }
}

/// A comparison as `registry.toml` has it.
pub(crate) fn condition(text: &str) -> Result<Expression, Mistake> {
    let names = Names::new();
    let mut parser = Parser::new(text, &RULE, &names)?;
    let left = parser.inner()?;
    let Some((symbol, op, COMPARISON)) = parser.operator(COMPARISON) else {
        return Err(parser.unexpected("one of == != < <= > >="));
    };
    parser.at += symbol;
    let right = parser.inner()?;
    parser.end("the end; a second condition is a second entry of the list")?;
    let root = Node::Binary(op, Box::new(left), Box::new(right));
    Ok(Expression::new(text, root))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    language: &'static Language,
    names: &'a Names,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, language: &'static Language, names: &'a Names) -> Result<Self, Mistake> {
        let Language {
            text: what,
            longest,
            ..
        } = language;
        if text.len() > *longest {
            let message = format!("{what} has at most {longest} characters");
            return Err(mistake(0..text.len(), message));
        }
        Ok(Parser {
            text,
            at: 0,
            depth: 0,
            language,
            names,
        })
    }

    fn end(&mut self, wanted: &str) -> Result<(), Mistake> {
        self.space();
        match self.at < self.text.len() {
            true => Err(self.unexpected(wanted)),
            false => Ok(()),
        }
    }

    /// What may stand in parentheses.
    fn inner(&mut self) -> Result<Node, Mistake> {
        self.binary(self.language.weakest)
    }

    fn binary(&mut self, weakest: u8) -> Result<Node, Mistake> {
        let mut left = self.unary()?;
        while let Some((symbol, op, strength)) = self.operator(weakest) {
            self.at += symbol;
            let right = self.binary(strength + 1)?;
            left = Node::Binary(op, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn operator(&mut self, weakest: u8) -> Option<(usize, Op, u8)> {
        self.space();
        let rest = &self.text[self.at..];
        let (symbol, op, strength) = OPERATORS.iter().find(|row| rest.starts_with(row.0))?;
        (*strength >= weakest).then_some((symbol.len(), *op, *strength))
    }

    fn unary(&mut self) -> Result<Node, Mistake> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(mistake(self.at..self.at, "it is nested too deeply"));
        }
        let node = if self.takes("-") {
            Node::Negate(Box::new(self.unary()?))
        } else if self.language.weakest == 0 && self.takes("!") {
            Node::Not(Box::new(self.unary()?))
        } else if self.takes("(") {
            let inner = self.inner()?;
            self.expect(")")?;
            inner
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn primary(&mut self) -> Result<Node, Mistake> {
        self.space();
        let start = self.at;
        let word = self.word();
        let first = word.bytes().next();
        match first {
            None => Err(self.unexpected(self.language.value)),
            Some(b'0'..=b'9') => match word.replace('_', "").parse::<u64>() {
                Ok(number) => Ok(Node::Number(number.into())),
                Err(_) => Err(mistake(
                    start..self.at,
                    "expected a whole number of 64 bits",
                )),
            },
            Some(_) if self.takes("(") => self.call(word, start..start + word.len()),
            Some(_) => self.name(word, start),
        }
    }

    fn call(&mut self, name: &str, span: Range<usize>) -> Result<Node, Mistake> {
        let known = self.language.functions;
        if !known.contains(&name) {
            let hint = did_you_mean(name, known.iter().copied());
            return Err(mistake(
                span,
                format!("there is no function `{name}`{hint}"),
            ));
        }
        if name == MATRIX {
            return self.matrix(span);
        }
        let mut arguments = vec![self.inner()?];
        while self.takes(",") {
            arguments.push(self.inner()?);
        }
        self.expect(")")?;
        let count = arguments.len();
        match (name, count) {
            ("min", 2..) => return Ok(Node::Least(arguments)),
            ("max", 2..) => return Ok(Node::Most(arguments)),
            _ => {}
        }
        let divided = match (name, arguments.pop(), arguments.pop()) {
            ("ceil", Some(Node::Binary(Op::Divide, above, below)), None) => Some((above, below)),
            ("ceil_div", Some(below), Some(above)) if count == 2 => {
                Some((Box::new(above), Box::new(below)))
            }
            _ => None,
        };
        let form = match name {
            "ceil" => "ceil takes one division: ceil(x / y)",
            "ceil_div" => "ceil_div takes two numbers: ceil_div(x, y)",
            _ => "min and max take two numbers or more",
        };
        let (above, below) = divided.ok_or_else(|| mistake(span, form))?;
        Ok(Node::Binary(Op::CeilDivide, above, below))
    }

    /// Three types and three extents, the parenthesis open.
    fn matrix(&mut self, span: Range<usize>) -> Result<Node, Mistake> {
        let mut types = [DType::F32; 3];
        for dtype in &mut types {
            self.space();
            let start = self.at;
            let word = self.word();
            *dtype = DType::from_name(word).ok_or_else(|| {
                let form =
                    "matrix takes three types and m, n, k: matrix(f16, f16, f32, 16, 16, 16)";
                let hint = did_you_mean(word, DType::all().map(DType::name));
                mistake(
                    start..self.at,
                    format!("there is no type `{word}`{hint}; {form}"),
                )
            })?;
            self.expect(",")?;
        }
        let mut extents = vec![self.inner()?];
        while self.takes(",") {
            extents.push(self.inner()?);
        }
        self.expect(")")?;
        let form = "matrix takes the extents m, n and k after three types: matrix(f16, f16, f32, 16, 16, 16)";
        let extents = extents.try_into().map_err(|_| mistake(span, form))?;
        Ok(Node::Matrix(types, Box::new(extents)))
    }

    fn name(&mut self, word: &str, start: usize) -> Result<Node, Mistake> {
        let span = start..start + word.len();
        if word == "elems" {
            return Ok(Node::Tensor(Tensor::Output(0), Field::Elements, None));
        }
        if let Some(named) = self.names.get(word) {
            return Ok(Node::Named(named.root.clone()));
        }
        if self.language.owners.contains(&word) {
            return self.property(word);
        }
        let Language {
            tensor,
            tensors,
            owners,
            functions,
            ..
        } = self.language;
        let Some(tensor) = tensor(word) else {
            let known = ["elems", "out"].iter().chain(*owners).chain(*functions);
            let known = known.copied().chain(self.names.keys().map(String::as_str));
            let hint = match did_you_mean(word, known) {
                hint if hint.is_empty() => format!("; {tensors}"),
                hint => hint,
            };
            let message = format!("there is nothing called `{word}`{hint}");
            return Err(mistake(span, message));
        };
        let fields = self.language.fields;
        let (field, name) = self.one_of(word, fields.iter().map(|row| row.0))?;
        let field = fields[field].1;
        let index = self.index_of(name, matches!(field, Field::Dim | Field::Stride))?;
        Ok(Node::Tensor(tensor, field, index))
    }

    /// A limit of the device, an attribute or its length.
    fn property(&mut self, owner: &str) -> Result<Node, Mistake> {
        if owner == "device" {
            let names = LIMITS.iter().map(|row| row.0);
            let (limit, name) = self.one_of(owner, names)?;
            let index = self.index_of(name, LIMITS[limit].1)?;
            return Ok(Node::Device(limit, index));
        }
        let attr = self.member("an attribute's name")?.to_owned();
        if !self.takes(".") {
            return Ok(Node::Attr(attr, self.index()?));
        }
        let at = self.at;
        match self.word() {
            "len" => Ok(Node::AttrLength(attr)),
            _ => Err(mistake(at..self.at, "an attribute has only `len`")),
        }
    }

    /// `.name`, one of those known; its number and itself.
    fn one_of(
        &mut self,
        owner: &str,
        known: impl Iterator<Item = &'static str> + Clone,
    ) -> Result<(usize, &'static str), Mistake> {
        let name = self.member("the name of one of its properties")?;
        let span = self.at - name.len()..self.at;
        let found = known.clone().enumerate().find(|(_, own)| *own == name);
        found.ok_or_else(|| {
            let list: Vec<&str> = known.clone().collect();
            let hint = match did_you_mean(name, known) {
                hint if hint.is_empty() => format!("; it has `{}`", list.join("`, `")),
                hint => hint,
            };
            mistake(span, format!("`{owner}` has no `{name}`{hint}"))
        })
    }

    fn member(&mut self, what: &str) -> Result<&'a str, Mistake> {
        self.expect(".")?;
        self.space();
        match self.word() {
            "" => Err(self.unexpected(what)),
            name => Ok(name),
        }
    }

    fn index_of(&mut self, name: &str, is_list: bool) -> Result<Option<Box<Node>>, Mistake> {
        let start = self.at;
        let index = self.index()?;
        if index.is_some() == is_list {
            return Ok(index);
        }
        let message = if is_list {
            format!("`{name}` is a list: write `{name}[0]`")
        } else {
            format!("`{name}` is one number and takes no index")
        };
        Err(mistake(start..self.at, message))
    }

    fn index(&mut self) -> Result<Option<Box<Node>>, Mistake> {
        if !self.takes("[") {
            return Ok(None);
        }
        let index = self.inner()?;
        self.expect("]")?;
        Ok(Some(Box::new(index)))
    }

    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let ordinary = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let length = rest.bytes().take_while(|b| ordinary(*b)).count();
        self.at += length;
        &rest[..length]
    }

    fn takes(&mut self, symbol: &str) -> bool {
        self.space();
        let found = self.text[self.at..].starts_with(symbol);
        self.at += if found { symbol.len() } else { 0 };
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Mistake> {
        if self.takes(symbol) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("`{symbol}`")))
        }
    }

    fn space(&mut self) {
        let rest = self.text[self.at..].bytes();
        self.at += rest.take_while(|b| matches!(b, b' ' | b'\t')).count();
    }

    fn unexpected(&mut self, wanted: &str) -> Mistake {
        self.space();
        match self.text[self.at..].chars().next() {
            Some(c) => {
                let span = self.at..self.at + c.len_utf8();
                mistake(
                    span,
                    format!("expected {wanted}, got `{}`", c.escape_default()),
                )
            }
            None => mistake(
                self.at..self.at,
                format!("expected {wanted}, got the end of the expression"),
            ),
        }
    }
}

fn mistake(span: Range<usize>, message: impl Into<String>) -> Mistake {
    Mistake {
        span,
        message: message.into(),
    }
}
