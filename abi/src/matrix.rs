//! The cooperative matrices of a device, which [`DeviceInfo::facts`] carry as lists of integers.

use crate::{Attr, AttrKind, DType, DeviceInfo};

/// Who holds a cooperative matrix together, as Vulkan counts scopes. Open integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixScope(pub i64);

impl MatrixScope {
    /// A workgroup, with [`crate::Features::COOPMAT2`].
    pub const WORKGROUP: MatrixScope = MatrixScope(2);
    /// A subgroup.
    pub const SUBGROUP: MatrixScope = MatrixScope(3);
}

/// A product that cooperative matrices of a device do: `result = a · b + c`, where `a` is m x k, `b` k x n and the others
/// m x n.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matrix {
    /// Extents m, n and k; of a flexible product what each has to be a multiple of.
    pub extents: [u32; 3],
    /// Element type of `a`.
    pub a: DType,
    /// Element type of `b`.
    pub b: DType,
    /// Element type of `c`.
    pub c: DType,
    /// Element type of the result.
    pub result: DType,
    /// Who holds the matrices.
    pub scope: MatrixScope,
    /// Whether sums of integers saturate.
    pub saturates: bool,
    /// Invocations of the workgroup, which a flexible product at [`MatrixScope::WORKGROUP`] is for; else 0.
    pub invocations: u32,
}

impl Matrix {
    /// Name of the fact with the products of `VK_KHR_cooperative_matrix`.
    pub const FACT: &'static str = "matrices";
    /// Name of the fact with those of `VK_NV_cooperative_matrix2`, whose extents are multiples of what is listed.
    pub const FLEXIBLE_FACT: &'static str = "flexible_matrices";
    /// Integers of a product in a fact.
    pub const INTS: usize = 10;

    /// The integers that stand for it in a fact, in the order of the fields.
    pub fn to_ints(self) -> [i64; Matrix::INTS] {
        let [m, n, k] = self.extents.map(i64::from);
        let [a, b, c, result] = [self.a, self.b, self.c, self.result].map(|t| t.0.into());
        let (saturates, invocations) = (self.saturates.into(), self.invocations.into());
        [
            m,
            n,
            k,
            a,
            b,
            c,
            result,
            self.scope.0,
            saturates,
            invocations,
        ]
    }

    /// The product that these integers stand for; `None` where one is out of range.
    pub fn from_ints(ints: &[i64; Matrix::INTS]) -> Option<Matrix> {
        let [m, n, k, a, b, c, result, scope, saturates, invocations] = *ints;
        let number = |value: i64| u32::try_from(value).ok();
        let dtype = |value: i64| number(value).map(DType);
        Some(Matrix {
            extents: [number(m)?, number(n)?, number(k)?],
            a: dtype(a)?,
            b: dtype(b)?,
            c: dtype(c)?,
            result: dtype(result)?,
            scope: MatrixScope(scope),
            saturates: saturates != 0,
            invocations: number(invocations)?,
        })
    }
}

impl<'a> DeviceInfo<'a> {
    /// Integers of the fact of that name; empty where the host states none.
    pub fn fact(&self, name: &str) -> &'a [i64] {
        let facts = self.facts.as_slice().iter();
        let mut found = facts.filter(|fact| fact.name == name && fact.kind == AttrKind::INTS);
        found
            .next()
            .map_or(&[], |fact: &Attr<'a>| fact.ints.as_slice())
    }

    /// The products of [`crate::Features::COOPMAT`], as the driver lists them.
    pub fn matrices(&self) -> impl Iterator<Item = Matrix> + 'a {
        listed(self.fact(Matrix::FACT))
    }

    /// The products of [`crate::Features::COOPMAT2`], as the driver lists them.
    pub fn flexible_matrices(&self) -> impl Iterator<Item = Matrix> + 'a {
        listed(self.fact(Matrix::FLEXIBLE_FACT))
    }

    /// Whether a subgroup multiplies matrices of these types and extents (m, n, k), with sums in the type of the result
    /// that do not saturate.
    pub fn multiplies(&self, [a, b, result]: [DType; 3], extents: [u32; 3]) -> bool {
        self.matrices().any(|own| {
            own.extents == extents
                && [own.a, own.b, own.c, own.result] == [a, b, result, result]
                && own.scope == MatrixScope::SUBGROUP
                && !own.saturates
        })
    }
}

/// What is no product is left out.
fn listed<'a>(ints: &'a [i64]) -> impl Iterator<Item = Matrix> + 'a {
    let rows = ints.as_chunks::<{ Matrix::INTS }>().0.iter();
    rows.filter_map(Matrix::from_ints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RSlice, RStr};

    #[test]
    fn products_are_found_by_types_extents_and_scope() {
        let [f16, f32, bf16] = [DType::F16, DType::F32, DType::BF16];
        let own = Matrix {
            extents: [16, 8, 32],
            a: f16,
            b: f16,
            c: f32,
            result: f32,
            scope: MatrixScope::SUBGROUP,
            saturates: false,
            invocations: 0,
        };
        let others = [
            Matrix {
                extents: [32; 3],
                saturates: true,
                ..own
            },
            Matrix {
                extents: [64; 3],
                scope: MatrixScope::WORKGROUP,
                invocations: 256,
                ..own
            },
            Matrix {
                extents: [48; 3],
                c: f16,
                ..own
            },
        ];
        let mut ints: Vec<i64> = [own]
            .iter()
            .chain(&others)
            .flat_map(|m| m.to_ints())
            .collect();
        // A row of nonsense, and the start of one.
        ints.extend([-1; Matrix::INTS]);
        ints.extend([16, 16]);
        let facts = [Attr {
            name: RStr::from_str(Matrix::FACT),
            kind: AttrKind::INTS,
            spare: 0,
            ints: RSlice::from_slice(&ints),
            floats: RSlice::EMPTY,
            text: RStr::from_str(""),
        }];
        let device = DeviceInfo {
            facts: RSlice::from_slice(&facts),
            ..DeviceInfo::default()
        };
        assert_eq!(
            device.matrices().collect::<Vec<_>>(),
            [[own].as_slice(), &others].concat()
        );
        assert!(device.multiplies([f16, f16, f32], [16, 8, 32]));
        for (types, extents) in [
            ([f16, f16, f32], [16, 16, 32]),
            ([f16, f16, f16], [16, 8, 32]),
            ([bf16, bf16, f32], [16, 8, 32]),
            ([f16, f16, f32], [32; 3]),
            ([f16, f16, f32], [64; 3]),
            ([f16, f16, f32], [48; 3]),
        ] {
            assert!(!device.multiplies(types, extents), "{types:?} {extents:?}");
        }
        assert_eq!(device.flexible_matrices().count(), 0);
        assert_eq!(DeviceInfo::default().matrices().count(), 0);
    }
}
