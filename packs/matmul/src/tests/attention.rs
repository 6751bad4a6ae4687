//! Plans of attention: how it is cut up, where operands lie, and what is declined.

use super::{ask::PACK, cores::h200};
use crate::attention::{problem::Problem, shape::Shape};
use nx_vulkan_abi::{DType, DeviceInfo, Features, InputAs, Refusal};
use nx_vulkan_pack_kit::testing::{Ask, Tensor, cpu, defined, files, without, words};

/// What stands before the places of operands among the push constants.
const SIZES: usize = 7;

fn device() -> DeviceInfo<'static> {
    DeviceInfo {
        push_bytes: 256,
        ..h200()
    }
}

fn halves(shape: &[u64]) -> Tensor {
    Tensor::new(DType::BF16, shape)
}

/// Attention of operands with these shapes.
fn ask(q: &[u64], k: &[u64], v: &[u64]) -> Ask {
    let result = [&q[..q.len() - 1], &v[v.len() - 1..]].concat();
    PACK.ask(
        "attention_bf16",
        &[halves(q), halves(k), halves(v)],
        &[halves(&result)],
    )
    .on(device())
}

/// The same of heads, with the weights of a mask of that shape added to scores.
fn masked(heads: u64, rows: u64, keys: u64, mask: Tensor) -> Ask {
    let shape = |extent| [2, heads, extent, 64];
    let mut ask = ask(&shape(rows), &shape(keys), &shape(keys));
    ask.inputs.push(mask);
    ask.text("scores", "multiply(x, 0.125); add(%0, i3)")
}

#[test]
fn few_rows_are_shared_by_more_subgroups() {
    let cut = |heads: u64, rows: u64, keys: u64| {
        let shape = |extent| [heads, extent, 64];
        let plan = ask(&shape(rows), &shape(keys), &shape(keys))
            .plan()
            .unwrap();
        assert_eq!(files(&plan), ["attention.comp"]);
        let defined = |name| defined(&plan, 0, name).parse::<u32>().unwrap();
        let groups = plan.steps[0].groups[0];
        (
            ["ROW_TILES", "SIDES", "PARTS"].map(defined),
            groups,
            words(&plan, 0)[6],
        )
    };
    assert_eq!(cut(12, 128, 128), ([1, 1, 4], 96, 32));
    assert_eq!(cut(96, 128, 128), ([1, 1, 2], 768, 64));
    assert_eq!(cut(32, 512, 512), ([2, 2, 2], 256, 256));
    assert_eq!(cut(8, 4, 4096), ([1, 1, 8], 8, 512));
    // As many parts as have keys.
    assert_eq!(cut(8, 4, 80), ([1, 1, 3], 8, 32));
    assert_eq!(cut(8, 4, 5), ([1, 1, 1], 8, 32));
}

#[test]
fn operands_are_read_where_they_lie() {
    // Heads beside each other, as a product of the hidden state leaves them; three rows of queries for each key head.
    let q = halves(&[2, 4, 3, 50, 64]).strided(&[50 * 768, 192, 64, 768, 1], 0);
    let k = halves(&[2, 4, 77, 64]).strided(&[77 * 256, 64, 256, 1], 8);
    let v = halves(&[2, 4, 77, 40]).strided(&[0, 40, -160, 1], 160 * 76);
    let mut ask = ask(&[2, 4, 3, 50, 64], &[2, 4, 77, 64], &[2, 4, 77, 40]);
    ask.inputs = vec![q, k, v];
    let plan = ask.plan().unwrap();
    assert_eq!(words(&plan, 0)[..5], [150, 77, 8, 5, 10]);
    let step = |elements: i64| (elements / 8) as u32;
    let expected = [
        // Offset, batches and rows of q.
        [0, step(50 * 768), 4, step(192)].to_vec(),
        vec![step(64), 50, step(768)],
        // Offset, batches and keys of k, and of v.
        vec![1, step(77 * 256), 4, step(64), step(256)],
        vec![step(160 * 76), 0, 4, step(40), step(-160)],
        // Batches and rows of the result.
        vec![step(150 * 40), 1, 0, step(40), 1, 0],
    ];
    assert_eq!(words(&plan, 0)[SIZES..], expected.concat());
    let whole = ["WHOLE_DEPTH", "WHOLE_WIDTH", "D_PAIRS", "V_BLOCKS"];
    assert_eq!(
        whole.map(|name| defined(&plan, 0, name)),
        ["1", "0", "2", "1"]
    );

    // Rows that are no whole loads are copied, if that helps.
    ask.inputs[1] = halves(&[2, 4, 77, 64]).strided(&[77 * 260, 65, 260, 1], 0);
    let copied = Err(Refusal::InputsAs(vec![InputAs::new(1, DType::BF16)]));
    assert_eq!(ask.plan(), copied);
    let odd = self::ask(&[5, 36], &[7, 36], &[7, 64]);
    assert!(odd.reason().contains("no whole loads of 8"));
}

#[test]
fn what_scores_need_is_bound_behind_the_result() {
    let row = halves(&[2, 1, 1, 128]);
    let plan = masked(12, 128, 128, row).plan().unwrap();
    assert_eq!(plan.steps[0].args[4].index, 3);
    assert_eq!(words(&plan, 0)[SIZES + 23..], [0, 128, 0, 1, 12, 0]);
    assert_eq!(defined(&plan, 0, "E_RUN"), "4");
    assert_eq!(defined(&plan, 0, "E_FIRST"), "4");
    // Rows of an odd number of keys are read one by one.
    let odd = masked(12, 128, 77, halves(&[128, 77])).plan().unwrap();
    assert_eq!(defined(&odd, 0, "E_RUN"), "1");

    let wide = masked(12, 128, 128, Tensor::new(DType::F64, &[128]));
    assert!(wide.reason().contains("more than f32"));
    let mut unused = masked(12, 128, 128, halves(&[128]));
    unused = unused.text("scores", "multiply(x, 0.125)");
    assert!(unused.reason().contains("nothing uses i3"));
    unused.texts.clear();
    assert!(unused.reason().contains("without scores, got 4"));
    let mut small = masked(12, 128, 128, halves(&[128]));
    small.device.push_bytes = 128;
    assert!(small.reason().contains("the device takes 128 bytes"));
}

#[test]
fn what_it_is_not_for_is_declined() {
    let plain = ask(&[3, 50, 64], &[3, 77, 64], &[3, 77, 64]);
    for missing in [
        Features::COOPMAT,
        Features::COOPMAT_ORDER,
        Features::SUBGROUP_SHUFFLE,
        Features::MEMORY_MODEL,
    ] {
        let ask = plain.clone().on(without(device(), missing));
        assert!(
            matches!(ask.plan(), Err(Refusal::Decline(_))),
            "{missing:?}"
        );
    }
    assert!(matches!(
        plain.clone().on(cpu()).plan(),
        Err(Refusal::Decline(_))
    ));
    let mut wide = plain.clone();
    let tensors = wide.inputs.iter_mut().chain(&mut wide.outputs);
    tensors.for_each(|tensor| tensor.dtype = DType::F32);
    assert!(wide.reason().contains("do not take f32"));
    let mut other = plain.clone();
    other.kernel = "attention".to_owned();
    assert!(other.reason().contains("multiplied as bf16"));
    let long = ask(&[50, 136], &[77, 136], &[77, 64]);
    assert!(long.reason().contains("more than 128"));
    let none = ask(&[3, 50, 64], &[3, 0, 64], &[3, 0, 64]);
    assert!(none.reason().contains("sums of nothing"));
    let empty = ask(&[3, 0, 64], &[3, 77, 64], &[3, 77, 64]);
    assert!(empty.plan().unwrap().steps.is_empty());

    // A workgroup for each subgroup where that is all that the device takes, and none where it is not.
    let mut small = plain.clone();
    small.device.shared_bytes = 1 << 10;
    assert_eq!(defined(&small.plan().unwrap(), 0, "PARTS"), "1");
    small.device.max_invocations = 16;
    assert!(small.reason().contains("more than the device takes"));
}

#[test]
fn every_key_is_in_one_part() {
    let problem = |keys| {
        let ask = ask(&[4, 64, 64], &[4, keys, 64], &[4, keys, 64]);
        ask.given("attention", |request| Problem::of(request).unwrap())
    };
    for keys in (1..300).chain([1023, 1024, 1025, 70_000]) {
        let shape = Shape::of(&problem(keys), &device()).unwrap();
        let last = u64::from(shape.parts - 1) * u64::from(shape.chunk);
        assert!(
            last < keys && keys <= last + u64::from(shape.chunk),
            "{keys}"
        );
        assert!(shape.chunk.is_multiple_of(32));
    }
}

#[test]
fn results_are_stored_in_the_order_that_is_wanted() {
    let mut heads = ask(&[2, 12, 50, 64], &[2, 12, 77, 64], &[2, 12, 77, 64]);
    heads.outputs = vec![halves(&[2, 50, 12, 64])];
    let heads = heads.ints("output_permutation", &[0, 2, 1, 3]);
    let plan = heads.plan().unwrap();
    // Batches of sentences and heads, then rows, in units of 8 elements.
    let expected = [50 * 768 / 8, 12, 64 / 8, 768 / 8, 1, 0];
    assert_eq!(words(&plan, 0)[SIZES + 17..], expected);

    let mut across = heads.clone();
    across.outputs = vec![halves(&[2, 12, 64, 50])];
    let across = across.ints("output_permutation", &[0, 1, 3, 2]);
    let why = "no whole rows";
    let mut once = across.clone();
    once.ints.remove(0);
    assert!(once.reason().contains(why), "{}", once.reason());
    let mut wrong = heads.clone();
    wrong.ints = vec![("output_permutation", vec![0, 2, 1, 9])];
    assert!(wrong.reason().contains("[0, 2, 1, 9] for 4 axes"));
    wrong.ints = vec![("output_permutation", vec![0, 0, 1, 3])];
    assert!(wrong.reason().contains("[0, 0, 1, 3] for 4 axes"));
}
