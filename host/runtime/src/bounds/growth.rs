//! What tokens grow to when macros are expanded, counted without making them.

use super::text::{Definition, Macros, Token};

/// Most operators of a statement: the compiler recurses as deep as an expression nests.
const MAX_OPERATORS: u64 = 400_000;
/// Most operators of a text beyond those that are written in it.
const MAX_GROWTH: u64 = 1_000_000;
/// How deep blocks may nest.
const MAX_BLOCKS: i64 = 256;
/// How deep parentheses may nest.
const MAX_PARENTHESES: i64 = 4_000;
/// How deep uses of macros may nest in each other; the compiler's own limit is 200.
const MAX_USES: usize = 128;
/// Tokens that are looked at while macros are expanded, and definitions.
const MAX_STEPS: u64 = 3_000_000;
/// Names that are looked through in the time of a step.
const NAMES_A_STEP: usize = 16;

/// How deep something nests: at its end, and at its deepest place.
#[derive(Debug, Clone, Copy, Default)]
struct Depth {
    net: i64,
    peak: i64,
}

impl Depth {
    fn add(&mut self, other: Depth) {
        self.peak = self.peak.max(self.net.saturating_add(other.peak));
        self.net = self.net.saturating_add(other.net);
    }

    fn max(self, other: Depth) -> Depth {
        Depth {
            net: self.net.max(other.net),
            peak: self.peak.max(other.peak),
        }
    }

    const UP: Depth = Depth { net: 1, peak: 1 };
    const DOWN: Depth = Depth { net: -1, peak: 0 };
}

/// What tokens grow to.
#[derive(Debug, Clone, Copy, Default)]
struct Grown<'a> {
    operators: u64,
    blocks: Depth,
    parentheses: Depth,
    /// A macro with parameters that stands at the end, without its arguments.
    tail: Option<&'a str>,
}

impl<'a> Grown<'a> {
    fn add(&mut self, other: Grown<'a>) {
        self.operators = self.operators.saturating_add(other.operators);
        self.blocks.add(other.blocks);
        self.parentheses.add(other.parentheses);
        self.tail = other.tail;
    }

    fn max(self, other: Grown<'a>) -> Grown<'a> {
        Grown {
            operators: self.operators.max(other.operators),
            blocks: self.blocks.max(other.blocks),
            parentheses: self.parentheses.max(other.parentheses),
            tail: self.tail.or(other.tail),
        }
    }

    fn of(token: Token<'_>) -> Grown<'a> {
        let mut grown = Grown {
            operators: 1,
            ..Grown::default()
        };
        match token {
            Token::Name(_) | Token::Number(_) => grown.operators = 0,
            Token::Open => grown.parentheses = Depth::UP,
            Token::Close => grown.parentheses = Depth::DOWN,
            Token::Mark(b'{') => grown.blocks = Depth::UP,
            Token::Mark(b'}') => grown.blocks = Depth::DOWN,
            _ => {}
        }
        grown
    }
}

/// What a parameter stands for.
#[derive(Debug, Clone, Copy)]
struct Argument<'a> {
    grown: Grown<'a>,
    /// The one word it is, where no macro hides behind that.
    word: Option<&'a str>,
}

type Arguments<'a> = [(&'a str, Argument<'a>)];

pub(super) struct Expansion<'m, 'a> {
    macros: &'m Macros<'a>,
    /// Macros that are being expanded, which stand for themselves meanwhile.
    busy: Vec<&'a str>,
    uses: usize,
    steps: u64,
}

impl<'m, 'a> Expansion<'m, 'a> {
    pub(super) fn new(macros: &'m Macros<'a>) -> Expansion<'m, 'a> {
        Expansion {
            macros,
            busy: Vec::new(),
            uses: 0,
            steps: 0,
        }
    }

    /// Checks the text outside of definitions.
    pub(super) fn text(&mut self, code: &[Token<'a>]) -> Result<(), String> {
        let written = code.iter().map(|&token| Grown::of(token).operators);
        let most = written.sum::<u64>().saturating_add(MAX_GROWTH);
        let mut all = Grown::default();
        let (mut statement, mut at) = (0, 0);
        while let Some(&token) = code.get(at) {
            let (grown, used) = self.next(&code[at..], &[])?;
            at += used;
            all.add(grown);
            // What stands in other branches may close what it did not open.
            all.blocks.net = all.blocks.net.max(0);
            all.parentheses.net = all.parentheses.net.max(0);
            statement = match token {
                Token::Mark(b';' | b'{' | b'}') => 0,
                _ => grown.operators.saturating_add(statement),
            };
            if matches!(token, Token::Mark(b';' | b'{' | b'}')) {
                all.parentheses.net = 0;
            }
            if statement > MAX_OPERATORS {
                return Err(format!(
                    "a statement has more than {MAX_OPERATORS} operators, those of its macros included"
                ));
            }
            if all.operators > most {
                return Err(too_large());
            }
        }
        for (depth, most, what) in [
            (all.blocks, MAX_BLOCKS, "blocks"),
            (all.parentheses, MAX_PARENTHESES, "parentheses"),
        ] {
            if depth.peak > most {
                return Err(format!("{what} nest deeper than {most}"));
            }
        }
        Ok(())
    }

    /// What tokens inside of a macro or of its arguments grow to.
    fn all(&mut self, tokens: &[Token<'a>], given: &Arguments<'a>) -> Result<Grown<'a>, String> {
        let (mut all, mut at) = (Grown::default(), 0);
        while at < tokens.len() {
            let (grown, used) = self.next(&tokens[at..], given)?;
            all.add(grown);
            at += used;
        }
        Ok(all)
    }

    /// What the first of `tokens` grows to, with the arguments it takes from those after it, and how many that were.
    fn next(
        &mut self,
        tokens: &[Token<'a>],
        given: &Arguments<'a>,
    ) -> Result<(Grown<'a>, usize), String> {
        if self.uses > 0 {
            self.step(1 + given.len() / NAMES_A_STEP)?;
        }
        if tokens.get(1) == Some(&Token::Paste) {
            return self.pasted(tokens, given);
        }
        let Token::Name(name) = tokens[0] else {
            return Ok((Grown::of(tokens[0]), 1));
        };
        if let Some((_, argument)) = given.iter().find(|(parameter, _)| *parameter == name) {
            return self.continued(argument.grown, &tokens[1..], given, 1);
        }
        let (grown, used) = self.named(name, &tokens[1..], given)?;
        Ok((grown, 1 + used))
    }

    fn step(&mut self, steps: usize) -> Result<(), String> {
        self.steps = self.steps.saturating_add(steps as u64);
        match self.steps > MAX_STEPS {
            true => Err(too_large()),
            false => Ok(()),
        }
    }

    /// Goes on behind something that may end in a macro without its arguments.
    fn continued(
        &mut self,
        mut grown: Grown<'a>,
        rest: &[Token<'a>],
        given: &Arguments<'a>,
        used: usize,
    ) -> Result<(Grown<'a>, usize), String> {
        let Some(tail) = grown.tail else {
            return Ok((grown, used));
        };
        let (more, taken) = self.named(tail, rest, given)?;
        grown.add(more);
        Ok((grown, used + taken))
    }

    /// What a name grows to, and how many of the tokens behind it are its arguments.
    fn named(
        &mut self,
        name: &'a str,
        rest: &[Token<'a>],
        given: &Arguments<'a>,
    ) -> Result<(Grown<'a>, usize), String> {
        let macros = self.macros;
        let Some(definitions) = macros.get(name).filter(|_| !self.busy.contains(&name)) else {
            return Ok((Grown::default(), 0));
        };
        // A name may be defined anew as often as it is used.
        self.step(definitions.len().saturating_sub(1))?;
        self.uses += 1;
        if self.uses > MAX_USES {
            return Err(format!("macros nest deeper than {MAX_USES}"));
        }
        let mut largest: Option<(Grown<'a>, usize)> = None;
        for definition in definitions {
            let (grown, used) = self.used(name, definition, rest, given)?;
            largest = Some(match largest {
                None => (grown, used),
                Some((other, least)) => (grown.max(other), used.min(least)),
            });
        }
        self.uses -= 1;
        Ok(largest.unwrap_or_default())
    }

    fn used(
        &mut self,
        name: &'a str,
        definition: &Definition<'a>,
        rest: &[Token<'a>],
        given: &Arguments<'a>,
    ) -> Result<(Grown<'a>, usize), String> {
        let Some(parameters) = &definition.parameters else {
            let grown = self.body(name, definition, &[])?;
            return self.continued(grown, rest, given, 0);
        };
        match rest.first() {
            Some(Token::Open) => {}
            None => {
                let tail = Some(name);
                return Ok((
                    Grown {
                        tail,
                        ..Grown::default()
                    },
                    0,
                ));
            }
            // What comes may turn out to be its arguments when it is looked at again.
            Some(Token::Name(next))
                if self.uses > 1
                    && (self.macros.contains_key(next)
                        || given.iter().any(|(parameter, _)| parameter == next)) =>
            {
                return Err(format!(
                    "the macro {name} stands before {next} without its arguments"
                ));
            }
            Some(_) => return Ok((Grown::default(), 0)),
        }
        let len = group(rest);
        self.step(len)?;
        let inner = &rest[1..len];
        let inner = inner.strip_suffix(&[Token::Close]).unwrap_or(inner);
        let mut arguments = Vec::with_capacity(parameters.len());
        for (index, tokens) in split(inner).into_iter().enumerate() {
            let argument = Argument {
                grown: self.all(tokens, given)?,
                word: self.word(tokens, given),
            };
            arguments.push((parameters.get(index).copied().unwrap_or(""), argument));
        }
        let grown = self.body(name, definition, &arguments)?;
        self.continued(grown, &rest[len..], given, len)
    }

    fn body(
        &mut self,
        name: &'a str,
        definition: &Definition<'a>,
        arguments: &Arguments<'a>,
    ) -> Result<Grown<'a>, String> {
        self.busy.push(name);
        let grown = self.all(&definition.body, arguments);
        self.busy.pop();
        grown
    }

    /// The one word that tokens are, where that is sure.
    fn word(&self, tokens: &[Token<'a>], given: &Arguments<'a>) -> Option<&'a str> {
        match tokens {
            [Token::Number(word)] => Some(word),
            [Token::Name(word)] => match given.iter().find(|(parameter, _)| parameter == word) {
                Some((_, argument)) => argument.word,
                None => Some(*word).filter(|word| !self.macros.contains_key(word)),
            },
            _ => None,
        }
    }

    /// `a ## b`: the largest of the macros whose name that may be.
    fn pasted(
        &mut self,
        tokens: &[Token<'a>],
        given: &Arguments<'a>,
    ) -> Result<(Grown<'a>, usize), String> {
        let (mut parts, mut used) = (vec![tokens[0]], 1);
        while let [Token::Paste, part, ..] = tokens[used..] {
            parts.push(part);
            used += 2;
        }
        let mut grown = Grown::default();
        for part in &parts {
            let argument = given.iter().find(|(name, _)| Token::Name(name) == *part);
            grown.add(argument.map_or_else(|| Grown::of(*part), |(_, argument)| argument.grown));
        }
        grown.tail = None;
        let words: Vec<Option<&str>> = parts
            .iter()
            .map(|&part| self.word(&[part], given))
            .collect();
        let (first, last) = (words[0].unwrap_or(""), words[words.len() - 1].unwrap_or(""));
        let whole: Option<String> = words.iter().copied().collect();
        let macros = self.macros;
        let may_be = |name: &str| match &whole {
            Some(whole) => name == whole,
            None => name.starts_with(first) && name.ends_with(last),
        };
        let mut largest = Grown::default();
        let mut taken = None;
        self.step(macros.len() / NAMES_A_STEP)?;
        let names = macros.keys().copied().filter(|name| may_be(name));
        for name in names.collect::<Vec<_>>() {
            let (more, with) = self.named(name, &tokens[used..], given)?;
            largest = largest.max(more);
            taken = Some(taken.map_or(with, |least: usize| least.min(with)));
        }
        grown.add(largest);
        Ok((grown, used + taken.unwrap_or(0)))
    }
}

/// Tokens of a group in parentheses, these included; all of them where it is not closed.
fn group(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The arguments between the parentheses of a use.
fn split<'s, 'a>(inner: &'s [Token<'a>]) -> Vec<&'s [Token<'a>]> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, token) in inner.iter().enumerate() {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth -= 1,
            Token::Comma if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    parts
}

fn too_large() -> String {
    format!("its macros grow to more than {MAX_GROWTH} operators")
}
