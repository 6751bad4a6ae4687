//! Plans as data.

use crate::{describe, plan};
use nx_vulkan_abi::{DType, InputAs, Refusal};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, cpu, defined, files};

const PACK: Pack = Pack { describe, plan };

fn argsort(dtype: DType, shape: &[u64], axis: i64) -> Ask {
    let (x, out) = (Tensor::new(dtype, shape), Tensor::new(DType::S32, shape));
    PACK.ask("argsort", &[x], &[out])
        .ints("axis", &[axis])
        .text("direction", "asc")
}

fn top(shape: &[u64], k: u64) -> Ask {
    let kept = [&shape[..shape.len() - 1], &[k]].concat();
    let outs = [DType::F32, DType::S32].map(|dtype| Tensor::new(dtype, &kept));
    PACK.ask("top_k", &[Tensor::new(DType::F32, shape)], &outs)
        .ints("k", &[k as i64])
}

#[test]
fn short_lines_share_a_workgroup() {
    let plan = argsort(DType::F32, &[1000, 8], 1).plan().unwrap();
    assert_eq!(files(&plan), ["short.comp"]);
    assert_eq!(
        (plan.steps[0].groups, defined(&plan, 0, "ENTRIES")),
        ([8, 1, 1], "1024")
    );
    let plan = argsort(DType::F32, &[3, 4096], 1).plan().unwrap();
    assert_eq!(
        (plan.steps[0].groups, defined(&plan, 0, "ENTRIES")),
        ([3, 1, 1], "4096")
    );
    assert_eq!(
        argsort(DType::F32, &[0, 3], 1).plan().unwrap().steps.len(),
        0
    );
}

#[test]
fn a_long_line_takes_three_dispatches_for_each_byte() {
    for dtype in [DType::U8, DType::BF16, DType::S32, DType::F64] {
        let plan = argsort(dtype, &[2, 1 << 20], 1).plan().unwrap();
        assert_eq!(plan.steps.len() as u64, 3 * dtype.size(), "{dtype}");
    }
}

#[test]
fn few_of_many_are_chosen_first() {
    let few = top(&[64, 128_256], 50).plan().unwrap();
    assert_eq!(files(&few), ["choose.comp", "short.comp"]);
    assert_eq!(defined(&few, 0, "FEW"), "128");
    // Also of lines that fit shared memory, where that is faster: not on a CPU, nor for many of a line or short ones.
    let short = top(&[4673, 2522], 7);
    assert_eq!(files(&short.plan().unwrap()), ["choose.comp", "short.comp"]);
    assert_eq!(defined(&short.plan().unwrap(), 0, "TILE"), "4096");
    for other in [
        top(&[40, 1000], 7).on(cpu()),
        top(&[40, 511], 1),
        top(&[40, 1000], 126),
    ] {
        assert_eq!(files(&other.plan().unwrap()), ["short.comp"]);
    }
    let many = top(&[3, 1 << 20], 1000).plan().unwrap();
    assert_eq!(files(&many).len(), 5, "{:?}", files(&many));
    assert_eq!(defined(&many, 0, "FEW"), "");
    let most = top(&[3, 1 << 20], 5000).plan().unwrap();
    assert_eq!(files(&most)[0], "count.comp");
}

#[test]
fn long_lines_in_a_bad_order_are_asked_for_in_theirs() {
    let mut ask = argsort(DType::F32, &[10, 10_000], 1);
    ask.inputs[0] = ask.inputs[0].clone().strided(&[3, 30], 0);
    let asked = Refusal::InputsAs(vec![InputAs::new(0, DType::F32)]);
    assert_eq!(ask.plan(), Err(asked));
}

#[test]
fn what_is_no_sort_is_refused() {
    assert!(
        argsort(DType::F32, &[5], 1)
            .reason()
            .contains("no such axis")
    );
    assert!(top(&[5], 6).reason().contains("does not give"));
    let mut other = argsort(DType::F32, &[5], 0);
    other.outputs[0] = Tensor::new(DType::S32, &[4]);
    assert!(other.reason().contains("does not give"));
}
