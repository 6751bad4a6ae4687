//! Results that wait for their reader: with the bits and errors that they have at once, whoever asks for them and when.

mod limits;

use crate::{folder::Folder, packs::copied};
use nx_vulkan_host::{
    Config, DType, DeviceChoice, Kind, Lazy, Operand, Request, Runtime, Tensor, device,
};
use std::{sync::Arc, thread};

const SHAPE: [u64; 2] = [5, 60];

/// By which nothing is timed.
const RULES: &str = "schema = 1\n[defaults]\nmeasure = \"never\"\n";

struct Setup {
    runtime: Arc<Runtime>,
    folder: Folder,
}

/// A value of both kinds: made at once, and one that may wait.
#[derive(Clone)]
struct Value {
    now: Arc<Tensor>,
    later: Operand,
}

fn open(is_lazy: bool) -> Setup {
    let device = std::env::var("NX_VULKAN_DEVICE").unwrap_or_else(|_| "llvmpipe".to_owned());
    let folder = Folder::new();
    let runtime = Runtime::open(&Config {
        device: DeviceChoice::parse(&device),
        packs: vec![copied(&folder, &["elementwise", "closure"])],
        registry: Some(folder.write("registry.toml", RULES)),
        cache_dir: Some(folder.join("cache")),
        validation: true,
        lazy: Some(is_lazy),
        ..Config::from_env()
    });
    Setup {
        runtime: runtime.unwrap(),
        folder,
    }
}

fn lazy(operand: &Operand) -> Option<Arc<Lazy>> {
    match operand {
        Operand::Lazy(lazy) => Some(lazy.clone()),
        Operand::Made(..) => None,
    }
}

impl Setup {
    fn upload(&self, dtype: DType, bytes: &[u8]) -> Value {
        let shape = match bytes.len() as u64 == dtype.size() {
            true => &[],
            false => &SHAPE[..],
        };
        let now = Arc::new(self.runtime.upload(dtype, shape, bytes).unwrap());
        let element = shape.is_empty().then(|| bytes.into());
        let later = Operand::Made(now.clone(), element);
        Value { now, later }
    }

    fn floats(&self, seed: u32) -> Value {
        let float = |i: u32| ((i * 37 + seed * 101) % 251) as f32 / 125.5 - 1.0;
        let bytes = (0..300).flat_map(|i| float(i).to_ne_bytes());
        self.upload(DType::F32, &bytes.collect::<Vec<u8>>())
    }

    fn integers(&self, seed: i32) -> Value {
        let bytes = (0..300).flat_map(|i| ((i * 7_919 + seed) % 1_000 - 500).to_ne_bytes());
        self.upload(DType::S32, &bytes.collect::<Vec<u8>>())
    }

    /// The op on values, at once and for later. What never ran does not wait.
    fn op(&self, op: &str, of: &[&Value], dtype: DType) -> Value {
        let output = (dtype, SHAPE.to_vec());
        let inputs: Vec<&Tensor> = of.iter().map(|value| &*value.now).collect();
        let outputs = [output.clone()];
        let request = Request::new(op, &inputs, &outputs, &[]);
        let now = Arc::new(self.runtime.run(&request).unwrap().remove(0));
        let operands = of.iter().map(|value| value.later.clone());
        let later = match self.runtime.defer(op, operands, &output) {
            Some(lazy) => Operand::Lazy(lazy),
            None => Operand::Made(now.clone(), None),
        };
        Value { now, later }
    }

    fn settle(&self, values: &[&Value]) -> Vec<Arc<Tensor>> {
        let lazies: Vec<_> = values.iter().filter_map(|v| lazy(&v.later)).collect();
        self.runtime.settle(&lazies).unwrap();
        let tensors = values.iter().map(|value| match &value.later {
            Operand::Made(tensor, _) => tensor.clone(),
            Operand::Lazy(lazy) => lazy.made().unwrap(),
        });
        tensors.collect()
    }

    #[track_caller]
    fn check(&self, value: &Value) {
        let later = self.settle(&[value]).remove(0);
        let read = |tensor: &Tensor| self.runtime.download(tensor, None).unwrap();
        assert!(read(&later) == read(&value.now), "other bits");
    }

    fn served(&self, op: &str) -> u64 {
        let served = self.runtime.stats().served;
        let of_it = served.iter().filter(|row| row.0 == op);
        of_it.map(|row| row.2).sum()
    }
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % n
    }
}

#[test]
fn random_graphs_have_the_bits_that_they_have_op_by_op() {
    let setup = open(true);
    let mut waited = 0;
    for seed in 0..8 {
        // Each graph comes five times: at once, then one by one, then fused.
        for _ in 0..5 {
            let mut dice = Dice(seed);
            let mut floats: Vec<Value> = (0..3).map(|seed| setup.floats(seed)).collect();
            let mut integers: Vec<Value> = (0..2).map(|seed| setup.integers(seed)).collect();
            let amount = setup.upload(DType::U8, &[3]);
            let half = setup.upload(DType::F32, &0.5f32.to_ne_bytes());
            for _ in 0..40 {
                let (a, b) = (dice.below(floats.len()), dice.below(floats.len()));
                let (m, n) = (dice.below(integers.len()), dice.below(integers.len()));
                match dice.below(9) {
                    0 => floats.push(setup.op("add", &[&floats[a], &floats[b]], DType::F32)),
                    1 => floats.push(setup.op("subtract", &[&floats[a], &floats[b]], DType::F32)),
                    2 => floats.push(setup.op("multiply", &[&floats[a], &half], DType::F32)),
                    3 => floats.push(setup.op("tanh", &[&floats[a]], DType::F32)),
                    4 => integers.push(setup.op("add", &[&integers[m], &integers[n]], DType::S32)),
                    5 => {
                        let shifted = setup.op("left_shift", &[&integers[m], &amount], DType::S32);
                        integers.push(shifted);
                    }
                    6 => {
                        let both = [&integers[m], &integers[n]];
                        integers.push(setup.op("bitwise_xor", &both, DType::S32));
                    }
                    7 => floats.push(setup.op("as_type", &[&integers[m]], DType::F32)),
                    _ => {
                        let narrow = setup.op("as_type", &[&floats[a]], DType::BF16);
                        floats.push(setup.op("as_type", &[&narrow], DType::F32));
                    }
                }
                // Somebody asks for what came before.
                if dice.below(9) == 0 {
                    setup.check(&floats[dice.below(floats.len())]);
                }
            }
            waited += floats.iter().filter(|v| lazy(&v.later).is_some()).count();
            floats.iter().chain(&integers).for_each(|v| setup.check(v));
        }
    }
    assert!(waited > 300, "{waited} waited");
    assert!(setup.served("fused") > 50, "{}", setup.served("fused"));
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn what_comes_again_runs_as_one_and_what_nobody_reads_does_not_run() {
    let setup = open(true);
    let (x, y) = (setup.floats(1), setup.floats(2));
    let chain = || {
        let sum = setup.op("add", &[&x, &y], DType::F32);
        let half = setup.op("tanh", &[&sum], DType::F32);
        setup.op("multiply", &[&half, &sum], DType::F32)
    };
    chain();
    for run in 0..5 {
        let before = (setup.served("tanh"), setup.served("fused"));
        let last = chain();
        assert!(lazy(&last.later).unwrap().made().is_none());
        setup.check(&last);
        let after = (setup.served("tanh"), setup.served("fused"));
        // The reference at once is one of them.
        let one_by_one = u64::from(run < 2);
        assert_eq!(
            after,
            (before.0 + 1 + one_by_one, before.1 + 1 - one_by_one)
        );
    }
    let before = setup.served("fused");
    drop(chain());
    setup.runtime.sync().unwrap();
    assert_eq!(setup.served("fused"), before);
    let last = chain();
    setup.runtime.sync().unwrap();
    assert!(lazy(&last.later).unwrap().made().is_some());
    setup.check(&last);
}

#[test]
fn what_was_computed_on_the_way_is_computed_once_more_at_most() {
    let setup = open(true);
    let x = setup.floats(1);
    let middle = setup.op("tanh", &[&x], DType::F32);
    let last = || setup.op("exp", &[&middle], DType::F32);
    last();
    let middle = setup.op("tanh", &[&x], DType::F32);
    let last = || setup.op("exp", &[&middle], DType::F32);
    let ran = setup.served("tanh");
    setup.check(&last());
    assert!(lazy(&middle.later).unwrap().made().is_none());
    setup.check(&last());
    assert!(lazy(&middle.later).unwrap().made().is_some());
    for _ in 0..3 {
        setup.check(&last());
    }
    assert_eq!(setup.served("tanh"), ran + 2);
}

#[test]
fn long_chains_run_in_pieces() {
    let setup = open(true);
    let x = setup.floats(1);
    let mut last = setup.op("tanh", &[&x], DType::F32);
    for _ in 0..2_000 {
        last = setup.op("tanh", &[&last], DType::F32);
    }
    assert!(lazy(&last.later).unwrap().made().is_none());
    assert!(setup.served("tanh") > 2_000);
    setup.check(&last);
}

#[test]
fn an_error_comes_with_the_result_and_names_the_op() {
    let setup = open(true);
    let x = setup.integers(1);
    let amounts = |last: i32| {
        let mut all = vec![2i32; 300];
        all[299] = last;
        let bytes: Vec<u8> = all.iter().flat_map(|n| n.to_ne_bytes()).collect();
        setup.upload(DType::S32, &bytes)
    };
    for run in 0..4 {
        let shift = |by: &Value| {
            let shifted = setup.op("left_shift", &[&x, by], DType::S32);
            let sum = setup.op("add", &[&shifted, &x], DType::S32);
            setup.op("negate", &[&sum], DType::S32)
        };
        setup.check(&shift(&amounts(3)));
        let wrong = shift(&amounts(-1));
        let other = setup.op("add", &[&x, &x], DType::S32);
        assert!(run == 0 || lazy(&wrong.later).is_some(), "{run}");
        let tensor = setup.settle(&[&wrong]).remove(0);
        let error = setup.runtime.download(&tensor, None).unwrap_err();
        assert_eq!(error.kind(), Kind::BadInput);
        let text = error.to_string();
        assert!(
            text.contains("shift") && text.contains("a negative shift amount"),
            "{text}"
        );
        setup.check(&other);
    }
}

#[test]
fn many_may_ask_for_the_same() {
    let setup = open(true);
    let (x, y) = (setup.floats(1), setup.floats(2));
    let build = || {
        let mut all = vec![setup.op("add", &[&x, &y], DType::F32)];
        for index in 0..30 {
            let other = &all[index / 2];
            let next = setup.op("subtract", &[&all[index], other], DType::F32);
            all.push(next);
        }
        all
    };
    build().iter().for_each(|value| setup.check(value));
    for _ in 0..10 {
        let all = build();
        thread::scope(|scope| {
            for skip in 0..8 {
                let (all, setup) = (&all, &setup);
                scope.spawn(move || all.iter().skip(skip).rev().for_each(|v| setup.check(v)));
            }
            scope.spawn(|| setup.runtime.sync().unwrap());
        });
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn nothing_waits_where_it_is_turned_off() {
    let setup = open(false);
    let x = setup.floats(1);
    for _ in 0..3 {
        assert!(lazy(&setup.op("tanh", &[&x], DType::F32).later).is_none());
    }
}
