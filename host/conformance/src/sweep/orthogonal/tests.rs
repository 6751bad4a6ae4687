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
