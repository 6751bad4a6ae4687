//! Programs on a device: several requests in one call, what they keep, and where they stop.

use crate::{
    code_free_packs::{floats, open, upload, with_pack},
    folder::Folder,
};
use nx_vulkan_host::{
    DType, Kind, Program, Request, Result, Runtime, Step, Tensor, Value, View, device,
    runtime::RanProgram,
};
use std::sync::Arc;

/// A device whose only pack doubles; every other op runs on the host.
struct Device {
    runtime: Arc<Runtime>,
    _folder: Folder,
}

impl Device {
    fn open() -> Device {
        let folder = with_pack();
        Device {
            runtime: open(&folder, &[&folder.join("packs")]),
            _folder: folder,
        }
    }

    fn upload(&self, values: &[f32]) -> Tensor {
        upload(&self.runtime, &[values.len() as u64], values)
    }

    fn floats(&self, tensor: &Tensor) -> Vec<f32> {
        floats(&self.runtime, tensor)
    }

    fn times_run(&self, op: &str) -> u64 {
        let served = self.runtime.stats().served;
        served
            .iter()
            .filter(|row| row.0 == op)
            .map(|row| row.2)
            .sum()
    }
}

fn request<'a>(op: &'a str, inputs: &'a [Value], extent: u64) -> Request<'a, Value> {
    Request::new(op, inputs, vec![(DType::F32, vec![extent])], &[])
}

const NOTHING: [Request<'static, Value>; 0] = [];

fn served(ran: &RanProgram) -> Vec<&str> {
    ran.served_by.iter().map(|by| &**by).collect()
}

#[test]
fn requests_use_values_that_came_before_more_than_once() {
    let device = Device::open();
    let inputs = [
        device.upload(&[1.0, 2.0, 3.0]),
        device.upload(&[0.5, 0.25, 0.0]),
    ];
    let requests = [
        request("twice", &[0], 3),
        request("add", &[2, 1], 3),
        request("multiply", &[3, 3], 3),
        request("twice", &[4], 3),
    ];
    let program = Program::new(2, requests, [5, 0, 3, 5]).unwrap();
    for _ in 0..2 {
        let ran = device
            .runtime
            .run_program(&program, &inputs.each_ref())
            .unwrap();
        assert_eq!(served(&ran), ["twice/twice", "host", "host", "twice/twice"]);
        let results: Vec<Vec<f32>> = ran.results.iter().map(|r| device.floats(r)).collect();
        assert_eq!(results[0], [12.5, 36.125, 72.0]);
        assert_eq!(results[1], [1.0, 2.0, 3.0]);
        assert_eq!(results[2], [2.5, 4.25, 6.0]);
        assert_eq!(results[3], results[0]);
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn a_program_without_requests_gives_its_inputs_back() {
    let device = Device::open();
    let inputs = [device.upload(&[1.0]), device.upload(&[2.0])];
    let program = Program::new(2, NOTHING, [1, 1, 0]).unwrap();
    let ran = device
        .runtime
        .run_program(&program, &inputs.each_ref())
        .unwrap();
    let results: Vec<f32> = ran.results.iter().map(|r| device.floats(r)[0]).collect();
    assert_eq!(results, [2.0, 2.0, 1.0]);
    assert!(ran.served_by.is_empty());
}

#[test]
fn what_is_done_with_gives_its_memory_back() {
    const COUNT: usize = 1 << 18;
    let device = Device::open();
    let input = [device.upload(&vec![1.0; COUNT])];
    let before = device.runtime.stats().memory;
    let places: Vec<[Value; 1]> = (0..12).map(|value| [value]).collect();
    let chain = places
        .iter()
        .map(|place| request("twice", place, COUNT as u64));
    let program = Program::new(1, chain, [12]).unwrap();
    let ran = device
        .runtime
        .run_program(&program, &input.each_ref())
        .unwrap();
    let after = device.runtime.stats().memory;
    let tensor = 4 * COUNT as u64;
    assert_eq!(after.in_use - before.in_use, tensor);
    assert!(after.peak <= before.in_use + 2 * tensor, "{after:?}");
    assert_eq!(device.floats(&ran.results[0])[COUNT - 1], 4096.0);
}

#[test]
fn an_error_in_the_middle_names_the_request() {
    let device = Device::open();
    let inputs = [device.upload(&[1.0, 2.0, 3.0]), device.upload(&[1.0, 2.0])];
    let before = device.runtime.stats().memory.in_use;
    let run = |middle: Request<'_, Value>| -> Result<RanProgram> {
        let requests = [request("twice", &[0], 3), middle, request("twice", &[3], 3)];
        let program = Program::new(2, requests, [4])?;
        device.runtime.run_program(&program, &inputs.each_ref())
    };
    let clash = run(request("add", &[2, 1], 3)).unwrap_err().to_string();
    for part in ["request 2 of 3: ", "add", "f32[3], f32[2]"] {
        assert!(clash.contains(part), "{clash}");
    }
    let unknown = run(request("frobnicate", &[2], 3)).unwrap_err().to_string();
    let named = "request 2 of 3: nobody runs frobnicate(f32[3]) -> f32[3]";
    assert!(unknown.starts_with(named), "{unknown}");
    assert_eq!(device.runtime.stats().memory.in_use, before);
    assert!(run(request("add", &[2, 0], 3)).is_ok());
}

#[test]
fn a_program_takes_as_many_inputs_as_it_says() {
    let device = Device::open();
    let input = device.upload(&[1.0]);
    let program = Program::new(2, [request("add", &[0, 1], 1)], [2]).unwrap();
    let run = |inputs: &[Tensor]| {
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let ran = device.runtime.run_program(&program, &inputs);
        ran.map(drop).map_err(|error| error.to_string())
    };
    let expected = |got| Err(format!("expected 2 inputs of a program, got: {got}"));
    assert_eq!(run(&[]), expected(0));
    assert_eq!(run(std::slice::from_ref(&input)), expected(1));
    assert_eq!(run(&vec![input.clone(); 3]), expected(3));
    assert_eq!(run(&[input.clone(), input]), Ok(()));
}

#[test]
fn views_of_values_cost_no_request() {
    let device = Device::open();
    let input = [upload(&device.runtime, &[2, 2], &[1.0, 2.0, 3.0, 4.0])];
    let program = |shape: &[u64]| {
        let steps = [
            Step::View(0, View::Transpose(vec![1, 0])),
            Step::View(1, View::Reshape(shape.to_vec())),
            request("twice", &[2], 4).into(),
        ];
        Program::new(1, steps, [1, 3]).unwrap()
    };
    let run = |shape| {
        device
            .runtime
            .run_program(&program(shape), &input.each_ref())
    };
    let ran = run(&[4]).unwrap();
    assert_eq!(served(&ran), ["view", "view", "twice/twice"]);
    assert_eq!(ran.results[0].strides(), [1, 2]);
    // No layout of the same memory has that shape.
    assert_eq!(device.floats(&ran.results[1]), [2.0, 6.0, 4.0, 8.0]);
    let error = run(&[3]).unwrap_err();
    assert_eq!(error.kind(), Kind::BadInput);
    assert!(error.to_string().contains("request 2 of 3"), "{error}");
}

#[test]
fn a_program_goes_on_from_where_it_would_have_waited() {
    let device = Device::open();
    let inputs = [device.upload(&[1.0, 2.0])];
    let requests = [
        request("twice", &[0], 2),
        request("negate", &[1], 2),
        request("twice", &[2], 2),
    ];
    let program = Program::new(1, requests, [3]).unwrap().into_owned();
    // Nothing is planned yet, then only what the host runs needs somebody who may wait.
    for round in 0..2 {
        let progress = device
            .runtime
            .try_run_program(&program, &inputs.each_ref())
            .unwrap();
        assert_eq!(device.times_run("twice"), [0, 3][round]);
        let ran = progress.expect_err("the host runs it");
        let ran = device
            .runtime
            .resume_program(&program, &inputs.each_ref(), ran)
            .unwrap();
        assert_eq!(device.floats(&ran.results[0]), [-4.0, -8.0]);
        assert_eq!(served(&ran), ["twice/twice", "host", "twice/twice"]);
    }
    assert_eq!(device.times_run("twice"), 4);
    // A thread that was stopped on the way may find all done that it would have waited for.
    let try_run = || device.runtime.try_run_program(&program, &inputs.each_ref());
    let mut begun = std::iter::repeat_with(|| try_run().unwrap()).take(1000);
    let other = begun
        .find_map(std::result::Result::err)
        .expect("the host runs it");
    let alone = Program::new(1, [request("twice", &[0], 2)], [1]).unwrap();
    let mixed = Program::new(1, NOTHING, [0]).unwrap();
    let other = device
        .runtime
        .resume_program(&mixed, &inputs.each_ref(), other);
    assert!(other.unwrap_err().to_string().contains("another's"));
    let ran = device
        .runtime
        .try_run_program(&alone, &inputs.each_ref())
        .unwrap();
    assert_eq!(device.floats(&ran.unwrap().results[0]), [2.0, 4.0]);
}
