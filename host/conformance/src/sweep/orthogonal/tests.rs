//! What is orthogonal, and what is not.

use super::*;

fn wrong(op: &str, outputs: &[(DType, &[u64])], got: &[&[f32]]) -> Option<String> {
    let outputs: Vec<Spec> = outputs
        .iter()
        .map(|(dtype, shape)| (*dtype, shape.to_vec()))
        .collect();
    let bytes = |all: &&[f32]| all.iter().flat_map(|x| x.to_le_bytes()).collect();
    let got: Vec<Vec<u8>> = got.iter().map(bytes).collect();
    judge(op, &outputs, &got).map(|wrong| wrong.got)
}

#[test]
fn columns_of_zeros_are_not() {
    let op = "Nx.Block.LinAlg.SVD";
    let outputs: [(DType, &[u64]); 3] = [
        (DType::F32, &[3, 2]),
        (DType::F32, &[2]),
        (DType::F32, &[2, 2]),
    ];
    let (s, unit) = ([2.0, 0.0], [1.0, 0.0, 0.0, 1.0]);
    let right = [0.6, 0.8, 0.8, -0.6, 0.0, 0.0];
    assert_eq!(wrong(op, &outputs, &[&right, &s, &unit]), None);
    let short = [0.6, 0.0, 0.8, 0.0, 0.0, 0.0];
    let why = wrong(op, &outputs, &[&short, &s, &unit]).unwrap();
    assert_eq!(why, "0e0 as the product of vectors 1 and 1");
    // A row of zeros in place of a column.
    assert!(wrong(op, &outputs, &[&right, &s, &[1.0, 0.0, 0.0, 0.0]]).is_some());
    let undefined = [f32::NAN; 6];
    assert_eq!(wrong(op, &outputs, &[&undefined, &s, &unit]), None);
    assert_eq!(
        wrong("Nx.Block.LinAlg.LU", &outputs, &[&short, &s, &unit]),
        None
    );
}

#[test]
fn complex_columns_are_conjugated() {
    let root = 0.5f32.sqrt();
    let outputs: [(DType, &[u64]); 2] = [(DType::C64, &[2]), (DType::C64, &[2, 2])];
    let right = [root, 0.0, 0.0, root, 0.0, root, root, 0.0];
    assert_eq!(
        wrong("Nx.Block.LinAlg.Eigh", &outputs, &[&[0.0; 4], &right]),
        None
    );
    let skewed = [root, 0.0, 0.0, root, 0.0, root, -root, 0.0];
    assert!(wrong("Nx.Block.LinAlg.Eigh", &outputs, &[&[0.0; 4], &skewed]).is_some());
}

#[test]
fn vectors_without_a_singular_value_may_be_others() {
    let outputs: Vec<Spec> = [vec![3, 3], vec![2], vec![2, 2]]
        .map(|shape| (DType::F32, shape))
        .to_vec();
    let bytes = |all: &[f32]| -> Vec<u8> { all.iter().flat_map(|x| x.to_le_bytes()).collect() };
    let got = bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, f32::NAN, 7.0, 8.0, 9.0]);
    let expected = bytes(&[-1.0; 9]);
    let u = |op| settled(op, &outputs, 0, &got, &expected).into_owned();
    let own = bytes(&[1.0, 2.0, -1.0, 4.0, 5.0, f32::NAN, 7.0, 8.0, -1.0]);
    assert_eq!(u("Nx.Block.LinAlg.SVD"), own);
    assert_eq!(u("Nx.Block.LinAlg.QR"), got);
    let vt = bytes(&[1.0, 2.0, 3.0, 4.0]);
    let op = "Nx.Block.LinAlg.SVD";
    assert_eq!(settled(op, &outputs, 2, &vt, &expected[..16])[..], vt);
    let wide: Vec<Spec> = [vec![1, 1], vec![1], vec![2, 2]]
        .map(|shape| (DType::F32, shape))
        .to_vec();
    let own = bytes(&[1.0, 2.0, -1.0, -1.0]);
    assert_eq!(settled(op, &wide, 2, &vt, &expected[..16])[..], own);
}
