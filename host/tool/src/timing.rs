//! Timing: how often to run something, and what the times amount to.

use nx_vulkan_host::{Error, Result, Runtime};
use std::{
    ops::Range,
    time::{Duration, Instant},
};

/// How long one batch should take.
const BATCH: Duration = Duration::from_millis(20);
/// No more batches are started after this.
const LIMIT: Duration = Duration::from_secs(10);
const FEWEST: usize = 3;
/// Runs between two looks at the clock, while a device gets up to speed.
const MOST_AT_ONCE: f64 = 1000.0;
/// What a device may have nothing to do without falling below its speed.
const REST: Duration = Duration::from_millis(5);
/// How long it is kept busy after that, until it has gained nothing for [`SETTLED`].
const WAKE: Range<Duration> = Duration::from_millis(300)..Duration::from_secs(3);
const SETTLED: Duration = Duration::from_millis(200);
/// What it has to do between two looks at the clock.
const BUSY: Duration = Duration::from_millis(5);

/// Times of one op, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(crate) struct Times {
    pub(crate) median_us: f64,
    pub(crate) min_us: f64,
    pub(crate) p95_us: f64,
}

/// What this thread has computed so far: recording shares the cores with a driver that computes on them.
pub(crate) fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists on every POSIX system, and `time` outlives the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Keeps a GPU busy with `run` until it gets no faster, if it had nothing to do since `rested`: it runs at a fraction of its
/// clock then, and needs longer to get up to speed than a batch takes.
pub(crate) fn wake(runtime: &Runtime, rested: Instant, run: impl Fn() -> Result<()>) -> Result<()> {
    if runtime.device().summary().kind == "cpu" || rested.elapsed() < REST {
        return Ok(());
    }
    let timed = |count: u32| {
        let batch = Instant::now();
        for _ in 0..count {
            run()?;
        }
        runtime.sync()?;
        Ok::<_, Error>(batch.elapsed().div_f64(count.into()))
    };
    let start = Instant::now();
    let (mut least, mut since) = (timed(1)?, start);
    while start.elapsed() < WAKE.end && (start.elapsed() < WAKE.start || since.elapsed() < SETTLED)
    {
        // So many that the device never waits for the next one.
        let count = BUSY.div_duration_f64(least).clamp(1.0, MOST_AT_ONCE);
        let each = timed(count as u32)?;
        if each < least.mul_f64(0.98) {
            (least, since) = (each, Instant::now());
        }
    }
    Ok(())
}

/// Times `batch(n)`, which runs something `n` times and returns how long that took, `batches` times; fewer, but at
/// least three, where that takes long.
///
/// # Errors
/// Those of `batch`.
pub(crate) fn time(
    batches: usize,
    most: u32,
    mut batch: impl FnMut(u32) -> Result<Duration>,
) -> Result<Times> {
    let start = Instant::now();
    batch(1)?;
    let once = batch(1)?.max(Duration::from_nanos(100));
    let each = (BATCH.as_secs_f64() / once.as_secs_f64()) as u32;
    let each = each.clamp(1, most);
    let mut times = Vec::with_capacity(batches);
    while times.len() < batches && (times.len() < FEWEST || start.elapsed() < LIMIT) {
        times.push(batch(each)?.as_secs_f64() * 1e6 / f64::from(each));
    }
    Ok(summary(times))
}

fn summary(mut times: Vec<f64>) -> Times {
    times.sort_by(f64::total_cmp);
    let last = times.len() - 1;
    let middle = (times[last / 2] + times[last.div_ceil(2)]) / 2.0;
    Times {
        median_us: middle,
        min_us: times[0],
        p95_us: times[(last * 95).div_ceil(100)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_of_sorted_times() {
        let times = summary(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!(
            times,
            Times {
                median_us: 2.5,
                min_us: 1.0,
                p95_us: 4.0
            }
        );
        assert_eq!(
            summary(vec![7.0]),
            Times {
                median_us: 7.0,
                min_us: 7.0,
                p95_us: 7.0
            }
        );
    }

    #[test]
    fn short_work_is_repeated_and_long_work_is_not() {
        let mut sizes = Vec::new();
        let times = time(4, 50, |n| {
            sizes.push(n);
            Ok(Duration::from_millis(1) * n)
        });
        assert_eq!(sizes, [1, 1, 20, 20, 20, 20]);
        assert!((times.unwrap().median_us - 1000.0).abs() < 1.0);
        let mut sizes = Vec::new();
        time(4, 50, |n| {
            sizes.push(n);
            Ok(Duration::from_secs(2) * n)
        })
        .unwrap();
        assert_eq!(sizes, [1; 6]);
    }
}
