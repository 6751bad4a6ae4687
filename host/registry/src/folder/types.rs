//! What a kernel's table says about element types.

use super::{
    row::{Signature, Types},
    schema,
    table::Sheet,
};
use crate::diagnostic::did_you_mean;
use nx_vulkan_abi::{DType, DTypeSet};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

impl Sheet<'_> {
    pub(super) fn types(&mut self, table: &DeTable<'_>) -> Types {
        let Some(value) = table.get("types") else {
            return Types::Any;
        };
        match value.get_ref() {
            DeValue::String(word) if word == "equal" => return Types::Equal,
            DeValue::Array(_) => self.reader.check_value(value, &schema::SIGNATURES),
            _ => {
                let message = "`types` is \"equal\" or a list such as [\"f32,f32->f32\"]";
                self.error(value.span(), message);
            }
        }
        let mut list = Vec::new();
        if value.get_ref().as_array().is_some_and(|all| all.is_empty()) {
            self.error(value.span(), "`types` is empty: no request would fit");
        }
        for (text, span) in self.reader.texts(table, "types") {
            match signature(text) {
                Ok(signature) => list.push(signature),
                Err(message) => self.error(span, message),
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
        if !table.contains_key(key)
            && let Types::Listed(list) = types
        {
            let types: Vec<DType> = list.iter().flat_map(side).copied().collect();
            return Some(DTypeSet::of(&types));
        }
        if !self.has(table, at, key) {
            return None;
        }
        let names = self.reader.texts(table, key);
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        let set = DTypeSet::from_names(&names)?;
        let listed = match types {
            Types::Listed(list) => list.iter().flat_map(side).collect(),
            _ => Vec::new(),
        };
        if let Some(value) = table.get(key)
            && let Some(stranger) = listed.into_iter().find(|dtype| !set.has(**dtype))
        {
            let message = format!("`types` has {stranger}, which is not among these");
            self.error(value.span(), message);
        }
        Some(set)
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
        match names.clone().eq([""]) {
            true => Ok(Vec::new()),
            false => names.map(named).collect::<Result<Vec<DType>, String>>(),
        }
    };
    Ok((side(inputs)?, side(outputs)?)).and_then(|signature| {
        if signature.1.is_empty() {
            Err(wrong())
        } else {
            Ok(signature)
        }
    })
}
