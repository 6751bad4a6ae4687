//! `[[op]]` and `[[deny]]` as data, and whether they apply to a request.

use super::{
    asked::{Asked, features_missing},
    condition::Condition,
    driver::DriverRange,
    spelling::is_pack_id,
};
use nx_vulkan_abi::{DType, DTypeSet, DeviceInfo, Features};
use semver::{Version, VersionReq};
use std::ops::Range;

/// One `[[op]]`.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) at: Range<usize>,
    pub(super) name: String,
    pub(super) name_at: Range<usize>,
    /// One of them has to match; none: every request does.
    pub(super) types: Vec<Types>,
    /// All have to be met.
    pub(super) shape: Vec<Condition>,
    pub(super) needs: Features,
    pub(super) uses: Vec<(Use, Range<usize>)>,
}

/// One entry of a rule's `dtype`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Types {
    /// One of the types occurs in the request: `f16`, `float`.
    Occurs(DTypeSet),
    /// The inputs and outputs are of these types, in order: `f16,f16->f32`.
    Signature(Vec<DTypeSet>, Vec<DTypeSet>),
}

/// One entry of a rule's `use`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Use {
    Kernel(String, String),
    Pack(String),
    Host,
    AnyPack,
}

/// One `[[deny]]`.
#[derive(Debug, Clone)]
pub(super) struct Denial {
    pub(super) at: Range<usize>,
    pub(super) pack: String,
    pub(super) op: Option<(String, Range<usize>)>,
    pub(super) version: Option<VersionReq>,
    pub(super) device: Option<DeviceFilter>,
    pub(super) reason: String,
}

/// `device = { vendor, name, driver }` of a denial.
#[derive(Debug, Clone, Default)]
pub(super) struct DeviceFilter {
    pub(super) vendor: Option<u32>,
    /// A part of the device's name, in lower case.
    pub(super) name: Option<String>,
    pub(super) driver: Option<DriverRange>,
}

impl Rule {
    /// Why the rule does not decide about a request of an op that it names; `None` when it does.
    pub(super) fn unfit(&self, asked: &Asked<'_>) -> Option<String> {
        if !self.types.is_empty() && !self.types.iter().any(|types| types.match_(asked)) {
            return Some(format!("`dtype` does not have {}", signature(asked)));
        }
        self.shape
            .iter()
            .find_map(|condition| condition.unmet(asked))
            .or_else(|| features_missing(self.needs, asked.device.features))
    }

    pub(super) fn names(&self, op: &str) -> bool {
        glob(&self.name, op)
    }

    /// Whether every request that `later` decides about is decided about by this rule already.
    pub(super) fn covers(&self, later: &Rule) -> bool {
        let types = self.types.is_empty()
            || !later.types.is_empty()
                && later
                    .types
                    .iter()
                    .all(|own| self.types.iter().any(|types| types.covers(own)));
        let shape = self
            .shape
            .iter()
            .all(|condition| later.shape.contains(condition));
        types && shape && later.needs.has(self.needs) && glob(&self.name, &later.name)
    }
}

impl Types {
    /// Reads a type, a set of types, or a signature. The message of a mistake comes with the word it is about.
    pub(super) fn parse(text: &str) -> Result<Types, TypesMistake<'_>> {
        let Some((inputs, outputs)) = text.split_once("->") else {
            return if text.contains(',') {
                Err(TypesMistake::NoArrow)
            } else {
                Ok(Types::Occurs(types(text.trim())?))
            };
        };
        let side = |side| -> Result<Vec<DTypeSet>, TypesMistake<'_>> {
            match str::trim(side) {
                "" => Ok(Vec::new()),
                side => side.split(',').map(|name| types(name.trim())).collect(),
            }
        };
        let (inputs, outputs) = (side(inputs)?, side(outputs)?);
        if outputs.is_empty() {
            return Err(TypesMistake::NoOutput);
        }
        Ok(Types::Signature(inputs, outputs))
    }

    fn match_(&self, asked: &Asked<'_>) -> bool {
        let side = |sets: &[DTypeSet], tensors: &[(DType, &[u64])]| {
            sets.len() == tensors.len()
                && sets
                    .iter()
                    .zip(tensors)
                    .all(|(set, tensor)| set.has(tensor.0))
        };
        match self {
            Types::Occurs(set) => {
                let mut tensors = asked.inputs.iter().chain(asked.outputs);
                tensors.any(|tensor| set.has(tensor.0))
            }
            Types::Signature(inputs, outputs) => {
                side(inputs, asked.inputs) && side(outputs, asked.outputs)
            }
        }
    }

    fn covers(&self, later: &Types) -> bool {
        let within = |inner: &DTypeSet, outer: &DTypeSet| inner.0 & !outer.0 == 0;
        let side = |outer: &[DTypeSet], inner: &[DTypeSet]| {
            outer.len() == inner.len() && inner.iter().zip(outer).all(|(i, o)| within(i, o))
        };
        match (self, later) {
            (Types::Occurs(outer), Types::Occurs(inner)) => within(inner, outer),
            (Types::Occurs(outer), Types::Signature(inputs, outputs)) => inputs
                .iter()
                .chain(outputs)
                .any(|inner| within(inner, outer)),
            (Types::Signature(..), Types::Occurs(_)) => false,
            (Types::Signature(i, o), Types::Signature(inputs, outputs)) => {
                side(i, inputs) && side(o, outputs)
            }
        }
    }
}

/// What is wrong with an entry of `dtype`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypesMistake<'t> {
    /// No type or set has that name.
    Unknown(&'t str),
    /// There is a list of types and no `->`.
    NoArrow,
    /// Nothing comes after `->`.
    NoOutput,
}

/// A type, or a set of types.
pub(super) fn types(name: &str) -> Result<DTypeSet, TypesMistake<'_>> {
    DTypeSet::from_names(&[name]).ok_or(TypesMistake::Unknown(name))
}

impl Use {
    /// Reads `pack`, `pack/kernel`, `host` or `*`.
    pub(super) fn parse(text: &str) -> Option<Use> {
        match text.split_once('/') {
            None if text == "host" => Some(Use::Host),
            None if text == "*" => Some(Use::AnyPack),
            None if is_pack_id(text) => Some(Use::Pack(text.to_owned())),
            Some((pack, kernel)) if is_pack_id(pack) && !kernel.is_empty() => {
                Some(Use::Kernel(pack.to_owned(), kernel.to_owned()))
            }
            _ => None,
        }
    }
}

impl Denial {
    /// Whether it forbids that version of its pack to run a request.
    pub(super) fn applies(&self, version: &Version, asked: &Asked<'_>) -> bool {
        let op = self.op.as_ref();
        op.is_none_or(|(pattern, _)| glob(pattern, asked.op))
            && self
                .version
                .as_ref()
                .is_none_or(|range| range.matches(version))
            && self
                .device
                .as_ref()
                .is_none_or(|device| device.matches(asked.device))
    }
}

impl DeviceFilter {
    fn matches(&self, device: &DeviceInfo<'_>) -> bool {
        let name = || device.name.as_str().to_lowercase();
        self.vendor.is_none_or(|vendor| vendor == device.vendor)
            && self.name.as_ref().is_none_or(|part| name().contains(part))
            && self
                .driver
                .as_ref()
                .is_none_or(|range| range.matches(device))
    }
}

/// `f16,f16->f32`
fn signature(asked: &Asked<'_>) -> String {
    let side = |tensors: &[(DType, &[u64])]| {
        let names: Vec<&str> = tensors.iter().map(|tensor| tensor.0.name()).collect();
        names.join(",")
    };
    format!("{}->{}", side(asked.inputs), side(asked.outputs))
}

/// Whether `name` is `pattern`, in which `*` stands for any text.
pub(super) fn glob(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inner = name
        .strip_prefix(start)
        .and_then(|name| name.strip_suffix(end));
    // The leftmost place is as good as any, so nothing is tried twice.
    let mut left = inner;
    for part in middle.split('*') {
        left = left
            .and_then(|text| text.split_once(part))
            .map(|(_, rest)| rest);
    }
    left.is_some()
}
