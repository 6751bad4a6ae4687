//! Expressions on the CPU, in blocks of elements and of rows, beside their ops one by one on whole tensors.

use super::{Out, Random, Tensor, tensor};
use half::{bf16, f16};
use nx_vulkan_abi::{
    DType, Expression,
    expression::{Number, Term},
    layout::contiguous_strides,
};
use nx_vulkan_ops::{attrs::Attr, kernels::run_fast};

fn blank(dtype: DType, shape: &[u64]) -> Tensor {
    let count: u64 = shape.iter().product();
    Tensor {
        dtype,
        shape: shape.to_vec(),
        strides: contiguous_strides(shape),
        offset: 0,
        bytes: vec![0xa5; (count * dtype.size()) as usize],
    }
}

fn compute(
    op: &str,
    operands: &[&Tensor],
    results: &[(DType, Vec<u64>)],
    attrs: &[Attr],
) -> Result<Vec<Tensor>, String> {
    let views: Vec<_> = operands.iter().map(|x| x.view()).collect();
    let results = results.iter().map(|(dtype, shape)| blank(*dtype, shape));
    let mut results: Vec<Tensor> = results.collect();
    let outs = results.iter_mut().map(|to| Out {
        dtype: to.dtype,
        shape: &to.shape,
        bytes: &mut to.bytes,
    });
    let mut outs: Vec<Out> = outs.collect();
    run_fast(op, &views, &mut outs, attrs).map_err(|error| {
        let kind = error.kind();
        format!("{kind:?}: {error}")
    })?;
    Ok(results)
}

fn number(number: Number, dtype: DType) -> Tensor {
    match (number, dtype) {
        (Number::Integer(x), DType::S32) => tensor(&[], &[x as i32]),
        (Number::Integer(x), DType::U8) => tensor(&[], &[x as u8]),
        (Number::Float(x), DType::F32) => tensor(&[], &[x as f32]),
        (Number::Float(x), DType::F64) => tensor(&[], &[x]),
        (Number::Float(x), DType::F16) => tensor(&[], &[f16::from_f64(x)]),
        (Number::Float(x), DType::BF16) => tensor(&[], &[bf16::from_f64(x)]),
        (number, dtype) => panic!("{number:?} of {dtype}"),
    }
}

/// What the calls of an expression make, each by itself.
fn one_by_one(expression: &Expression, operands: &[&Tensor], shape: &[u64]) -> Vec<Tensor> {
    let is_one = |x: &&Tensor| x.shape.last().is_none_or(|last| *last == 1);
    let is_long = shape.last().is_some_and(|last| *last > 1);
    let of_rows: Vec<bool> = operands.iter().map(|x| is_long && is_one(x)).collect();
    let has_rows = expression.calls.iter().any(|call| call.reduces());
    let mut made: Vec<Tensor> = Vec::new();
    for (call, per_row) in expression.calls.iter().zip(expression.per_row(&of_rows)) {
        let mut own = shape.to_vec();
        if let (Some(last), true) = (own.last_mut(), has_rows && per_row) {
            *last = 1;
        }
        let terms = call.terms.iter().map(|term| match *term {
            Term::Operand(index) => operands[index].clone(),
            Term::Made(index) => made[index].clone(),
            Term::Number(x, dtype) => number(x, dtype),
        });
        let terms: Vec<Tensor> = terms.collect();
        let along = call
            .reduces()
            .then(|| Attr::ints("axes", [shape.len() as i64 - 1]));
        let terms: Vec<&Tensor> = terms.iter().collect();
        let result = compute(
            &call.op,
            &terms,
            &[(call.dtype, own)],
            &Vec::from_iter(along),
        );
        made.extend(result.unwrap());
    }
    expression
        .results
        .iter()
        .map(|&call| made[call].clone())
        .collect()
}

/// Fails unless `op` makes the bits of its calls one by one.
fn check(op: &str, text: &str, operands: &[&Tensor], shape: &[u64]) {
    let expression: Expression = text.parse().unwrap();
    let expected = one_by_one(&expression, operands, shape);
    let results = expected.iter().map(|x| (x.dtype, x.shape.clone()));
    let results: Vec<_> = results.collect();
    let attrs = [Attr::text("expression", text)];
    let got = compute(op, operands, &results, &attrs).unwrap();
    for (index, (got, expected)) in got.iter().zip(&expected).enumerate() {
        let cells = |x: &Tensor| -> Vec<Vec<u8>> {
            let size = x.dtype.size() as usize;
            x.bytes.chunks(size).map(<[u8]>::to_vec).collect()
        };
        let [got, expected] = [got, expected].map(cells);
        let unlike = got.iter().zip(&expected).position(|(a, b)| a != b);
        assert_eq!(unlike, None, "{text} on {shape:?}: result {index}");
    }
}

/// Small integers of any real type.
fn integers(dtype: DType, shape: &[u64], random: &mut Random) -> Tensor {
    let count = shape.iter().product::<u64>();
    let numbers: Vec<i8> = (0..count).map(|_| random.below(17) as i8 - 8).collect();
    let from = tensor(shape, &numbers);
    let made = compute("as_type", &[&from], &[(dtype, shape.to_vec())], &[]);
    made.unwrap().remove(0)
}

const ELEMENTS: [&str; 10] = [
    "as_type(i0):f32; as_type(i1):f32; pow(%0, %1):f32; abs(%0):f32; pow(%3, 1.5:f32):f32; (%2, %4)",
    "add(i0, i1):T; multiply(%0, i0):T; subtract(%1, i1):T",
    "add(i0, i1):T; multiply(%0, 3:s32):T; (%1, %0, %1)",
    "greater(i0, i1):u8; select(%0, i0, i1):T; max(%1, 1:s32):T; (%2, %0)",
    "as_type(i0):f32; divide(%0, 3.0:f32):f32; tanh(%1):f32; as_type(%2):bf16; multiply(%3, 0.5:bf16):bf16; (%2, %4)",
    "as_type(i0):f64; as_type(%0):f16; add(%1, 1.5:f16):f16; as_type(%2):s32; as_type(i1):f32; (%3, %4, %1)",
    "as_type(i1):u8; quotient(%0, 3:u8):u8; bitwise_xor(%1, 5:u8):u8; as_type(%2):T; add(%3, i0):T",
    "clip(i0, -3:s32, 3:s32):T; abs(%0):T; as_type(%1):f8_e4m3fn; as_type(%2):f32; exp(%3):f32; (%3, %2, %4)",
    "as_type(i0):T",
    "less_equal(i0, i1):u8; equal(i1, 2:s32):u8; logical_or(%0, %1):u8; subtract(1:s32, %2):s32; (%3)",
];
const TYPES: [&str; 9] = ["f32", "f64", "bf16", "f16", "s32", "s64", "u8", "s8", "u16"];

#[test]
fn blocks_have_the_bits_of_the_ops_one_by_one() {
    let mut random = Random(31);
    for (row, text) in ELEMENTS.iter().enumerate() {
        for (column, name) in TYPES.iter().enumerate() {
            let dtype = DType::from_name(name).unwrap();
            let text = text.replace('T', name);
            // Each expression and each type meets each of the counts.
            let counts = [1, 63, 511, 1024, 2049, 4097, 16385, 40_001];
            for count in [
                counts[(row + column) % 8],
                counts[(row + 3 * column + 1) % 8],
            ] {
                let [a, b] = [(); 2].map(|()| integers(dtype, &[count], &mut random));
                check("fused", &text, &[&a, &b][..operands(&text)], &[count]);
            }
        }
    }
}

fn operands(text: &str) -> usize {
    1 + usize::from(text.contains("i1"))
}

#[test]
fn operands_of_any_layout_are_read_block_by_block() {
    let mut random = Random(32);
    for shape in [[7, 700, 1], [70, 9, 11], [3, 2, 4100], [1, 5, 1300]] {
        let [a, b, c] = shape;
        let turned = |x: &[u64], order: [usize; 3], random: &mut Random| {
            let from = integers(DType::F32, &order.map(|axis| x[axis]), random);
            let mut strides = vec![0; 3];
            for (place, axis) in order.into_iter().enumerate() {
                strides[axis] = from.strides[place];
            }
            Tensor {
                shape: x.to_vec(),
                strides,
                ..from
            }
        };
        let operands = [
            integers(DType::F32, &[c], &mut random),
            integers(DType::S32, &[b, 1], &mut random),
            integers(DType::F32, &[a, 1, c], &mut random),
            integers(DType::BF16, &[], &mut random),
            turned(&shape, [2, 0, 1], &mut random),
            turned(&shape, [0, 2, 1], &mut random),
        ];
        let text = "add(i0, i1):f32; multiply(%0, i2):f32; add(i3, %1):f32; subtract(i4, %2):f32; max(%3, i5):f32; \
                    add(i0, i3):f32; (%4, %5, %0)";
        check("fused", text, &operands.each_ref(), &shape);
    }
}

#[test]
fn an_element_is_the_same_whatever_is_beside_it() {
    // Alone each row has one exponent, in a block there are several.
    let mut random = Random(35);
    let base: Vec<f32> = (0..2 * 2048)
        .map(|_| (4097 + 2 * random.below(848)) as f32)
        .collect();
    let base = tensor(&[2, 2048], &base);
    for [a, b] in [
        [2.0_f32, 1.5],
        [3.0, 0.7],
        [0.5, 2.0],
        [-1.0, 3.0],
        [f32::NAN, 2.0],
    ] {
        let exponents = tensor(&[2, 1], &[a, b]);
        let text = "pow(i0, i1):f32; add(%0, i0):f32";
        check("fused", text, &[&base, &exponents], &[2, 2048]);
        check(
            "fused_rows",
            "pow(i0, i1):f32; reduce_max(%0):f32; (%0, %1)",
            &[&base, &exponents],
            &[2, 2048],
        );
    }
}

#[test]
fn rows_of_any_layout_and_any_floats_are_read() {
    let mut random = Random(36);
    let constant = |shape: &[u64], x: f32| Tensor {
        shape: shape.to_vec(),
        strides: vec![0; shape.len()],
        ..tensor(&[], &[x])
    };
    let special = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1.0e-40];
    for shape in [[4, 8], [300, 33], [3, 70_000], [2, 1]] {
        let one = constant(&shape, 1.5);
        let x = integers(DType::F32, &shape, &mut random);
        let mut strange = x.clone();
        for cell in strange.bytes.chunks_exact_mut(4) {
            if random.below(5) == 0 {
                cell.copy_from_slice(&special[random.below(5) as usize].to_ne_bytes());
            }
        }
        let from = integers(DType::F32, &[shape[1], shape[0]], &mut random);
        let turned = Tensor {
            shape: shape.to_vec(),
            strides: vec![1, shape[0] as i64],
            ..from
        };
        let backwards = Tensor {
            strides: vec![-(shape[1] as i64), -1],
            offset: shape.iter().product::<u64>() - 1,
            ..x.clone()
        };
        check("fused_rows", "as_type(i0):f32", &[&one], &shape);
        check(
            "fused_rows",
            "sum(i0):f32; as_type(i1):f32; (%0, %1)",
            &[&x, &one],
            &shape,
        );
        check(
            "fused_rows",
            "sum(i0):f32; add(i1, %0):f32; reduce_min(%1):f32; (%2, %1)",
            &[&turned, &backwards],
            &shape,
        );
        let text = "reduce_max(i0):f32; reduce_min(i0):f32; max(%0, i1):f32; is_nan(i0):u8; (%0, %1, %2, %3)";
        check("fused_rows", text, &[&strange, &one], &shape);
    }
    // Wider than what a core keeps.
    let wide = integers(DType::F32, &[2, 1_100_000], &mut random);
    check(
        "fused_rows",
        "multiply(i0, i0):f32; reduce_max(%0):f32; add(%0, %1):f32",
        &[&wide],
        &[2, 1_100_000],
    );
    let none = tensor::<f32>(&[3, 0], &[]);
    check("fused_rows", "sum(i0):f32", &[&none], &[3, 0]);
}

#[test]
fn rows_have_the_results_of_the_ops_one_by_one() {
    let mut random = Random(33);
    // Sums of small integers are exact in any order.
    let texts = [
        "sum(i0):T",
        "multiply(i0, i0):T; sum(%0):T; reduce_max(i0):T; subtract(i0, %2):T; add(%3, %1):T; (%4, %1, %2)",
        "add(i0, i1):T; reduce_min(%0):T; add(i2, %1):T; greater(%0, %2):u8; select(%3, i1, %2):T; (%4, %2, %3)",
        "as_type(i0):f32; sum(%0):f32; multiply(%1, 0.25:f32):f32; subtract(%0, %2):f32; as_type(%3):bf16; (%4, %1)",
        "as_type(i2):f32; sqrt(%0):f32; as_type(i0):f32; add(%1, %2):f32; reduce_max(%3):f32; (%1, %4, %3)",
    ];
    for (shape, lead) in [
        (vec![300, 32], vec![300, 1]),
        (vec![5, 7, 1000], vec![5, 1, 1]),
        (vec![3, 8000], vec![1, 1]),
        (vec![40_000, 3], vec![40_000, 1]),
        (vec![9], vec![1]),
        (vec![4, 1], vec![4, 1]),
        (vec![2, 20_000], vec![2, 1]),
    ] {
        for name in ["f32", "f64", "bf16", "f16"] {
            let dtype = DType::from_name(name).unwrap();
            let last = &shape[shape.len() - 1..];
            let x = integers(dtype, &shape, &mut random);
            let bias = integers(dtype, last, &mut random);
            let per_row = compute(
                "abs",
                &[&integers(dtype, &lead, &mut random)],
                &[(dtype, lead.clone())],
                &[],
            );
            let per_row = &per_row.unwrap()[0];
            for text in texts {
                let count = 1 + usize::from(text.contains("i1")) + usize::from(text.contains("i2"));
                let operands = match count {
                    2 => vec![&x, &x, per_row],
                    count => [&x, &bias, per_row][..count].to_vec(),
                };
                check("fused_rows", &text.replace('T', name), &operands, &shape);
            }
        }
    }
}

#[test]
fn an_element_without_result_is_refused_wherever_it_is() {
    for at in [0, 3000, 39_999] {
        for (op, lacks) in [("quotient", 0), ("pow", -1), ("left_shift", -1)] {
            let seconds: Vec<i32> = (0..40_000)
                .map(|i| if i == at { lacks } else { 1 })
                .collect();
            let seconds = tensor(&[40_000], &seconds);
            let ones = tensor(&[40_000], &[1_i32; 40_000]);
            let text = format!("add(i0, 1:s32):s32; {op}(%0, i1):s32; add(%1, %0):s32");
            let attrs = [Attr::text("expression", &text)];
            let spec = [(DType::S32, vec![40_000])];
            let [fused, alone] = [("fused", &attrs[..]), (op, &[])]
                .map(|(op, attrs)| compute(op, &[&ones, &seconds], &spec, attrs).unwrap_err());
            assert_eq!(fused.replace("fused", op), alone);
        }
    }
}
