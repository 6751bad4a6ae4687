//! How a length is cut up: into passes over memory, and these into stages with a small radix each.

/// Factors of a stage that shaders know, apart from powers of two.
const ODD: [u32; 3] = [7, 5, 3];

/// Lengths of the passes, each at most `most`; nothing where the length has a prime factor above 7.
pub(crate) fn passes(length: u64, most: u32) -> Option<Vec<u32>> {
    let primes = primes(length)?;
    (1..=primes.len().max(1)).find_map(|count| {
        let mut passes = vec![1u64; count];
        for &prime in &primes {
            let smallest = passes.iter_mut().min()?;
            *smallest *= u64::from(prime);
        }
        let fits = passes.iter().all(|pass| *pass <= u64::from(most));
        fits.then(|| passes.iter().map(|pass| *pass as u32).collect())
    })
}

/// Prime factors, the largest first; nothing where there is one above 7.
fn primes(mut length: u64) -> Option<Vec<u32>> {
    let mut primes = Vec::new();
    for prime in [7, 5, 3, 2] {
        while length.is_multiple_of(u64::from(prime)) {
            primes.push(prime);
            length /= u64::from(prime);
        }
    }
    (length == 1).then_some(primes)
}

/// Radices of the stages of a pass: few of them, that is mostly 8.
pub(crate) fn stages(pass: u32) -> Vec<u32> {
    let mut stages = Vec::new();
    let mut rest = pass;
    for radix in ODD {
        while rest.is_multiple_of(radix) {
            stages.push(radix);
            rest /= radix;
        }
    }
    let twos = rest.trailing_zeros();
    stages.extend(match (twos / 3, twos % 3) {
        (0, 0) => vec![],
        (eights, 0) => vec![8; eights as usize],
        (0, 1) => vec![2],
        (eights, 1) => [vec![4; 2], vec![8; eights as usize - 1]].concat(),
        (eights, _) => [vec![4], vec![8; eights as usize]].concat(),
    });
    if stages.is_empty() {
        stages.push(1);
    }
    stages
}

/// The shortest length from `least` on that is a power of two times 1, 3, 5 or 7.
pub(crate) fn padded(least: u64) -> u64 {
    let lengths = [1u64, 3, 5, 7].map(|odd| odd * least.div_ceil(odd).next_power_of_two());
    lengths.into_iter().min().unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_and_stages_multiply_to_the_length() {
        for length in (1..3000u64).chain([1 << 16, 1 << 20, 1 << 26, 6000, 16_807 * 7, 59_049]) {
            let smooth = primes(length).is_some();
            let Some(passes) = passes(length, 512) else {
                assert!(!smooth, "{length}");
                continue;
            };
            assert!(passes.iter().all(|pass| *pass <= 512), "{passes:?}");
            assert_eq!(
                passes.iter().map(|p| u64::from(*p)).product::<u64>(),
                length
            );
            for pass in passes {
                let stages = stages(pass);
                assert_eq!(stages.iter().product::<u32>(), pass);
                assert!(
                    stages
                        .iter()
                        .all(|radix| [1, 2, 3, 4, 5, 7, 8].contains(radix))
                );
            }
        }
        assert_eq!(passes(1 << 16, 1024), Some(vec![256, 256]));
        assert_eq!(passes(11, 1024), None);
        assert_eq!(stages(4096), [8, 8, 8, 8]);
        assert_eq!(stages(1), [1]);
    }

    #[test]
    fn padded_lengths_are_short() {
        for least in 1..5000 {
            let length = padded(least);
            assert!(length >= least && primes(length).is_some());
            assert!(length <= least.next_power_of_two());
        }
        assert_eq!([padded(17), padded(129), padded(201)], [20, 160, 224]);
    }
}
