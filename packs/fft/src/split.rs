//! How a length is cut up: into passes over memory, and these into stages with a small radix each.

/// Primes that a stage transforms by definition.
const PRIMES: [u32; 6] = [13, 11, 7, 5, 3, 2];
/// The largest radix of a stage, whose numbers are in registers.
const LARGEST: u32 = 16;

/// Whether the length has no prime factor but those of stages.
pub(crate) fn is_smooth(length: u64) -> bool {
    primes(length).is_some()
}

/// Lengths of the passes, each at most `most`; nothing where the length has another prime factor or one beyond `most`.
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

/// Prime factors, the largest first.
fn primes(mut length: u64) -> Option<Vec<u32>> {
    let mut primes = Vec::new();
    for prime in PRIMES {
        while length.is_multiple_of(u64::from(prime)) {
            primes.push(prime);
            length /= u64::from(prime);
        }
    }
    (length == 1).then_some(primes)
}

/// Radices of the stages of a pass: few of them, and then small ones. The largest comes first, as the first stage has no
/// roots to multiply with.
pub(crate) fn stages(pass: u32) -> Vec<u32> {
    let stages = fewest(pass, LARGEST).filter(|stages| !stages.is_empty());
    stages.unwrap_or_else(|| vec![1])
}

/// Of radices up to `most`.
fn fewest(rest: u32, most: u32) -> Option<Vec<u32>> {
    if rest == 1 {
        return Some(vec![]);
    }
    let radices = (2..=most.min(rest)).filter(|radix| rest.is_multiple_of(*radix));
    let each = radices.filter_map(|radix| {
        let others = fewest(rest / radix, radix)?;
        Some([vec![radix], others].concat())
    });
    each.min_by_key(|stages| (stages.len(), stages.iter().sum::<u32>()))
}

/// Two radices of which one is made, as near to each other as can be; nothing for a prime.
pub(crate) fn halves(radix: u32) -> Option<(u32, u32)> {
    let mut divisors = (2..radix).filter(|first| radix.is_multiple_of(*first));
    let first = divisors.rfind(|first| first * first <= radix)?;
    Some((first, radix / first))
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
                assert!(stages.iter().all(|radix| (1..=LARGEST).contains(radix)));
            }
        }
        assert_eq!(passes(1 << 16, 1024), Some(vec![256, 256]));
        assert_eq!(passes(17, 1024), None);
        assert_eq!(stages(4096), [16, 16, 16]);
        assert_eq!(stages(1000), [10, 10, 10]);
        assert_eq!(stages(13), [13]);
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
