//! Profiles of programs that are replayed: each command is told, and the results are what they are without a profile.

use super::{COLUMNS, FIRST, ROWS, Setup, large, net, open};
use nx_vulkan_host::{Kind, Profile, Routine, Tensor};

impl Setup {
    /// Runs a routine that is recorded, and what the device ran for it; the results have to be those of the program.
    #[track_caller]
    fn profiled(&self, routine: &Routine, inputs: &[&Tensor]) -> Profile {
        let replayed = self.runtime.stats().replays.runs;
        let profiling = self.runtime.begin_profile().unwrap();
        let ran = self.runtime.run_routine(routine, inputs).unwrap();
        let profile = profiling.end().unwrap();
        assert_eq!(self.runtime.stats().replays.runs, replayed + 1);
        let plain = self.runtime.run_program(routine.program(), inputs).unwrap();
        for (ran, plain) in ran.results.iter().zip(&plain.results) {
            assert_eq!(self.bytes(ran), self.bytes(plain));
        }
        // What was recorded is as it was.
        assert_eq!(self.runs(routine, inputs), 1);
        profile
    }

    /// The steps that a program takes, in any order.
    fn steps(&self, routine: &Routine, inputs: &[&Tensor]) -> Vec<String> {
        let profiling = self.runtime.begin_profile().unwrap();
        self.runtime.run_program(routine.program(), inputs).unwrap();
        steps(&profiling.end().unwrap())
    }
}

fn steps(profile: &Profile) -> Vec<String> {
    let rows = profile.rows.iter().filter(|row| row.steps > 0);
    let step = rows.map(|row| format!("{} {} {} {:?}", row.op, row.kernel, row.step, row.groups));
    let mut steps: Vec<String> = step.collect();
    steps.sort();
    steps
}

#[test]
fn a_profile_tells_of_each_command_that_is_replayed() {
    let setup = open();
    let routine = Routine::from(net());
    let [w, b] = setup.parameters(5);
    let x = |seed| setup.floats(&[ROWS, COLUMNS], seed);
    for run in 0..FIRST {
        setup.runs(&routine, &[&x(run), &w, &b]);
    }
    for run in 0..3 {
        let x = x(10 + run);
        let profile = setup.profiled(&routine, &[&x, &w, &b]);
        let plain = setup.steps(&routine, &[&x, &w, &b]);
        assert_eq!(steps(&profile), plain);
        assert_eq!(profile.rows.len(), plain.len() + 3, "an input, two results");
        assert!(profile.rows.iter().all(|row| row.us > 0.0 && row.us < 1e7));
        assert_eq!(&*profile.rows[0].step, "copy");
        let dot = format!(
            "dot(f32[{ROWS},{COLUMNS}], f32[{COLUMNS},{COLUMNS}]) -> f32[{ROWS},{COLUMNS}]"
        );
        assert!(profile.to_string().contains(&dot), "{profile}");
    }
    let profiling = setup.runtime.begin_profile().unwrap();
    let twice = setup.runtime.begin_profile().unwrap_err();
    assert_eq!(twice.kind(), Kind::BadInput);
    drop(profiling);
    let nothing = setup.runtime.begin_profile().unwrap().end().unwrap();
    assert_eq!(nothing, Profile::default());
}

#[test]
fn what_each_run_records_anew_is_told_too() {
    let setup = open();
    let routine = Routine::from(large::net());
    for seed in 0..FIRST {
        setup.runs(&routine, &[&setup.floats(&[16], seed)]);
    }
    let x = setup.floats(&[16], 9);
    let profile = setup.profiled(&routine, &[&x]);
    assert_eq!(steps(&profile), setup.steps(&routine, &[&x]));
}

#[test]
fn parameters_that_are_parts_of_larger_tensors_are_read_where_they_lie() {
    let setup = open();
    let routine = Routine::from(net());
    let all = setup.floats(&[5, COLUMNS, COLUMNS], 4);
    let w = all.slice(&[3, 0, 0], &[1, COLUMNS, COLUMNS], &[1; 3]);
    let w = w.unwrap().squeeze(&[0]).unwrap();
    let [_, b] = setup.parameters(5);
    let x = |seed| setup.floats(&[ROWS, COLUMNS], seed);
    for run in 0..FIRST {
        setup.runs(&routine, &[&x(run), &w, &b]);
    }
    setup.profiled(&routine, &[&x(9), &w, &b]);
}
