//! Products and softmaxes that stay as they are.

use super::{AXON, MEANS, SCORES, Steps, bert, is_made};
use nx_vulkan_ops::{Attr, DType, Program, Step, Value, fusion::attention};

/// Rows that choose which keys count by numbers of that type, which f32 may not hold.
#[test]
fn numbers_are_compared_as_exactly_as_before() {
    let made = |dtype: DType| {
        let (mut steps, [scores, ..]) = bert(DType::BF16, AXON);
        steps.steps.truncate(1);
        let mut masks = vec![steps.inputs[3].clone(); 2];
        masks.iter_mut().for_each(|mask| mask.spec.0 = dtype);
        // Inputs come first: the product and what follows move up by two.
        steps.inputs.extend(masks);
        let scores = scores + 2;
        let text = "equal(i1, i2):u8; select(%0, i0, -1.0:T):T; reduce_max(%1):T; subtract(%1, %2):T; exp(%3):T; sum(%4):T; \
                    divide(%4, %5):T";
        let weights = steps.rows(&[scores, 4, 5], SCORES, text);
        let means = steps.dot(&[weights, 2], MEANS, [2, 3, 2], "");
        let inputs = steps.inputs;
        let program = Program::new(inputs.len(), steps.steps, [means]).unwrap();
        is_made(&attention(program, &inputs).unwrap())
    };
    for dtype in [DType::U8, DType::S16, DType::BF16, DType::F32] {
        assert!(made(dtype), "{dtype}");
    }
    for dtype in [DType::S32, DType::U32, DType::S64, DType::F64] {
        assert!(!made(dtype), "{dtype}");
    }
    // Nor are numbers that only f64 has.
    let wide = "as_type(i0):f64; reduce_max(%0):f64; subtract(%0, %1):f64; exp(%2):f64; sum(%3):f64; divide(%3, %4):f64; \
                as_type(%5):T";
    let (steps, [.., means]) = bert(DType::BF16, wide);
    let program = Program::new(4, steps.steps, [means]).unwrap();
    assert!(!is_made(&attention(program, &steps.inputs).unwrap()));
}

#[test]
fn all_else_stays() {
    let stays = |steps: Steps, results: &[Value]| {
        let count = steps.steps.len();
        let [_, after] = steps.passed(results);
        assert!(
            !is_made(&after) && after.steps().len() == count,
            "{after:?}"
        );
    };
    // Types whose products are no faster as one.
    for dtype in [DType::F32, DType::F64] {
        let (steps, [.., means]) = bert(dtype, AXON);
        stays(steps, &[means]);
    }
    // What is read twice, or a result.
    for read in 0..2 {
        let (steps, values) = bert(DType::BF16, AXON);
        stays(steps, &[values[2], values[read]]);
        let (mut steps, values) = bert(DType::BF16, AXON);
        let other = steps.request("negate", &[values[read]], SCORES, vec![]);
        stays(steps, &[values[2], other]);
    }
    // No softmax, or not of the whole.
    for text in [
        "reduce_max(i0):T; subtract(i0, %0):T; exp(%1):T; sum(i0):T; divide(%2, %3):T",
        "reduce_max(i0):T; subtract(i0, %0):T; exp(%1):T; sum(%2):T; divide(2:s32, %3):T; multiply(%4, %2):T",
        "reduce_max(i0):T; subtract(i0, %0):T; exp(%1):T; sum(%2):T; subtract(%2, %3):T",
        "reduce_min(i0):T; subtract(i0, %0):T; exp(%1):T; sum(%2):T; divide(%2, %3):T",
        "reduce_max(i0):T; subtract(%0, i0):T; exp(%1):T; sum(%2):T; divide(%2, %3):T",
        "negate(i0):T; reduce_max(%0):T; subtract(i0, %1):T; exp(%2):T; sum(%3):T; divide(%3, %4):T",
        "sum(i0):T; subtract(i0, %0):T; reduce_max(%1):T; subtract(%1, %2):T; exp(%3):T; sum(%4):T; divide(%4, %5):T",
        "exp(i0):T; sum(%0):T; divide(%0, %1):T",
    ] {
        let (steps, [.., means]) = bert(DType::F16, text);
        let program = Program::new(4, steps.steps, [means]).unwrap();
        let after = attention(program, &steps.inputs).unwrap();
        assert!(!is_made(&after), "{text}");
    }
    // Products of other axes, with an epilogue at the end, or as exact as somebody asks for.
    let changed = |place: usize, attr: Attr| {
        let (mut steps, [.., means]) = bert(DType::F16, AXON);
        let Step::Request(request) = &mut steps.steps[place] else {
            unreachable!()
        };
        request.attrs.to_mut().retain(|own| own.name != attr.name);
        request.attrs.to_mut().push(attr);
        let program = Program::new(4, steps.steps, [means]).unwrap();
        !is_made(&attention(program, &steps.inputs).unwrap())
    };
    assert!(changed(2, Attr::text("epilogue", "exp(x)")));
    assert!(changed(0, Attr::text("precision", "high")));
    assert!(changed(2, Attr::text("precision", "highest")));
    assert!(!changed(2, Attr::text("precision", "default")));
    assert!(changed(0, Attr::ints("contract_b", [2, 3])));
    assert!(changed(0, Attr::ints("batch_b", [0])));
    // Rows that a view puts together in between.
    let mut steps = Steps::on(DType::F16, &[&[4, 8], &[6, 8], &[6, 3]]);
    let scores = steps.dot(&[0, 1], &[4, 6], [0, 1, 1], "");
    let merged = steps.reshape(scores, &[2, 12]);
    let weights = steps.rows(&[merged], &[2, 12], AXON);
    let apart = steps.reshape(weights, &[4, 6]);
    let means = steps.dot(&[apart, 2], &[4, 3], [0, 1, 0], "");
    stays(steps, &[means]);
    // Rows of another tensor as well.
    let mut steps = Steps::on(DType::F16, &[&[1, 8], &[6, 8], &[6, 3], &[4, 6]]);
    let scores = steps.dot(&[0, 1], &[1, 6], [0, 1, 1], "");
    let text = "add(i0, i1):T; reduce_max(%0):T; subtract(%0, %1):T; exp(%2):T; sum(%3):T; divide(%3, %4):T";
    let weights = steps.rows(&[scores, 3], &[4, 6], text);
    let means = steps.dot(&[weights, 2], &[4, 3], [0, 1, 0], "");
    stays(steps, &[means]);
}
