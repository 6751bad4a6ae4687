//! The replies of kernels, also to hostile requests.

use super::*;
use nx_vulkan_abi::Dispatch;

#[test]
fn a_plan_has_what_the_table_says() {
    let table = kernel(
        "let = { wide = 64 }\n\
         scratch = [\"8 * elems\", 4]\n\
         defines = { WIDE = \"{wide}\", \"F(x)\" = \"{{{a.storage} {out.type}}}\" }\n\
         [[kernel.step]]\nshader = \"k.comp\"\nbindings = [\"a\", \"write scratch\"]\n\
         push = [\"a.offset\", \"u64 elems\", \"i32 -a.rank\", \"f32 0.5\", \"f32 attr.k\"]\n\
         groups = [\"ceil(elems / wide)\", 2]\n\
         [[kernel.step]]\nshader = \"other.comp\"\nbindings = [\"read scratch0\", \"update scratch1\", \"out\"]\n\
         groups = [1]\nconstants = { 3 = \"wide + 1\" }\nsubgroup_size = \"device.subgroup_size\"\n\
         defines = { LAST = 1 }\n",
    );
    let input = (DType::F16, &[10, 10][..], None, 7);
    let reply = ask(
        &table.unwrap(),
        &[input],
        &[f32(&[100])],
        &[ints("k", &[3])],
    );
    assert_eq!(reply.outcome, Outcome::PLAN, "{}", reply.message);
    let plan = reply.plan;
    assert_eq!(plan.scratch.as_slice(), [800, 4]);
    let (first, second) = (&plan.steps[0], &plan.steps[1]);
    assert_eq!((first.groups, second.groups), ([2, 2, 1], [1, 1, 1]));
    let scratch = |index, access| BufArg::scratch(index, access);
    assert_eq!(
        first.args.as_slice(),
        [BufArg::input(0), scratch(0, Access::WRITE)]
    );
    let expected = [
        scratch(0, Access::READ),
        scratch(1, Access::READ_WRITE),
        BufArg::output(0),
    ];
    assert_eq!(second.args.as_slice(), expected);
    // A u64 starts at a multiple of 8.
    let mut push = vec![
        7, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, 254, 255, 255, 255,
    ];
    push.extend(0.5f32.to_le_bytes());
    push.extend(3f32.to_le_bytes());
    assert_eq!(first.push.as_slice(), push);
    let defines: Vec<String> = plan.shaders[0]
        .defines
        .iter()
        .map(|d| format!("{} {}", d.name, d.value))
        .collect();
    assert!(
        defines.contains(&"A_STORAGE uint16_t".to_owned()),
        "{defines:?}"
    );
    assert!(
        defines.contains(&"R_STORAGE float".to_owned()),
        "{defines:?}"
    );
    assert_eq!(
        defines[defines.len() - 2..],
        ["WIDE 64", "F(x) {uint16_t f32}"]
    );
    assert_eq!(plan.shaders[1].defines.last().unwrap().name, "LAST");
    assert_eq!(plan.shaders[1].subgroup_size, 32);
    assert_eq!((second.spec[0].id, second.spec[0].value), (3, 65));
    assert_eq!((first.shader, second.shader), (0, 1));
}

#[test]
fn operands_that_a_kernel_cannot_take_are_asked_for_in_order() {
    let step = "shader = \"k.comp\"\ngroups = [1]\n";
    let asked = |lines: &str, input: Layout<'_>| {
        let reply = ask(
            &kernel(&format!("{step}{lines}")).unwrap(),
            &[input],
            &[f32(&[6])],
            &[],
        );
        match reply.outcome {
            Outcome::PLAN => None,
            _ => Some(reply.inputs_as.to_vec()),
        }
    };
    let copy = Some(vec![InputAs::new(0, DType::F32)]);
    let transposed = (DType::F32, &[2, 3][..], Some(&[1, 2][..]), 0);
    assert_eq!(asked("", transposed), copy);
    assert_eq!(asked("contiguous = false", transposed), None);
    // A kernel that never reads the offset would read the wrong elements.
    let shifted = (DType::F32, &[6][..], None, 3);
    assert_eq!(asked("", shifted), copy);
    assert_eq!(asked("contiguous = false", shifted), copy);
    assert_eq!(asked("push = [\"a.offset\"]", shifted), None);
    for named in [
        "let = { x = \"a.offset\" }\npush = [\"x + 1\"]",
        "let = { m = \"a.offset\", n = 1 }\npush = [\"m + n\"]",
    ] {
        assert_eq!(asked(named, shifted), None);
    }
    assert_eq!(asked("", f32(&[6])), None);
}

#[test]
fn requests_that_a_table_does_not_fit_are_declined_with_the_reason() {
    let step = "shader = \"k.comp\"\n";
    let (f32x6, big) = (f32(&[6]), f32(&[1 << 40]));
    let half = (DType::F16, &[6][..], None, 0);
    let double = (DType::F64, &[6][..], None, 0);
    let huge = f32(&[u64::MAX, u64::MAX, 3]);
    let one = "groups = [1]\n";
    let cases: &[(&str, Layout<'_>, Layout<'_>, &str)] = &[
        (
            "groups = [\"elems\"]",
            f32x6,
            big,
            "`elems` is 1099511627776, and the device takes 0 to 65535",
        ),
        (
            "groups = [1, \"1 - elems\"]",
            f32x6,
            f32x6,
            "`1 - elems` is -5, and",
        ),
        (
            "groups = [1]\npush = [\"elems\"]",
            f32x6,
            big,
            "`elems` is 1099511627776, which u32 does not hold",
        ),
        (
            "groups = [1]\npush = [\"i32 elems * 1000000000\"]",
            f32x6,
            f32x6,
            "which i32 does not hold",
        ),
        (
            "groups = [1]\npush = [\"u64 -1\"]",
            f32x6,
            f32x6,
            "`-1` is -1, which u64 does not hold",
        ),
        (
            "groups = [1]\nconstants = { 0 = -1 }",
            f32x6,
            f32x6,
            "`-1` is -1, which u32",
        ),
        (
            "groups = [1]\nscratch = [\"elems - 6\"]",
            f32x6,
            f32x6,
            "is 0, which is no size",
        ),
        (
            "groups = [\"elems\"]",
            f32x6,
            huge,
            "`elems`: its numbers become too large",
        ),
        (
            "groups = [1]\ntypes = \"equal\"",
            half,
            f32x6,
            "it takes operands and results of one type",
        ),
        (
            "groups = [1]\ntypes = [\"f32,f32->f32\"]",
            f32x6,
            f32x6,
            "it does not take these types together",
        ),
        (one, double, f32x6, "f64 needs fp64, int64"),
        (
            "groups = [1]\nwhen = [\"elems > 6\"]",
            f32x6,
            f32x6,
            "`elems > 6` does not hold",
        ),
        (
            "groups = [1]\nwhen = [{ check = \"a.rank == 2\", reason = \"only matrices\" }]",
            f32x6,
            f32x6,
            "only matrices",
        ),
        (
            "groups = [1]\nbindings = [\"b\", \"out\"]",
            f32x6,
            f32x6,
            "the request has no b",
        ),
        (one, f32(&[0]), f32x6, "operand 0 is empty"),
        (
            "groups = [1]\npush = [\"f32 attr.alpha\"]",
            f32x6,
            f32x6,
            "the request has no attribute `alpha`",
        ),
        (
            "groups = [1]\ndefines = { X = \"{a.storage}\" }",
            (DType::C128, &[6], None, 0),
            f32x6,
            "c128 needs fp64",
        ),
    ];
    for (lines, input, output, reason) in cases {
        let table = kernel(&format!("{step}{lines}")).unwrap();
        let reply = ask(&table, &[*input], &[*output], &[]);
        assert_eq!(reply.outcome, Outcome::DECLINE, "{lines}");
        assert!(reply.message.contains(reason), "{lines}: {}", reply.message);
    }
    let table = kernel(&format!("{step}{one}push = [{}]", "1,".repeat(40))).unwrap();
    let reply = ask(&table, &[f32x6], &[f32x6], &[]);
    assert!(
        reply.message.contains("160 bytes of push constants"),
        "{}",
        reply.message
    );
}

#[test]
fn steps_repeat_as_often_as_an_expression_says() {
    let step = |bindings: &str, more: &str| {
        format!(
            "[[kernel.step]]\nshader = \"k.comp\"\ngroups = [9]\nbindings = [{bindings}]\n{more}\n"
        )
    };
    let table = kernel(&format!(
        "scratch = [12]\n{}{}{}",
        step("\"a\", \"write out\"", ""),
        step(
            "\"write scratch\"",
            "repeat = { steps = 2, times = \"elems - 6\" }\npush = [7, { from = 1, by = -2 }]"
        ),
        step("\"counts scratch\", \"update out\"", ""),
    ));
    let table = table.unwrap();
    let plan = ask(&table, &[f32(&[10])], &[f32(&[10])], &[]).plan;
    let ranges: Vec<_> = plan.steps.iter().map(Dispatch::repetition).collect();
    assert_eq!(ranges, [None, Some((2, 4)), None]);
    assert_eq!(plan.steps[1].counter(), Some((1, -2i32 as u32)));
    assert_eq!(plan.steps[1].push.as_slice(), [7, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(
        plan.steps[2].args[0],
        BufArg::scratch(0, Access::READ).counts()
    );

    let none = ask(&table, &[f32(&[6])], &[f32(&[6])], &[]).plan;
    assert_eq!((none.steps.len(), none.steps[0].repetition()), (1, None));
    let reply = ask(&table, &[f32(&[5])], &[f32(&[5])], &[]);
    assert_eq!(reply.outcome, Outcome::DECLINE);
    assert_eq!(reply.message, "`elems - 6` is -1, which u32 does not hold");

    // What the host would take for a broken plan.
    let reply = ask(&table, &[f32(&[8198])], &[f32(&[8198])], &[]);
    assert_eq!(reply.outcome, Outcome::DECLINE);
    let many = "16385 dispatches, and a plan has 16384 at most";
    assert_eq!(reply.message, many);
    let most = ask(&table, &[f32(&[8197])], &[f32(&[8197])], &[]);
    assert_eq!(most.outcome, Outcome::PLAN);
    let table = kernel(&format!(
        "scratch = [\"elems\"]\n{}{}",
        step("\"a\", \"write scratch\"", ""),
        step("\"counts scratch\", \"write out\"", ""),
    ));
    let table = table.unwrap();
    let of = |count| ask(&table, &[f32(&[count])], &[f32(&[count])], &[]);
    assert_eq!(of(12).outcome, Outcome::PLAN);
    let reply = of(11);
    assert_eq!(reply.outcome, Outcome::DECLINE);
    assert!(reply.message.ends_with("read from has 11"));
    let table = kernel(&format!(
        "scratch = [\"elems * 1099511627776\", \"elems\"]\n{}",
        step("\"a\", \"write out\"", "")
    ));
    let reply = ask(&table.unwrap(), &[f32(&[4])], &[f32(&[4])], &[]);
    assert_eq!(reply.outcome, Outcome::DECLINE);
    assert!(reply.message.ends_with("bytes of scratch buffers"));
}

#[test]
fn an_empty_result_takes_no_step() {
    let table = kernel("shader = \"k.comp\"\ngroups = [1]\nscratch = [\"elems\"]").unwrap();
    let reply = ask(&table, &[f32(&[0])], &[f32(&[0])], &[]);
    assert_eq!((reply.outcome, reply.plan.steps.len()), (Outcome::PLAN, 0));
}

/// Every number is extreme in turn, and nothing panics or wraps: the answer is a plan or a decline.
#[test]
fn hostile_numbers_give_a_plan_or_a_decline() {
    let table = kernel(
        "contiguous = false\nshader = \"k.comp\"\nscratch = [\"a.bytes + 1\"]\n\
         push = [\"u64 a.offset * a.offset\", \"i32 a.stride[0] - 1\", \"a.dim[0] * a.dim[1]\", \"f32 a.elems\"]\n\
         groups = [\"ceil(elems / a.dim[0])\", \"-a.stride[1] % a.dim[1]\", \"a.elems / attr.k\"]\n",
    );
    let table = table.unwrap();
    let extents = [0, 1, 2, 1 << 31, u64::MAX];
    let steps = [i64::MIN, -1, 0, 1, i64::MAX];
    for extent in extents {
        for other in extents {
            for step in steps {
                for offset in extents {
                    let (shape, strides) = ([extent, other], [step, step]);
                    let input = (DType::F32, &shape[..], Some(&strides[..]), offset);
                    let result = [other, extent];
                    let reply = ask(
                        &table,
                        &[input],
                        &[(DType::F32, &result, Some(&strides), 0)],
                        &[ints("k", &[step])],
                    );
                    let known = [Outcome::PLAN, Outcome::DECLINE].contains(&reply.outcome);
                    assert!(known && (reply.outcome == Outcome::PLAN || !reply.message.is_empty()));
                }
            }
        }
    }
}
