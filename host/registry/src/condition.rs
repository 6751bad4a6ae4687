//! Shape conditions of rules, such as `a.dim[-1] % 16 == 0`: their grammar and what they say about a request.

use super::{diagnostic::did_you_mean, select::Asked};
use std::{fmt, ops::Range};

/// Bytes of a condition; it also bounds how deep its expressions nest.
const LONGEST: usize = 256;

const EXAMPLE: &str = "such as `a.rank >= 2`, `a.dim[-1] % 16 == 0` or `elems >= 65536`";

/// One comparison of two whole numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    text: String,
    left: Expression,
    comparison: Comparison,
    right: Expression,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Longer signs first, so that `<=` is not read as `<`.
const COMPARISONS: &[(&str, Comparison)] = &[
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

#[derive(Debug, Clone, PartialEq)]
enum Expression {
    Number(i128),
    Fact(Fact),
    Two(Box<Expression>, char, Box<Expression>),
}

/// What a condition can know about a request.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fact {
    tensor: Tensor,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Tensor {
    /// `a` is the first.
    Input(u8),
    Output,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Rank,
    Elements,
    Dimension(i32),
}

impl Condition {
    /// Reads a condition; a mistake comes with its place in `text`.
    pub(super) fn parse(text: &str) -> Result<Condition, (Range<usize>, String)> {
        if text.len() > LONGEST {
            let message = format!("a condition has at most {LONGEST} characters");
            return Err((0..text.len(), message));
        }
        let mut parser = Parser { text, at: 0 };
        let left = parser.sum()?;
        let comparison = parser.comparison()?;
        let right = parser.sum()?;
        parser.skip_spaces();
        if parser.at < text.len() {
            return Err(
                parser.unexpected("the end; a second condition is a second entry of the list")
            );
        }
        Ok(Condition {
            text: text.to_owned(),
            left,
            comparison,
            right,
        })
    }

    /// Why the request does not fulfil the condition, if so.
    pub(super) fn unmet(&self, asked: &Asked<'_>) -> Option<String> {
        let (left, right) = match (self.left.value(asked), self.right.value(asked)) {
            (Ok(left), Ok(right)) => (left, right),
            (Err(why), _) | (_, Err(why)) => return Some(format!("`{self}`: {why}")),
        };
        let holds = match self.comparison {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessOrEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterOrEqual => left >= right,
        };
        if holds {
            return None;
        }
        let mut facts = Vec::new();
        self.left.facts(&mut facts);
        self.right.facts(&mut facts);
        let mut shown: Vec<String> = Vec::new();
        for fact in facts {
            let value = fact.value(asked).unwrap_or_default();
            let text = format!("{fact} is {value}");
            if !shown.contains(&text) {
                shown.push(text);
            }
        }
        Some(format!("`{self}` is false: {}", shown.join(", ")))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Expression {
    fn value(&self, asked: &Asked<'_>) -> Result<i128, String> {
        match self {
            Expression::Number(number) => Ok(*number),
            Expression::Fact(fact) => fact.value(asked),
            Expression::Two(left, operator, right) => {
                let (left, right) = (left.value(asked)?, right.value(asked)?);
                let result = match operator {
                    '+' => left.checked_add(right),
                    '-' => left.checked_sub(right),
                    '*' => left.checked_mul(right),
                    _ if right == 0 => return Err("it divides by zero".to_owned()),
                    '/' => left.checked_div(right),
                    _ => left.checked_rem(right),
                };
                result.ok_or_else(|| "its numbers become too large".to_owned())
            }
        }
    }

    fn facts(&self, found: &mut Vec<Fact>) {
        match self {
            Expression::Number(_) => {}
            Expression::Fact(fact) => found.push(*fact),
            Expression::Two(left, _, right) => {
                left.facts(found);
                right.facts(found);
            }
        }
    }
}

impl Fact {
    fn value(self, asked: &Asked<'_>) -> Result<i128, String> {
        let tensor = match self.tensor {
            Tensor::Input(index) => asked.inputs.get(usize::from(index)),
            Tensor::Output => asked.outputs.first(),
        };
        let Some((_, shape)) = tensor else {
            return Err(format!("the request has no {}", self.tensor));
        };
        let rank = shape.len() as i128;
        match self.what {
            What::Rank => Ok(rank),
            What::Elements => shape
                .iter()
                .try_fold(1i128, |product, &n| product.checked_mul(i128::from(n)))
                .ok_or_else(|| "it has too many elements".to_owned()),
            What::Dimension(axis) => {
                let axis = i128::from(axis);
                let from_start = if axis < 0 { axis + rank } else { axis };
                usize::try_from(from_start)
                    .ok()
                    .and_then(|index| shape.get(index))
                    .map(|&n| i128::from(n))
                    .ok_or_else(|| {
                        format!("{} has no axis {axis}, its rank is {rank}", self.tensor)
                    })
            }
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tensor = self.tensor;
        match self.what {
            What::Rank => write!(f, "{tensor}.rank"),
            What::Elements => write!(f, "{tensor}.elems"),
            What::Dimension(axis) => write!(f, "{tensor}.dim[{axis}]"),
        }
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tensor::Input(index) => write!(f, "{}", char::from(b'a' + index)),
            Tensor::Output => f.write_str("out"),
        }
    }
}

/// Recursive descent over: sum = product {(+ | -) product}, product = value {(* | / | %) value}.
struct Parser<'t> {
    text: &'t str,
    at: usize,
}

type Parsed<T> = Result<T, (Range<usize>, String)>;

impl Parser<'_> {
    fn sum(&mut self) -> Parsed<Expression> {
        let mut left = self.product()?;
        while let Some(sign) = self.sign(&['+', '-']) {
            left = Expression::Two(Box::new(left), sign, Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Parsed<Expression> {
        let mut left = self.single()?;
        while let Some(sign) = self.sign(&['*', '/', '%']) {
            left = Expression::Two(Box::new(left), sign, Box::new(self.single()?));
        }
        Ok(left)
    }

    fn single(&mut self) -> Parsed<Expression> {
        self.skip_spaces();
        match self.rest().chars().next() {
            Some('(') => {
                self.at += 1;
                let inner = self.sum()?;
                self.expect(')')?;
                Ok(inner)
            }
            Some('-') | Some('0'..='9') => Ok(Expression::Number(self.number()?)),
            Some('a'..='z') => Ok(Expression::Fact(self.fact()?)),
            _ => Err(self.unexpected(&format!("a number or a tensor, {EXAMPLE}"))),
        }
    }

    fn fact(&mut self) -> Parsed<Fact> {
        let (name, at) = self.word();
        if name == "elems" {
            let tensor = Tensor::Output;
            let what = What::Elements;
            return Ok(Fact { tensor, what });
        }
        let tensor = match name.as_bytes() {
            b"out" => Tensor::Output,
            [letter @ b'a'..=b'h'] => Tensor::Input(letter - b'a'),
            _ => {
                let hint = did_you_mean(name, ["elems", "out"]);
                let message = format!(
                    "`{name}` is nothing here: `a` to `h` are the inputs, `out` the result, `elems` its elements{hint}"
                );
                return Err((at, message));
            }
        };
        self.expect('.')?;
        let (name, at) = self.word();
        let what = match name {
            "rank" => What::Rank,
            "elems" => What::Elements,
            "dim" => {
                self.expect('[')?;
                self.skip_spaces();
                let start = self.at;
                let axis = i32::try_from(self.number()?);
                let axis =
                    axis.map_err(|_| (start..self.at, "no tensor has that axis".to_owned()))?;
                self.expect(']')?;
                What::Dimension(axis)
            }
            _ => {
                let hint = did_you_mean(name, ["rank", "dim", "elems"]);
                let message =
                    format!("a tensor has `rank`, `dim[axis]` and `elems`, not `{name}`{hint}");
                return Err((at, message));
            }
        };
        Ok(Fact { tensor, what })
    }

    fn number(&mut self) -> Parsed<i128> {
        let start = self.at;
        let digits = self.rest().strip_prefix('-').unwrap_or(self.rest());
        let sign = self.rest().len() - digits.len();
        let count = digits
            .bytes()
            .take_while(|b| b.is_ascii_digit() || *b == b'_');
        self.at += sign + count.count();
        let text = self.text[start..self.at].replace('_', "");
        let number: Option<i64> = text.parse().ok();
        number.map(i128::from).ok_or_else(|| {
            (
                start..self.at.max(start + 1),
                "expected a whole number of 64 bits".to_owned(),
            )
        })
    }

    fn comparison(&mut self) -> Parsed<Comparison> {
        self.skip_spaces();
        let found = COMPARISONS
            .iter()
            .find(|(sign, _)| self.rest().starts_with(sign));
        let Some((sign, comparison)) = found else {
            return Err(self.unexpected("one of == != < <= > >="));
        };
        self.at += sign.len();
        Ok(*comparison)
    }

    fn word(&mut self) -> (&str, Range<usize>) {
        self.skip_spaces();
        let start = self.at;
        let letters = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        self.at += self.rest().bytes().take_while(letters).count();
        (&self.text[start..self.at], start..self.at.max(start + 1))
    }

    fn sign(&mut self, signs: &[char]) -> Option<char> {
        self.skip_spaces();
        let sign = self.rest().chars().next().filter(|c| signs.contains(c))?;
        self.at += 1;
        Some(sign)
    }

    fn expect(&mut self, wanted: char) -> Parsed<()> {
        self.skip_spaces();
        if !self.rest().starts_with(wanted) {
            return Err(self.unexpected(&format!("`{wanted}`")));
        }
        self.at += 1;
        Ok(())
    }

    fn unexpected(&self, wanted: &str) -> (Range<usize>, String) {
        let got = match self.rest().chars().next() {
            Some(c) => format!("`{c}`"),
            None => "the end".to_owned(),
        };
        let width = self.rest().chars().next().map_or(1, char::len_utf8);
        let message = format!("expected {wanted}, got {got}");
        (self.at..self.at + width, message)
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }
}

#[cfg(test)]
#[path = "condition/tests.rs"]
mod tests;
