//! Constants of a module, and what they are once it is specialized: array lengths and workgroup sizes are made of them.

use super::{opcode, places::Places};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Constant {
    /// An integer of 32 bits or a boolean.
    Literal(u32),
    /// The same, with a default that a specialization constant of that id may replace.
    Special(u32, Option<u32>),
    /// An operation on constants, with its operands.
    Operation(u32, Vec<u32>),
    Composite(Vec<u32>),
    /// A number of another type.
    Other,
}

/// Every constant, in the order of definition, which is that of use.
#[derive(Debug)]
pub(super) struct Constants {
    list: Vec<Constant>,
    places: Places,
    /// The values without specialization.
    defaults: Values,
}

/// What each constant is, where it is a known integer or boolean.
#[derive(Debug)]
pub(super) struct Values(Vec<Option<u32>>);

impl Constants {
    pub(super) fn new(bound: usize) -> Constants {
        Constants {
            list: Vec::new(),
            places: Places::new(bound),
            defaults: Values(Vec::new()),
        }
    }

    /// Adds a constant whose id is below the bound.
    pub(super) fn add(&mut self, id: u32, constant: Constant) {
        let value = self.evaluate(&self.defaults, &constant, &[]);
        self.defaults.0.push(value);
        self.places.set(id, self.list.len());
        self.list.push(constant);
    }

    /// Gives back the memory that only reading a module takes.
    pub(super) fn shrink(&mut self) {
        self.places.shrink();
    }

    /// The value without specialization.
    pub(super) fn default(&self, id: u32) -> Option<u32> {
        self.value(&self.defaults, id)
    }

    /// The value that no specialization can change.
    pub(super) fn literal(&self, id: u32) -> Option<u32> {
        match self.list.get(self.places.get(id)?)? {
            Constant::Literal(value) => Some(*value),
            _ => None,
        }
    }

    /// The parts of a composite.
    pub(super) fn parts(&self, id: u32) -> Option<&[u32]> {
        match self.list.get(self.places.get(id)?)? {
            Constant::Composite(parts) => Some(parts),
            _ => None,
        }
    }

    /// The values with these specialization constants. One pass, since operands come first.
    pub(super) fn values(&self, special: &[(u32, u32)]) -> Values {
        let mut values = Values(Vec::with_capacity(self.list.len()));
        for constant in &self.list {
            let value = self.evaluate(&values, constant, special);
            values.0.push(value);
        }
        values
    }

    fn evaluate(
        &self,
        values: &Values,
        constant: &Constant,
        special: &[(u32, u32)],
    ) -> Option<u32> {
        match constant {
            Constant::Literal(value) => Some(*value),
            Constant::Special(default, id) => {
                let given = id.and_then(|id| special.iter().find(|given| given.0 == id));
                Some(given.map_or(*default, |given| given.1))
            }
            Constant::Operation(opcode, operands) => self.result(values, *opcode, operands),
            Constant::Composite(_) | Constant::Other => None,
        }
    }

    pub(super) fn value(&self, values: &Values, id: u32) -> Option<u32> {
        *values.0.get(self.places.get(id)?)?
    }

    fn result(&self, values: &Values, opcode: u32, operands: &[u32]) -> Option<u32> {
        if opcode == opcode::COMPOSITE_EXTRACT {
            let [composite, index] = operands else {
                return None;
            };
            let part = self.parts(*composite)?.get(*index as usize)?;
            return self.value(values, *part);
        }
        let value = |n: usize| self.value(values, *operands.get(n)?);
        let a = value(0)?;
        // SNegate, Not, LogicalNot, Select.
        match opcode {
            126 => return Some(a.wrapping_neg()),
            200 => return Some(!a),
            168 => return Some(u32::from(a == 0)),
            169 => return value(if a != 0 { 1 } else { 2 }),
            _ => {}
        }
        let b = value(1)?;
        let (signed_a, signed_b) = (a as i32, b as i32);
        Some(match opcode {
            128 => a.wrapping_add(b),
            130 => a.wrapping_sub(b),
            132 => a.wrapping_mul(b),
            134 => a.checked_div(b)?,
            135 => signed_a.checked_div(signed_b)? as u32,
            137 => a.checked_rem(b)?,
            138 => signed_a.checked_rem(signed_b)? as u32,
            194 => a.checked_shr(b)?,
            195 => signed_a.checked_shr(b)? as u32,
            196 => a.checked_shl(b)?,
            166 | 197 => a | b,
            198 => a ^ b,
            167 | 199 => a & b,
            164 | 170 => u32::from(a == b),
            165 | 171 => u32::from(a != b),
            172 => u32::from(a > b),
            173 => u32::from(signed_a > signed_b),
            174 => u32::from(a >= b),
            175 => u32::from(signed_a >= signed_b),
            176 => u32::from(a < b),
            177 => u32::from(signed_a < signed_b),
            178 => u32::from(a <= b),
            179 => u32::from(signed_a <= signed_b),
            _ => return None,
        })
    }
}
