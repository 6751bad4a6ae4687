//! What a kernel's table says about element types and device features.

use super::{
    row::{Signature, Types},
    table::Sheet,
};
use crate::diagnostic::did_you_mean;
use nx_vulkan_abi::{DType, DTypeSet, Features};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

impl Sheet<'_> {
    pub(super) fn types(&mut self, table: &DeTable<'_>) -> Types {
        let Some(value) = table.get("types") else {
            return Types::Any;
        };
        if let DeValue::String(word) = value.get_ref() {
            if word != "equal" {
                let message = "`types` is \"equal\" or a list such as [\"f32,f32->f32\"]";
                self.reader.error(value.span(), message);
            }
            return Types::Equal;
        }
        let mut list = Vec::new();
        for (text, span) in self.reader.texts(table, "types").unwrap_or_default() {
            match signature(text) {
                Ok(signature) => list.push(signature),
                Err(message) => self.reader.error(span, message),
            }
        }
        Types::Listed(list)
    }

    /// The set of types of the operands or of the results; without one, those of the signatures.
    pub(super) fn set(
        &mut self,
        table: &DeTable<'_>,
        at: &Range<usize>,
        key: &str,
        types: &Types,
        side: fn(&Signature) -> &Vec<DType>,
    ) -> Option<DTypeSet> {
        let union = |set: DTypeSet, one: DTypeSet| DTypeSet(set.0 | one.0);
        if table.get(key).is_none() {
            if let Types::Listed(list) = types {
                let types: Vec<DType> = list.iter().flat_map(side).copied().collect();
                return Some(DTypeSet::of(&types));
            }
            let message = format!("[[kernel]] needs `{key}`");
            self.reader.error(at.clone(), message);
        }
        let mut set = DTypeSet(0);
        for (name, span) in self.reader.texts(table, key)? {
            match DTypeSet::from_names(&[name]) {
                Some(one) => set = union(set, one),
                None => {
                    let known = DTypeSet::NAMED.iter().map(|set| set.0);
                    let hint = did_you_mean(name, known.chain(DType::all().map(DType::name)));
                    let message = format!("there is no type `{name}`{hint}");
                    self.reader.error(span, message);
                }
            }
        }
        Some(set)
    }

    pub(super) fn needs(&mut self, table: &DeTable<'_>) -> Features {
        let list = self.reader.texts(table, "needs").unwrap_or_default();
        list.into_iter().fold(Features::NONE, |set, (name, span)| {
            let known = Features(u64::MAX).names();
            let one = Features::from_name(name);
            if one.is_none() {
                let hint = did_you_mean(name, known);
                let message = format!("there is no device feature `{name}`{hint}");
                self.reader.error(span, message);
            }
            set.with(one.unwrap_or(Features::NONE))
        })
    }
}

/// `f32,f32->f32`
fn signature(text: &str) -> Result<Signature, String> {
    let wrong = || "expected types such as \"f32,f32->f32\"".to_owned();
    let (inputs, outputs) = text.split_once("->").ok_or_else(wrong)?;
    let side = |names: &str| {
        let names = names.split(',').map(str::trim);
        let named = |name: &str| {
            let hint = did_you_mean(name, DType::all().map(DType::name));
            DType::from_name(name).ok_or_else(|| format!("there is no type `{name}`{hint}"))
        };
        names
            .filter(|name| !name.is_empty())
            .map(named)
            .collect::<Result<Vec<DType>, String>>()
    };
    Ok((side(inputs)?, side(outputs)?)).and_then(|signature| {
        if signature.1.is_empty() {
            Err(wrong())
        } else {
            Ok(signature)
        }
    })
}
