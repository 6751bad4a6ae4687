//! What a profile found: the commands that a device ran, with their times, one by one and summed up by kind.

use std::{collections::HashMap, fmt, sync::Arc};

/// Kinds that the text shows.
const SHOWN: usize = 28;
/// Characters of an op that it shows.
const LONGEST: usize = 100;

/// What a device ran while a profile was on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Profile {
    /// One for each dispatch and copy, in the order in which they were recorded.
    pub rows: Vec<ProfileRow>,
    /// The times of all rows together, in microseconds.
    pub device_us: f64,
    /// From the start of the first row to the end of the last one; the device had nothing to do for what is not in `device_us`.
    pub span_us: f64,
    /// How many more there were, of which nothing is known.
    pub dropped: u64,
}

/// A command of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileRow {
    /// The request with its types and shapes, the module, or how much was copied.
    pub op: Arc<str>,
    /// `pack/kernel`, `module` for one of the caller's own, or `host`.
    pub kernel: Arc<str>,
    /// The shader's file, or what a command without one does, such as `copy`.
    pub step: Arc<str>,
    /// Which of the steps of the kernel's plan it is, from 0 on.
    pub index: usize,
    /// How many steps the plan has.
    pub steps: usize,
    /// Workgroups, unless the device itself counts them, or nothing is dispatched.
    pub groups: Option<(u32, u32, u32)>,
    /// Microseconds since the first row.
    pub start_us: f64,
    /// Microseconds from the end of what ran before to its own.
    pub us: f64,
}

/// What a device's stamps of time mean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticks {
    /// The bits of a stamp that count.
    pub(crate) mask: u64,
    /// Nanoseconds of a tick.
    pub(crate) period: f64,
}

impl Ticks {
    /// Microseconds between two stamps, which are less than half a turn of the clock apart.
    fn between(self, earlier: u64, later: u64) -> f64 {
        let ticks = later.wrapping_sub(earlier) & self.mask;
        // A clock may step back a little.
        let ticks = if ticks > self.mask / 2 { 0 } else { ticks };
        ticks as f64 * self.period / 1e3
    }
}

impl Profile {
    /// Of rows without times, each with the number of the stamp at its end; the one before that is at its start.
    pub(crate) fn of(
        rows: Vec<(usize, ProfileRow)>,
        stamps: &[u64],
        ticks: Ticks,
        dropped: u64,
    ) -> Profile {
        let mut profile = Profile {
            rows: Vec::with_capacity(rows.len()),
            dropped,
            ..Profile::default()
        };
        let mut last = rows.first().map_or(0, |(end, _)| end - 1);
        for (end, row) in rows {
            let passed = stamps[last..end].windows(2);
            profile.span_us += passed.map(|two| ticks.between(two[0], two[1])).sum::<f64>();
            let us = ticks.between(stamps[end - 1], stamps[end]);
            profile.rows.push(ProfileRow {
                start_us: profile.span_us,
                us,
                ..row
            });
            profile.span_us += us;
            profile.device_us += us;
            last = end;
        }
        profile
    }

    /// The kinds of rows, an op with a kernel and a step each, those that took longest first.
    fn kinds(&self) -> Vec<(&ProfileRow, u64, f64)> {
        let mut kinds: HashMap<_, (&ProfileRow, u64, f64)> = HashMap::new();
        for row in &self.rows {
            let kind = kinds.entry((&row.op, &row.kernel, &row.step));
            let (_, count, us) = kind.or_insert((row, 0, 0.0));
            (*count, *us) = (*count + 1, *us + row.us);
        }
        let mut kinds: Vec<_> = kinds.into_values().collect();
        let what = |row: &ProfileRow| (row.op.clone(), row.kernel.clone(), row.step.clone());
        kinds.sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| what(a.0).cmp(&what(b.0))));
        kinds
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (busy, span, rows) = (self.device_us, self.span_us, self.rows.len());
        write!(
            f,
            "{rows} commands, {busy:.1} us of the device in {span:.1} us"
        )?;
        match self.dropped {
            0 => writeln!(f)?,
            dropped => writeln!(f, "; {dropped} more were dropped")?,
        }
        let kinds = self.kinds();
        let who = |row: &ProfileRow| format!("{} {}", row.kernel, row.step);
        let (shown, rest) = kinds.split_at(kinds.len().min(SHOWN));
        let width = shown.iter().map(|(row, ..)| who(row).len()).max();
        let width = width.unwrap_or(0);
        let share = |us: f64| 100.0 * us / busy.max(f64::MIN_POSITIVE);
        for (row, count, us) in shown {
            let op: String = row.op.chars().take(LONGEST).collect();
            let cut = if op.len() < row.op.len() { "..." } else { "" };
            let (who, share) = (who(row), share(*us));
            writeln!(
                f,
                "{count:6} x {us:12.1} us {share:5.1} %  {who:width$}  {op}{cut}"
            )?;
        }
        if !rest.is_empty() {
            let count: u64 = rest.iter().map(|kind| kind.1).sum();
            let us: f64 = rest.iter().map(|kind| kind.2).sum();
            let (share, more) = (share(us), rest.len());
            writeln!(
                f,
                "{count:6} x {us:12.1} us {share:5.1} %  {more} more kinds"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKS: Ticks = Ticks {
        mask: 0xFFFF,
        period: 10.0,
    };

    fn row(op: &str) -> ProfileRow {
        ProfileRow {
            op: op.into(),
            kernel: "p/k".into(),
            step: "k.comp".into(),
            index: 0,
            steps: 1,
            groups: Some((1, 1, 1)),
            start_us: 0.0,
            us: 0.0,
        }
    }

    #[test]
    fn times_go_on_where_the_clock_starts_anew_and_leave_out_what_lies_between_batches() {
        // Two rows of one batch, and one of another that began later.
        let stamps = [0xFF00, 0xFFF0, 0x0010, 0x0210, 0x0310];
        let rows = [(1, row("a")), (2, row("b")), (4, row("c"))];
        let profile = Profile::of(rows.to_vec(), &stamps, TICKS, 0);
        let times = profile.rows.iter().map(|row| (row.start_us, row.us));
        let times: Vec<(f64, f64)> = times.collect();
        assert_eq!(times, [(0.0, 2.4), (2.4, 0.32), (7.84, 2.56)]);
        assert!((profile.device_us - 5.28).abs() < 1e-9);
        assert!((profile.span_us - 10.4).abs() < 1e-9);
        assert_eq!(TICKS.between(7, 5), 0.0, "a step back");
    }

    #[test]
    fn the_text_sums_kinds_up() {
        let long = "x".repeat(200);
        let ops = ["a", "b", "a", &long];
        let stamps: Vec<u64> = [0, 100, 400, 500, 550].to_vec();
        let rows = (1..).zip(ops.map(row)).collect();
        let text = Profile::of(rows, &stamps, TICKS, 3).to_string();
        let cut = "x".repeat(LONGEST);
        let expected = format!(
            "4 commands, 5.5 us of the device in 5.5 us; 3 more were dropped\n     \
             1 x          3.0 us  54.5 %  p/k k.comp  b\n     \
             2 x          2.0 us  36.4 %  p/k k.comp  a\n     \
             1 x          0.5 us   9.1 %  p/k k.comp  {cut}...\n"
        );
        assert_eq!(text, expected);
        let names: Vec<String> = (0..40).map(|n| n.to_string()).collect();
        let rows = (1..).zip(names.iter().map(|name| row(name))).collect();
        let stamps: Vec<u64> = (0..=40).map(|n| 100 * n).collect();
        let text = Profile::of(rows, &stamps, TICKS, 0).to_string();
        assert_eq!(text.lines().count(), SHOWN + 2);
        assert!(
            text.ends_with("    12 x         12.0 us  30.0 %  12 more kinds\n"),
            "{text}"
        );
        let none = Profile::default().to_string();
        assert_eq!(none, "0 commands, 0.0 us of the device in 0.0 us\n");
    }
}
