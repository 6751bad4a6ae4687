//! The memory that transforms are expected to take.

use super::*;

fn bytes(shape: &[u64], axes: &[i64], lengths: &[i64]) -> usize {
    let view = View {
        dtype: DType::F32,
        shape,
        strides: &vec![0; shape.len()],
        offset: 0,
        bytes: &[],
    };
    taken(&view, axes, lengths)
}

#[test]
fn what_is_taken_grows_with_rows_and_fields_and_not_with_how_many_rows_there_are() {
    let few = bytes(&[64, 1000], &[1], &[1000]);
    assert_eq!(bytes(&[64_000_000, 1000], &[1], &[1000]), few);
    assert!(few < 1 << 26);
    let long = bytes(&[1 << 30], &[0], &[1 << 30]);
    assert!((1 << 34..1 << 38).contains(&long));
    // The result is larger than what it is made of.
    let padded = bytes(&[1, 1], &[0, 1], &[30_000, 30_000]);
    assert!(padded >= 3 * 16 * 900_000_000);
    assert_eq!(bytes(&[1, 1], &[0, 1], &[i64::MAX, i64::MAX]), usize::MAX);
}
