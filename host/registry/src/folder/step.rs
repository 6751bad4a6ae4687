//! The steps of a kernel in `pack.toml`: one stands in the kernel's own table, several in `[[kernel.step]]`.

use super::{
    plan::usual_access,
    row::{Binding, Bound, Number, Push, Step, Value},
    schema::{self, MAX_ENTRIES},
    table::Sheet,
    text::Text,
};
use crate::{
    diagnostic::did_you_mean,
    expression::{Expression, Mistake, tensor},
};
use nx_vulkan_abi::Access;
use nx_vulkan_abi::plan::MAX_BINDINGS;
use std::ops::Range;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

impl Sheet<'_> {
    pub(super) fn steps(
        &mut self,
        at: Range<usize>,
        table: &DeTable<'_>,
        scratch: usize,
    ) -> Option<Vec<Step>> {
        if !table.contains_key("step") {
            for key in ["shader", "groups"] {
                self.has(table, &at, key);
            }
            let step = self.step(table, Vec::new(), scratch);
            return self.in_order(vec![(at, step)]);
        }
        let of_steps = schema::STEP.keys.iter().map(|key| key.name);
        for key in of_steps.filter(|key| *key != "defines") {
            if let Some(value) = table.get(key) {
                let message = format!("`{key}` belongs into each [[kernel.step]]");
                self.error(value.span(), message);
            }
        }
        let shared = self.defines(table);
        let tables = self.reader.list_of_tables(table, "step");
        if tables.is_empty() || tables.len() > MAX_ENTRIES {
            let message = format!("a kernel has 1 to {MAX_ENTRIES} steps");
            self.error(at, message);
        }
        let mut steps = Vec::new();
        for (at, table) in tables.into_iter().take(MAX_ENTRIES) {
            steps.push((at, self.step(table, shared.clone(), scratch)));
        }
        self.in_order(steps)
    }

    /// All steps, if each was read; says which repetitions make no sense.
    fn in_order(&mut self, steps: Vec<(Range<usize>, Option<Step>)>) -> Option<Vec<Step>> {
        let mut repeats = 0..0;
        for (place, (at, step)) in steps.iter().enumerate() {
            let Some(step) = step else { continue };
            let counting = step.push.iter().filter(|push| push.counts()).count();
            let bindings = step.bindings.iter().flatten();
            let counts = bindings.filter(|binding| binding.counts).count();
            let nests = step.repeat.is_some() && repeats.contains(&place);
            if let Some((own, _)) = &step.repeat {
                repeats = place..place + *own as usize;
            }
            let message = if counts > 1 {
                "workgroup counts are read from one binding of a step"
            } else if nests {
                "steps that repeat neither nest nor overlap"
            } else if repeats.end > steps.len() {
                "more steps repeat than there are"
            } else if counting > 1 {
                "one push constant of a step may grow with repetitions"
            } else if counting == 1 && !repeats.contains(&place) {
                "a push constant grows with repetitions, and the step does not repeat"
            } else {
                continue;
            };
            self.error(at.clone(), message);
        }
        steps.into_iter().map(|(_, step)| step).collect()
    }

    fn step(
        &mut self,
        table: &DeTable<'_>,
        mut defines: Vec<(String, Text)>,
        scratch: usize,
    ) -> Option<Step> {
        let shader = self.shader(table);
        defines.extend(self.defines(table));
        let bindings = table.get("bindings").map(|_| self.bindings(table, scratch));
        let push: Vec<_> = self
            .list(table, "push", MAX_ENTRIES)
            .into_iter()
            .map(|value| self.push(value))
            .collect();
        let groups = self.groups(table);
        let constants = self.constants(table);
        let subgroup_size = table.get("subgroup_size");
        let subgroup_size = subgroup_size.map(|value| self.expression(value));
        let repeat = self.repeat(table);
        Some(Step {
            shader: shader?,
            defines,
            bindings: bindings.map_or(Some(None), |list| list.map(Some))?,
            push: push.into_iter().collect::<Option<_>>()?,
            groups: groups?,
            constants,
            subgroup_size: subgroup_size.map_or(Some(None), |size| size.map(Some))?,
            repeat: repeat?,
        })
    }

    /// `None` where it is wrong.
    fn repeat(&mut self, table: &DeTable<'_>) -> Option<Option<(u32, Expression)>> {
        let Some(repeat) = self.reader.table(table, "repeat") else {
            return Some(None);
        };
        let steps = self.reader.integer(repeat, "steps").unwrap_or(1);
        let times = self.expression(repeat.get("times")?)?;
        Some(Some((steps, times)))
    }

    fn shader(&mut self, table: &DeTable<'_>) -> Option<String> {
        let (shader, span) = self.reader.text(table, "shader")?;
        if !self.files.contains(&shader) {
            let hint = did_you_mean(shader, self.files.iter().copied());
            let message = format!("the pack has no file `{shader}`{hint}");
            self.error(span, message);
        }
        Some(shader.to_owned())
    }

    /// In the order in which they are written.
    fn defines(&mut self, table: &DeTable<'_>) -> Vec<(String, Text)> {
        let Some(rows) = self.entries(table, "defines") else {
            return Vec::new();
        };
        let mut defines = Vec::new();
        for (name, value) in rows {
            if !is_macro(name.get_ref()) {
                let message = "a define is called like a GLSL macro: `NAME` or `NAME(x)`";
                self.error(name.span(), message);
            }
            let text = match value.get_ref() {
                DeValue::String(text) => Text::parse(text, &self.names)
                    .map_err(|mistake| self.inside(value, text, mistake))
                    .ok(),
                _ => self.expression(value).map(Text::from),
            };
            if let Some(text) = text {
                defines.push((name.span().start, name.get_ref().to_string(), text));
            }
        }
        defines.sort_by_key(|define| define.0);
        let named = defines.into_iter().map(|(_, name, text)| (name, text));
        named.collect()
    }

    /// A table of so many entries as a list may have; says so where it has more.
    fn entries<'t>(&mut self, table: &'t DeTable<'_>, key: &str) -> Option<&'t DeTable<'t>> {
        let rows = self.reader.table(table, key)?;
        if rows.len() > MAX_ENTRIES {
            let span = table.get(key)?.span();
            self.error(span, format!("`{key}` has at most {MAX_ENTRIES} entries"));
        }
        Some(rows)
    }

    fn bindings(&mut self, table: &DeTable<'_>, scratch: usize) -> Option<Vec<Binding>> {
        let mut bindings = Vec::new();
        for value in self.list(table, "bindings", MAX_BINDINGS) {
            let DeValue::String(text) = value.get_ref() else {
                let message = "a binding is a string such as \"a\" or \"write scratch0\"";
                self.error(value.span(), message);
                continue;
            };
            match binding(text, scratch) {
                Ok(binding) => bindings.push(Some(binding)),
                Err(message) => {
                    self.error(value.span(), message);
                    bindings.push(None);
                }
            }
        }
        bindings.into_iter().collect()
    }

    fn push(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Push> {
        if let DeValue::Table(table) = value.get_ref() {
            self.reader.check(table, value.span(), &schema::COUNTING);
            let from = self.expression(table.get("from")?)?;
            let by = self.expression(table.get("by")?)?;
            return Some(Push {
                number: Number::U32,
                value: Value::Counting(from, by),
            });
        }
        let DeValue::String(text) = value.get_ref() else {
            let expression = self.expression(value)?;
            return Some(Push {
                number: Number::U32,
                value: Value::Integer(expression),
            });
        };
        let typed = Number::NAMES.iter().find_map(|(name, number)| {
            let rest = text.strip_prefix(name)?;
            rest.starts_with(' ').then_some((*number, name.len(), rest))
        });
        let (number, at, rest) = typed.unwrap_or((Number::U32, 0, text));
        let float = rest.trim().parse::<f32>().ok().filter(|v| v.is_finite());
        let attribute = rest.trim().strip_prefix("attr.").filter(|name| {
            let ordinary = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
            !name.is_empty() && name.bytes().all(ordinary)
        });
        let value = match (number, float, attribute) {
            (Number::F32, Some(float), _) => Ok(Value::Float(float)),
            (Number::F32, _, Some(name)) => Ok(Value::Attribute(name.to_owned())),
            _ => Expression::parse_with(rest, &self.names)
                .map(Value::Integer)
                .map_err(|wrong| {
                    let span = wrong.span.start + at..wrong.span.end + at;
                    self.inside(value, text, Mistake { span, ..wrong });
                }),
        };
        Some(Push {
            number,
            value: value.ok()?,
        })
    }

    /// One to three counts; those left out are 1.
    fn groups(&mut self, table: &DeTable<'_>) -> Option<[Expression; 3]> {
        let list = self.list(table, "groups", 3);
        if list.is_empty() {
            if let Some(groups) = table.get("groups")
                && groups.get_ref().is_array()
            {
                self.error(groups.span(), "`groups` has one to three counts");
            }
            return None;
        }
        let counts: Option<Vec<Expression>> = list
            .into_iter()
            .map(|value| self.expression(value))
            .collect();
        let mut counts = counts?.into_iter();
        let one = || Expression::parse("1").ok();
        let mut next = || counts.next().or_else(one);
        Some([next()?, next()?, next()?])
    }

    fn constants(&mut self, table: &DeTable<'_>) -> Vec<(u32, Expression)> {
        let Some(rows) = self.entries(table, "constants") else {
            return Vec::new();
        };
        let mut constants = Vec::new();
        for (id, value) in rows {
            let expression = self.expression(value);
            // Spelt in one way, so that none is there twice.
            let number = id.get_ref().parse::<u32>().ok();
            match (
                number.filter(|n| n.to_string() == *id.get_ref()),
                expression,
            ) {
                (None, _) => {
                    let message =
                        "a specialization constant is named by its constant_id, such as `3`";
                    self.error(id.span(), message);
                }
                (Some(id), Some(expression)) => constants.push((id, expression)),
                _ => {}
            }
        }
        constants
    }
}

impl From<Expression> for Text {
    fn from(expression: Expression) -> Text {
        Text::number(expression)
    }
}

/// `a`, `out`, `scratch0`, with `read`, `write` or `update` in front where the usual access is another, or `counts` where
/// the workgroup counts are read from it.
fn binding(text: &str, scratch: usize) -> Result<Binding, String> {
    let counts = text.starts_with("counts ");
    let words = [
        ("read ", Access::READ),
        ("counts ", Access::READ),
        ("write ", Access::WRITE),
        ("update ", Access::READ_WRITE),
    ];
    let stated = words
        .into_iter()
        .find_map(|(word, access)| Some((access, text.strip_prefix(word)?)));
    let (access, name) = stated.map_or((None, text), |(access, name)| (Some(access), name));
    let name = name.trim();
    let numbered = name.strip_prefix("scratch").map(|rest| match rest {
        "" => Ok(0),
        rest => rest.parse::<u32>(),
    });
    let buffer = match numbered {
        Some(Ok(index)) if (index as usize) < scratch => Bound::Scratch(index),
        Some(_) => {
            return Err(format!(
                "there are {scratch} scratch buffers, and no `{name}`"
            ));
        }
        None => Bound::Tensor(tensor(name).ok_or_else(|| {
            format!("`{name}` is no buffer; those are `a`, `b`, …, `out` and `scratch`")
        })?),
    };
    let access = access.unwrap_or(usual_access(buffer));
    if access != Access::READ && usual_access(buffer) == Access::READ {
        return Err(format!("operand `{name}` is read only"));
    }
    Ok(Binding {
        buffer,
        access,
        counts,
    })
}

/// `NAME` or `NAME(x, y)`.
fn is_macro(name: &str) -> bool {
    let word = |text: &str| {
        let ordinary = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        text.bytes().next().is_some_and(|b| !b.is_ascii_digit()) && text.bytes().all(ordinary)
    };
    match name.split_once('(') {
        None => word(name),
        Some((name, rest)) => {
            let parameters = rest.strip_suffix(')').map(|list| list.split(','));
            word(name) && parameters.is_some_and(|mut list| list.all(|p| word(p.trim())))
        }
    }
}
