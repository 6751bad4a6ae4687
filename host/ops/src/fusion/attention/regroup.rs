//! Shapes that broadcast to one shape, as they broadcast to a reshape of it.

/// The shape that a value has to have so that it broadcasts to `to` as the shape `own` does to `from`; both have as many elements.
/// `None` where it repeats a part of an axis of one of them.
pub(super) fn regrouped(own: &[u64], from: &[u64], to: &[u64]) -> Option<Vec<u64>> {
    if from == to {
        return Some(own.to_vec());
    }
    let lead = from.len().checked_sub(own.len())?;
    let own = [&vec![1; lead], own].concat();
    let mut shape = Vec::new();
    let mut at = 0;
    while at < from.len() || shape.len() < to.len() {
        // The fewest axes of both that are as many elements.
        let (first, begin) = (at, shape.len());
        let mut end = begin;
        let [mut before, mut after] = [1u64; 2];
        loop {
            if before <= after && at < from.len() {
                before *= from[at];
                at += 1;
            } else if end < to.len() {
                after *= to[end];
                end += 1;
            } else {
                return None;
            }
            let is_same = before == after && at > first && end > begin;
            let is_last = at == from.len() && end == to.len();
            if is_same || is_last {
                break;
            }
        }
        let part = &own[first..at];
        if part == &from[first..at] {
            shape.extend(&to[begin..end]);
        } else if part.iter().all(|&extent| extent == 1) {
            shape.extend(vec![1; end - begin]);
        } else {
            return None;
        }
    }
    Some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_stay_together_are_whole_or_one_element() {
        let (heads, split): (&[u64], &[u64]) = (&[2, 6, 5, 7], &[2, 3, 2, 5, 7]);
        for (own, here) in [
            (&[2, 6, 5, 7][..], &[2, 3, 2, 5, 7][..]),
            (&[2, 1, 1, 7], &[2, 1, 1, 1, 7]),
            (&[6, 1, 7], &[1, 3, 2, 1, 7]),
            (&[7], &[1, 1, 1, 1, 7]),
            (&[], &[1, 1, 1, 1, 1]),
        ] {
            assert_eq!(regrouped(own, heads, split).as_deref(), Some(here));
            let back = regrouped(here, split, heads).unwrap();
            assert!(back.ends_with(own), "{own:?} {back:?}");
            assert_eq!(regrouped(own, heads, heads).as_deref(), Some(own));
        }
        assert_eq!(regrouped(&[3, 1, 1, 1], split, heads), None);
        assert_eq!(regrouped(&[1, 1, 6], &[2, 6], &[3, 4]), None);
        let ones = regrouped(&[5, 1], &[1, 5, 1], &[5, 1, 1]).unwrap();
        assert_eq!(ones.iter().product::<u64>(), 5);
        assert_eq!(regrouped(&[2, 1], &[2, 6], &[3, 4]), None);
    }
}
