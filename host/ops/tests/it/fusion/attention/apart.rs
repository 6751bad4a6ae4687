//! Softmaxes beside which their rows make something else.

use super::*;

const SOFTMAX: &str =
    "reduce_max(%2):T; subtract(%2, %3):T; exp(%4):T; sum(%5):T; divide(%5, %6):T";

/// T5's first layers: rows of a softmax that also make a bias, and another layer's scores, which read that before the means.
/// Gives what the second layer's means are too.
fn t5(before: &str, results: &str) -> (Steps, [Value; 2]) {
    let shapes = [HEADS[0], HEADS[1], HEADS[2], SCORES, HEADS[3]];
    let mut steps = Steps::on(DType::BF16, &shapes);
    let scores = steps.dot(&[0, 1], SCORES, [2, 3, 3], "");
    let text = format!("{before}; {SOFTMAX}; {results}").replace('T', "bf16");
    let made = vec![(DType::BF16, SCORES.to_vec()); 2];
    let attrs = vec![Attr::text("expression", &text)];
    let rows = Request::new("fused_rows", vec![4, 3, scores], made, attrs);
    let bias = steps.push(rows.into());
    let next = steps.dot(&[0, 1, bias], SCORES, [2, 3, 3], "add(x, i2)");
    let means = steps.dot(&[bias + 1, 2], MEANS, [2, 3, 2], "");
    let weights = steps.rows(&[next], SCORES, AXON);
    let last = steps.dot(&[weights, 2], MEANS, [2, 3, 2], "");
    let sum = steps.request("add", &[means, last], MEANS, vec![]);
    (steps, [bias, sum])
}

#[test]
fn a_bias_that_others_read_is_made_by_itself() {
    let (steps, [_, sum]) = t5(
        "greater(i0, 0:s32):u8; select(%0, i1, -3.0:T):T; add(i2, %1):T",
        "(%1, %7)",
    );
    let [_, after] = steps.passed(&[sum]);
    assert_eq!(
        shown(&after),
        [
            "fused  of [4, 3]",
            "attention add(x, i3) of [0, 1, 2, 5]",
            "attention add(x, i3) of [0, 1, 2, 5]",
            "add  of [6, 7]",
        ]
    );
    let Step::Request(bias) = &after.steps()[0] else {
        unreachable!()
    };
    let expected = "greater(i0, 0:s32):u8; select(%0, i1, -3.0:bf16):bf16";
    assert_eq!(text(&bias.attrs, "expression"), Some(expected));
    // It is there before it is read, and stands for the rows that it was made by.
    assert_eq!(after.stands_for(0).to_vec(), [1]);
    assert_eq!(after.stands_for(1).to_vec(), [0, 1, 3]);
}

#[test]
fn what_is_made_beside_the_scores_is_by_itself_as_well() {
    // Nothing of it is the scores', or a part of what is.
    for (before, expected, scores) in [
        (
            "negate(i0):T; multiply(%0, i1):T; add(i2, i0):T",
            "negate(i0):bf16; multiply(%0, i1):bf16",
            "add(x, i3)",
        ),
        (
            "negate(i0):T; multiply(%0, i1):T; add(i2, %0):T",
            "negate(i0):bf16; multiply(%0, i1):bf16",
            "negate(i3); add(x, %0)",
        ),
    ] {
        let (steps, [_, sum]) = t5(before, "(%1, %7)");
        let [_, after] = steps.passed(&[sum]);
        let shown = shown(&after);
        assert_eq!(shown[0], "fused  of [4, 3]");
        assert_eq!(shown[1], format!("attention {scores} of [0, 1, 2, 4]"));
        let Step::Request(made) = &after.steps()[0] else {
            unreachable!()
        };
        assert_eq!(text(&made.attrs, "expression"), Some(expected));
    }
}

#[test]
fn what_is_made_of_scores_or_sums_stays_with_them() {
    for (before, results) in [
        (
            "negate(i1):T; multiply(%0, i0):T; add(i2, %1):T",
            "(%2, %7)",
        ),
        (
            "negate(i1):T; multiply(%0, i0):T; add(i2, %1):T",
            "(%4, %7)",
        ),
        ("sum(i1):T; add(i0, %0):T; add(i2, %1):T", "(%1, %7)"),
    ] {
        let (steps, [bias, sum]) = t5(before, results);
        let program = Program::new(5, steps.steps, [sum, bias]).unwrap();
        let after = attention(program, &steps.inputs).unwrap();
        let ops: Vec<&str> = after.steps().iter().map(Step::op).collect();
        let first = ["dot", "fused_rows", "dot", "attention", "add"];
        assert_eq!(ops, first, "{before} {results}");
    }
}
