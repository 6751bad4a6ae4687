//! Strides of the views that reshapes give.

use nx_vulkan_abi::layout;

/// Strides for a reshape of a strided tensor: possible where every new axis splits or repeats old axes that
/// step evenly.
pub(super) fn split(shape: &[u64], strides: &[i64], new: &[u64]) -> Option<Vec<i64>> {
    if shape.contains(&0) {
        return Some(layout::contiguous_strides(new));
    }
    let old = layout::collapse(shape, &[strides.to_vec()]);
    let mut result = vec![0; new.len()];
    let mut axes = old.shape.iter().zip(&old.strides[0]).rev();
    let (mut left, mut step) = (1, 0);
    for (i, &extent) in new.iter().enumerate().rev() {
        if extent == 1 {
            continue;
        }
        if left == 1 {
            let (&extent, &stride) = axes.next()?;
            (left, step) = (extent, stride);
        }
        if left % extent != 0 {
            return None;
        }
        result[i] = step;
        left /= extent;
        step *= extent as i64;
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strided_reshapes_that_need_no_copy_are_found() {
        assert_eq!(split(&[4, 6], &[12, 2], &[2, 2, 6]), Some(vec![24, 12, 2]));
        assert_eq!(split(&[4, 6], &[12, 2], &[4, 3, 2]), Some(vec![12, 4, 2]));
        assert_eq!(split(&[4, 6], &[1, 4], &[24]), None);
        assert_eq!(split(&[5, 4], &[0, 0], &[20]), Some(vec![0]));
        assert_eq!(
            split(&[2, 1, 3], &[3, 9, 2], &[2, 3, 1]),
            Some(vec![3, 2, 0])
        );
    }
}
