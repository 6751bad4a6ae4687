//! Arithmetic on shapes and strides that both sides of the contract share.

/// Row-major strides of `shape`, in elements.
pub fn contiguous_strides(shape: &[u64]) -> Vec<i64> {
    let mut strides = vec![0; shape.len()];
    write_contiguous_strides(shape, &mut strides);
    strides
}

/// As [`contiguous_strides`], into memory of the caller, one stride per axis.
pub fn write_contiguous_strides(shape: &[u64], strides: &mut [i64]) {
    let mut step = 1i64;
    for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.saturating_mul(extent.max(1) as i64);
    }
}

/// Whether elements laid out with `strides` are in row-major order without gaps. Axes of extent 1 do not count.
pub fn is_contiguous(shape: &[u64], strides: &[i64]) -> bool {
    let mut step = 1i64;
    shape.iter().zip(strides).rev().all(|(&extent, &stride)| {
        let fits = extent == 1 || stride == step;
        step = step.saturating_mul(extent as i64);
        fits
    }) || shape.contains(&0)
}

/// Strides with which an operand of `shape` is read as if it had the shape `out`, by NumPy's broadcasting rule:
/// axes are aligned at the end and an axis of extent 1 repeats. `None` when the shapes do not fit.
pub fn broadcast_strides(shape: &[u64], strides: &[i64], out: &[u64]) -> Option<Vec<i64>> {
    let lead = out.len().checked_sub(shape.len())?;
    let mut result = vec![0; out.len()];
    for (axis, (&extent, &stride)) in shape.iter().zip(strides).enumerate() {
        match (extent, out[lead + axis]) {
            (a, b) if a == b => result[lead + axis] = stride,
            (1, _) => {}
            _ => return None,
        }
    }
    Some(result)
}

/// An iteration space shared by several operands: extents, and for each operand one stride per axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// Extent of each axis, outermost first. Never empty: a scalar is one axis of extent 1.
    pub shape: Vec<u64>,
    /// For each operand the stride of each axis, in elements.
    pub strides: Vec<Vec<i64>>,
}

/// The same iteration space with as few axes as possible: axes of extent 1 go, and neighbours that every
/// operand steps through evenly merge. Row-major order of the elements stays.
pub fn collapse(shape: &[u64], strides: &[Vec<i64>]) -> Space {
    let mut space = Space {
        shape: Vec::new(),
        strides: vec![Vec::new(); strides.len()],
    };
    for (axis, &extent) in shape.iter().enumerate().filter(|(_, extent)| **extent != 1) {
        let merges = space.shape.last().is_some()
            && space.strides.iter().zip(strides).all(|(kept, all)| {
                let outer = kept.last().copied().unwrap_or(0);
                all[axis].checked_mul(extent as i64) == Some(outer)
            });
        if merges {
            if let Some(last) = space.shape.last_mut() {
                *last *= extent;
            }
            for (kept, all) in space.strides.iter_mut().zip(strides) {
                if let Some(last) = kept.last_mut() {
                    *last = all[axis];
                }
            }
        } else {
            space.shape.push(extent);
            for (kept, all) in space.strides.iter_mut().zip(strides) {
                kept.push(all[axis]);
            }
        }
    }
    if space.shape.is_empty() {
        space.shape.push(1);
        space.strides.iter_mut().for_each(|s| s.push(0));
    }
    space
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contiguous_axes_merge_and_broadcast_axes_do_not() {
        let both = collapse(&[2, 3, 4], &[vec![12, 4, 1], vec![0, 0, 1]]);
        assert_eq!(both.shape, [6, 4]);
        assert_eq!(both.strides, [vec![4, 1], vec![0, 1]]);
        let one = collapse(&[2, 1, 3, 4], &[vec![12, 7, 4, 1]]);
        assert_eq!((one.shape, one.strides), (vec![24], vec![vec![1]]));
        assert_eq!(collapse(&[], &[vec![]]).shape, [1]);
        assert_eq!(collapse(&[5, 4], &[vec![0, 0]]).shape, [20]);
    }

    #[test]
    fn broadcasting_follows_numpy() {
        assert_eq!(
            broadcast_strides(&[3, 1], &[1, 1], &[2, 3, 4]),
            Some(vec![0, 1, 0])
        );
        assert_eq!(broadcast_strides(&[], &[], &[2]), Some(vec![0]));
        assert_eq!(broadcast_strides(&[2], &[1], &[3]), None);
        assert_eq!(broadcast_strides(&[2, 2], &[2, 1], &[2]), None);
    }

    #[test]
    fn contiguity_ignores_axes_of_one_element() {
        assert!(is_contiguous(&[2, 1, 3], &[3, 99, 1]));
        assert!(!is_contiguous(&[2, 3], &[1, 2]));
        assert!(is_contiguous(&[0, 3], &[7, 7]));
        assert_eq!(contiguous_strides(&[2, 3]), [3, 1]);
    }
}
