//! How much less exact requests may be that say so.

use nx_vulkan_ops::{Attr, DType, find, tolerance::Growth};

#[test]
fn relaxed_kernels_may_lose_half_of_the_digits_where_something_is_computed() {
    let of = |op: &str, dtype| find(op).unwrap().tolerance(&[dtype, dtype], dtype);
    let dot = of("dot", DType::F32);
    let relaxed = dot.relaxed(DType::F32);
    assert_eq!(
        (dot.lost, relaxed.lost, relaxed.growth),
        (0, 13, dot.growth)
    );
    assert_eq!(relaxed.ulp, dot.ulp.max(1) << 13);
    assert_eq!(of("dot", DType::F64).relaxed(DType::F64).lost, 29);
    assert_eq!(of("dot", DType::F16).relaxed(DType::F16).lost, 1);
    let at = |precision: &str, dtype| {
        let attrs = [Attr::text("precision", precision)];
        find("dot").unwrap().allows(&[dtype, dtype], dtype, &attrs)
    };
    let high = at("high", DType::F32);
    assert_eq!((high.lost, high.ulp), (8, dot.ulp.max(1) << 8));
    for precision in ["default", "highest"] {
        assert_eq!(at(precision, DType::F32), dot);
    }
    for dtype in [DType::F64, DType::F16, DType::BF16, DType::S32, DType::C64] {
        assert_eq!(at("high", dtype), of("dot", dtype));
    }
    for (op, dtype) in [("dot", DType::S32), ("negate", DType::F32)] {
        let strict = find(op).unwrap().tolerance(&[dtype, dtype], dtype);
        assert_eq!(strict.relaxed(dtype), strict, "{op}");
    }
    assert_eq!(of("negate", DType::F32).growth, Growth::None);
}
