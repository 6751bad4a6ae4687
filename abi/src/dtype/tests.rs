//! The table of element types against the rules that it follows.

use super::*;

#[test]
fn every_row_stands_at_its_code_and_has_its_name() {
    for (code, row) in (1..).zip(TYPES) {
        assert_eq!(row.dtype, DType(code), "{}", row.name);
        assert_eq!(DType::from_name(row.name), Some(row.dtype));
        assert!(DTypeSet::ALL.has(row.dtype), "{}", row.name);
    }
    assert_eq!(DTypeSet::ALL.0.count_ones() as usize, TYPES.len());
}

#[test]
fn the_sets_hold_the_types_of_their_class_that_are_computed_with() {
    for row in TYPES {
        let set = match row.class {
            Class::Unsigned => DTypeSet::UNSIGNED,
            Class::Signed => DTypeSet::SIGNED,
            Class::Float => DTypeSet::FLOAT,
            Class::Complex => DTypeSet::COMPLEX,
        };
        assert_eq!(set.has(row.dtype), row.glsl.is_some(), "{}", row.name);
        assert_eq!(DTypeSet::NUMBER.has(row.dtype), row.glsl.is_some());
    }
}

#[test]
fn registers_are_types_of_the_same_class_that_stay_what_they_are() {
    for row in TYPES {
        let Some(glsl) = &row.glsl else { continue };
        let register = glsl.register.row().unwrap();
        assert_eq!(register.class, row.class, "{}", row.name);
        assert_eq!(register.glsl.as_ref().unwrap().load, "", "{}", row.name);
        assert_eq!(row.dtype.register(), register.dtype);
    }
    assert_eq!(DType::BF16.register(), DType::F32);
    assert_eq!(DType(200).register(), DType(200));
}

#[test]
fn epsilons_are_those_of_the_formats() {
    let epsilons = [
        (DType::F64, f64::EPSILON),
        (DType::C128, f64::EPSILON),
        (DType::F32, f64::from(f32::EPSILON)),
        (DType::F16, 1.0 / 1024.0),
        (DType::BF16, 1.0 / 128.0),
        (DType::F8, 0.25),
        (DType::U8, 1.0),
    ];
    for (dtype, epsilon) in epsilons {
        assert_eq!(dtype.epsilon(), epsilon, "{dtype}");
    }
}

/// What Nx.Type.merge gives, but for f16 with bf16, of which neither holds the other's values.
#[test]
fn types_merge_as_in_nx() {
    use DType as D;
    let all = [
        (D::S8, D::S64, D::S64),
        (D::S8, D::U8, D::S16),
        (D::S16, D::U8, D::S16),
        (D::S8, D::U16, D::S32),
        (D::S32, D::U8, D::S32),
        (D::S8, D::U32, D::S64),
        (D::S8, D::U64, D::S64),
        (D::U64, D::F32, D::F32),
        (D::S64, D::BF16, D::BF16),
        (D::F32, D::BF16, D::F32),
        (D::F64, D::BF16, D::F64),
        (D::F16, D::C64, D::C64),
        (D::F64, D::C64, D::C128),
        (D::S64, D::C64, D::C64),
        (D::C128, D::C64, D::C128),
        (D::F16, D::BF16, D::F32),
    ];
    for (a, b, merged) in all {
        assert_eq!(a.merge(b), merged, "{a} {b}");
        assert_eq!(b.merge(a), merged, "{b} {a}");
    }
    assert!(D::all().all(|dtype| dtype.merge(dtype) == dtype));
}

#[test]
fn complex_numbers_are_made_of_floats() {
    assert_eq!(DType::C64.part(), DType::F32);
    assert_eq!(DType::C128.part(), DType::F64);
    assert_eq!(DType::U16.part(), DType::U16);
}

#[test]
fn an_unknown_type_has_no_size_and_is_in_no_set() {
    assert_eq!(DType(99).size(), 0);
    assert!(!DTypeSet::ALL.has(DType(99)));
    assert_eq!(DTypeSet::of(&[DType(99)]), DTypeSet(0));
    assert!(!DType(0).is_known());
}
