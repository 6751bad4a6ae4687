//! What the sweep runs, and the host's kernels on all of it.

use super::*;
use nx_vulkan_abi::layout::contiguous_strides;
use nx_vulkan_ops::{kernels, ops};
use std::collections::BTreeSet;

#[test]
fn every_op_has_every_type_in_every_layout() {
    for op in ops() {
        let all = cases(op, 1, Extent::Full).unwrap();
        let of_result = !op.contract.infers;
        for types in op.alone() {
            let dtype = if of_result {
                types.output
            } else {
                op.stands_for(&types)
            };
            for layout in LAYOUTS {
                // `eye` has no scalar form, an op without operands no strided one, and large ones are samples.
                let strided =
                    !matches!(layout, Layout::Contiguous | Layout::Empty | Layout::Scalar);
                let rare = dtype.is_some_and(|dtype| RARE.has(dtype));
                if op.name == "eye" && layout == Layout::Scalar
                    || rare && strided
                    || op.arity() == 0 && strided
                    || layout == Layout::Large
                {
                    continue;
                }
                let found = all.iter().any(|case| {
                    let inputs = case.inputs.iter().map(|input| input.dtype).collect();
                    let input = op.stands_for(&Types {
                        inputs,
                        output: None,
                    });
                    case.layout == layout
                        && dtype
                            == if of_result {
                                Some(case.outputs[0].0)
                            } else {
                                input
                            }
                });
                assert!(found, "{} {types:?} {layout:?}", op.name);
            }
        }
    }
}

#[test]
fn every_case_keeps_its_ops_contract() {
    for op in ops() {
        let tiles = tiles(op, 5, usize::MAX).unwrap();
        for case in cases(op, 5, Extent::Full).unwrap().into_iter().chain(tiles) {
            let desc = |(dtype, shape): (DType, &'static [u64])| kernels::Desc { dtype, shape };
            let leak = |shape: &[u64]| -> &'static [u64] { shape.to_vec().leak() };
            let inputs: Vec<_> = case
                .inputs
                .iter()
                .map(|i| desc((i.dtype, leak(&i.shape))))
                .collect();
            let outputs: Vec<_> = case
                .outputs
                .iter()
                .map(|(dtype, shape)| desc((*dtype, leak(shape))))
                .collect();
            kernels::check(op.name, &inputs, &outputs, &case.attrs).unwrap();
        }
    }
}

/// What the host's kernels make, of operands that lie one element behind the other, in memory that had those bytes.
fn made(case: &Case, bases: &[Vec<u8>], before: u8) -> Option<Vec<Vec<u8>>> {
    let strides: Vec<Vec<i64>> = case
        .inputs
        .iter()
        .map(|x| contiguous_strides(&x.shape))
        .collect();
    let each = case.inputs.iter().zip(bases).zip(&strides);
    let views = each.map(|((x, bytes), strides)| kernels::View {
        dtype: x.dtype,
        shape: &x.shape,
        strides,
        offset: 0,
        bytes,
    });
    let size = |(dtype, shape): &Spec| (shape.iter().product::<u64>() * dtype.size()) as usize;
    let mut results: Vec<Vec<u8>> = case
        .outputs
        .iter()
        .map(|spec| vec![before; size(spec)])
        .collect();
    let each = case.outputs.iter().zip(&mut results);
    let outs = each.map(|((dtype, shape), bytes)| kernels::Out {
        dtype: *dtype,
        shape,
        bytes,
    });
    let (views, mut outs): (Vec<_>, Vec<_>) = (views.collect(), outs.collect());
    kernels::run_fast(case.op.name, &views, &mut outs, &case.attrs).ok()?;
    Some(results)
}

#[test]
fn results_have_no_bytes_of_what_was_there_before() {
    let mut done = BTreeSet::new();
    for op in ops().filter(|op| kernels::writes_all(op.name)) {
        for case in cases(op, 7, Extent::Full).unwrap() {
            let is_plain = case.inputs.iter().all(|x| x.base == x.shape);
            if !is_plain || case.layout == Layout::Large {
                continue;
            }
            let bases = case.elements();
            if let Some(zeros) = made(&case, &bases, 0) {
                let ones = made(&case, &bases, 0xff);
                assert!(
                    ones.as_ref() == Some(&zeros),
                    "{} of {:?}",
                    op.name,
                    case.inputs
                );
                done.insert(op.name);
            }
        }
    }
    let all = ops()
        .filter(|op| kernels::writes_all(op.name))
        .map(|op| op.name);
    let missed: Vec<&str> = all.filter(|name| !done.contains(name)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn tiles_have_every_type_and_as_many_problems_as_are_wanted() {
    let dot = ops().find(|op| op.name == "dot").unwrap();
    let (types, problems) = dot.tiles();
    let of = |most| tiles(dot, 3, most).unwrap();
    assert_eq!(of(usize::MAX).len(), types.len() * problems.len());
    assert_eq!(of(1).len(), types.len());
    let mixed = |case: &&Case| case.inputs[0].dtype != case.outputs[0].0;
    assert!(of(1).iter().filter(mixed).count() >= 4);
    let add = ops().find(|op| op.name == "add").unwrap();
    assert!(tiles(add, 3, 9).unwrap().is_empty());
}

#[test]
fn a_sample_has_every_kind_of_type_in_some_layout_of_each() {
    for op in ops() {
        let all = cases(op, 1, Extent::Sample).unwrap();
        for types in op.alone() {
            let has = |layouts: &[Layout]| {
                all.iter().any(|case| {
                    let inputs = case.inputs.iter().map(|input| input.dtype).collect();
                    let output = Some(case.outputs[0].0);
                    let found = op.stands_for(&Types { inputs, output }).map(kind);
                    layouts.contains(&case.layout) && found == op.stands_for(&types).map(kind)
                })
            };
            assert!(has(&[Layout::Contiguous]), "{} {types:?}", op.name);
            assert!(
                op.arity() == 0 || has(&STRIDED),
                "{} {types:?} strided",
                op.name
            );
        }
    }
}

#[test]
fn the_seed_decides() {
    let op = ops().find(|op| op.name == "add").unwrap();
    let shown = |seed| format!("{:?}", cases(op, seed, Extent::Full).unwrap());
    assert_eq!(shown(3), shown(3));
    assert_ne!(shown(3), shown(4));
}
