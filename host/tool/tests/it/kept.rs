//! What kernels make of an operand alone, kept with it: when, for how long, and that results never show it.

use crate::{folder::Folder, packs::built};
use nx_vulkan_host::{
    Config, DType, Kind, MemoryBudget, Request, Result, Runtime, Tensor, device,
    module::{Binding, Launch},
};
use std::{fs, sync::Arc, thread};

const COUNT: u64 = 1000;
const MIB: u64 = 1 << 20;

struct Setup {
    runtime: Arc<Runtime>,
    folder: Folder,
}

/// A runtime with the pack whose op `derives` copies its input into a scratch buffer, and that to the result.
fn open(memory: MemoryBudget, kept: MemoryBudget) -> Setup {
    let folder = Folder::new();
    folder.write("packs/bad.so", fs::read(built("bad")).unwrap());
    let text = "schema = 1\n[search]\npaths = [\"packs\"]\n[dev]\nwatch = [\"shaders\"]\n";
    let registry = folder.write("registry.toml", text);
    let runtime = Runtime::open(&Config {
        registry: Some(registry),
        cache_dir: Some(folder.join("cache")),
        validation: true,
        memory,
        kept,
        ..Config::from_env()
    });
    Setup {
        runtime: runtime.unwrap(),
        folder,
    }
}

fn usual() -> Setup {
    open(MemoryBudget::Auto, MemoryBudget::Auto)
}

fn values(count: u64, first: u32) -> Vec<u8> {
    let values = (0..count as u32).map(|i| i.wrapping_mul(3) + first);
    values.flat_map(u32::to_ne_bytes).collect()
}

impl Setup {
    fn tensor(&self, count: u64, first: u32) -> Tensor {
        let bytes = values(count, first);
        self.runtime.upload(DType::U32, &[count], &bytes).unwrap()
    }

    fn run(&self, op: &str, input: &Tensor) -> Result<Tensor> {
        let outputs = [(input.dtype(), input.shape().to_vec())];
        let inputs = [input];
        let ran = self
            .runtime
            .run(&Request::new(op, &inputs, &outputs, &[]))?;
        Ok(ran.into_iter().next().unwrap())
    }

    /// Commands that a run of `derives` takes, whose result is the input.
    #[track_caller]
    fn commands(&self, input: &Tensor, expected: &[u8]) -> u64 {
        let before = self.runtime.recorded();
        let result = self.run("derives", input).unwrap();
        let commands = self.runtime.recorded() - before;
        assert!(self.runtime.download(&result, None).unwrap() == expected);
        commands
    }

    /// Bytes that are kept, in how many buffers.
    fn kept(&self) -> (u64, u64) {
        let kept = self.runtime.stats().kept;
        (kept.bytes, kept.buffers)
    }
}

#[test]
fn the_second_use_makes_it_and_the_third_leaves_that_out() {
    let setup = usual();
    let (input, bytes) = (setup.tensor(COUNT, 0), values(COUNT, 0));
    assert_eq!(setup.commands(&input, &bytes), 2);
    assert_eq!(setup.kept(), (0, 0), "nothing is kept of what is used once");
    let before = setup.runtime.stats().memory.in_use;
    assert_eq!(setup.commands(&input, &bytes), 2);
    let (held, buffers) = setup.kept();
    assert!(held >= 4 * COUNT && buffers == 1);
    assert_eq!(setup.runtime.stats().memory.in_use, before + held);
    for _ in 0..3 {
        assert_eq!(setup.commands(&input, &bytes), 1);
    }
    assert_eq!(setup.runtime.stats().kept.reused, 3);

    // Another part of the same memory is something else, and another tensor with the same elements too.
    let half = input.slice(&[0], &[COUNT / 2], &[1]).unwrap();
    let part = &bytes[..bytes.len() / 2];
    assert_eq!([(); 3].map(|()| setup.commands(&half, part)), [2, 2, 1]);
    // Two parts that are laid out alike share a plan, and nothing else.
    for (start, commands) in [(64, [2, 2, 1]), (128, [2, 2, 1]), (64, [1, 1, 1])] {
        let part = input.slice(&[start], &[64], &[1]).unwrap();
        let expected = &bytes[4 * start as usize..][..256];
        assert_eq!([(); 3].map(|()| setup.commands(&part, expected)), commands);
    }
    let other = setup.tensor(COUNT, 0);
    assert_eq!([(); 3].map(|()| setup.commands(&other, &bytes)), [2, 2, 1]);
    // An op with the same steps uses what is there.
    let recorded = setup.runtime.recorded();
    let same = setup.run("derives_too", &input).unwrap();
    assert_eq!(setup.runtime.recorded() - recorded, 1);
    assert_eq!(setup.runtime.download(&same, None).unwrap(), bytes);

    assert_eq!(setup.kept().1, 5);
    drop((input, half));
    assert_eq!(setup.kept().1, 1, "it goes with the tensor");
    drop(other);
    assert_eq!(setup.kept(), (0, 0));
    assert_eq!(device::validation_messages(), [""; 0]);
}

/// Adds what is pushed to the first element.
const WRITES: &str = "#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { uint x[]; };
void main() { x[0] += 5; }";

#[test]
fn a_write_to_the_tensor_makes_it_old() {
    let setup = usual();
    let module = setup.runtime.module_of(WRITES).unwrap();
    let input = setup.tensor(COUNT, 0);
    let uses = |first: u32| {
        let mut bytes = values(COUNT, 0);
        bytes[..4].copy_from_slice(&first.to_ne_bytes());
        [(); 3].map(|()| setup.commands(&input, &bytes))
    };
    assert_eq!(uses(0), [2, 2, 1]);
    for first in [5, 10] {
        let launch = Launch {
            bindings: &[Binding::write(&input)],
            constants: &[],
            push: &[],
            groups: [1; 3],
        };
        setup.runtime.launch(&module, &launch).unwrap();
        assert_eq!(uses(first), [2, 2, 1]);
        assert_eq!(setup.kept().1, 1);
    }
}

#[test]
fn nothing_is_kept_of_memory_that_others_write() {
    let setup = usual();
    let (input, mut bytes) = (setup.tensor(COUNT, 0), values(COUNT, 0));
    assert_eq!([(); 3].map(|()| setup.commands(&input, &bytes)), [2, 2, 1]);
    let (input, address) = setup.runtime.expose(&input).unwrap();
    for first in [7u32, 8, 9, 10] {
        // SAFETY: the first element lies there as long as `input` lives, and no command that reads it is under way.
        unsafe { (address as *mut u32).write(first) };
        bytes[..4].copy_from_slice(&first.to_ne_bytes());
        assert_eq!(setup.commands(&input, &bytes), 2);
    }
    let same = setup.runtime.tensor_at(address, DType::U32, &[COUNT]);
    assert_eq!(setup.commands(&same.unwrap(), &bytes), 2);
    drop(input);
    assert_eq!(setup.kept(), (0, 0));
}

#[test]
fn an_edited_shader_makes_it_anew() {
    let setup = usual();
    let (input, mut bytes) = (setup.tensor(COUNT, 0), values(COUNT, 0));
    assert_eq!([(); 3].map(|()| setup.commands(&input, &bytes)), [2, 2, 1]);
    let text = include_str!("../fixtures/bad_pack/shaders/copy.comp");
    let edited = text.replace("y[i] = x[i];", "y[i] = x[i] + 1;");
    assert_ne!(text, edited);
    let file = setup.folder.write("shaders/bad/copy.comp", edited);
    setup.runtime.reload();
    assert_eq!(setup.kept(), (0, 0));
    // Both steps add 1.
    let old = std::mem::replace(&mut bytes, values(COUNT, 2));
    assert_eq!([(); 3].map(|()| setup.commands(&input, &bytes)), [2, 2, 1]);
    fs::remove_file(file).unwrap();
    setup.runtime.reload();
    // It is known to be used again.
    assert_eq!([(); 2].map(|()| setup.commands(&input, &old)), [2, 1]);
}

#[test]
fn no_more_is_kept_than_the_setting_says() {
    let setup = open(MemoryBudget::Auto, MemoryBudget::Bytes(5 * MIB));
    assert_eq!(setup.runtime.stats().kept.limit, 5 * MIB);
    let count = MIB / 2;
    let tensors: Vec<Tensor> = (0..4).map(|i| setup.tensor(count, i)).collect();
    let uses = |i: usize| {
        let bytes = values(count, i as u32);
        let commands = setup.commands(&tensors[i], &bytes);
        assert!(setup.kept().0 <= 5 * MIB);
        commands
    };
    for i in 0..4 {
        assert_eq!([uses(i), uses(i)], [2, 2]);
    }
    // The two that were used last.
    assert_eq!([uses(3), uses(2)], [1, 1]);
    assert_eq!(setup.kept().1, 2);
    // One more takes the place of that whose use is longest ago.
    assert_eq!([uses(0), uses(0), uses(2), uses(3)], [2, 1, 1, 2]);
    let large = setup.tensor(2 * MIB, 0);
    let bytes = values(2 * MIB, 0);
    assert_eq!([(); 3].map(|()| setup.commands(&large, &bytes)), [2; 3]);
    assert_eq!(setup.kept().1, 2);

    let off = open(MemoryBudget::Auto, MemoryBudget::Bytes(0));
    let (input, bytes) = (off.tensor(COUNT, 0), values(COUNT, 0));
    assert_eq!([(); 3].map(|()| off.commands(&input, &bytes)), [2; 3]);
}

#[test]
fn what_is_kept_goes_before_memory_is_short() {
    let setup = open(MemoryBudget::Bytes(100 * MIB), MemoryBudget::Share(500));
    // Of 64 MiB that are taken from the driver 48 are free but for what is kept in their midst.
    let count = 4_000_000;
    let (input, bytes) = (setup.tensor(count, 0), values(count, 0));
    assert_eq!([(); 3].map(|()| setup.commands(&input, &bytes)), [2, 2, 1]);
    assert_eq!(setup.kept().1, 1);
    let zeros = |mib: u64| setup.runtime.zeros(DType::U8, &[mib * MIB]);
    let large = zeros(40).unwrap();
    assert_eq!(setup.kept(), (0, 0));
    let error = zeros(120).unwrap_err();
    assert_eq!(error.kind(), Kind::OutOfMemory, "{error}");
    drop(large);
    // For a while less is kept than was given up.
    assert_eq!([(); 2].map(|()| setup.commands(&input, &bytes)), [2; 2]);
    assert_eq!(setup.kept(), (0, 0));
    let (small, bytes) = (setup.tensor(COUNT, 0), values(COUNT, 0));
    assert_eq!([(); 3].map(|()| setup.commands(&small, &bytes)), [2, 2, 1]);
    setup.runtime.trim().unwrap();
    assert_eq!(setup.kept(), (0, 0));
    assert_eq!(setup.commands(&small, &bytes), 2);
}

#[test]
fn threads_share_what_is_kept_while_it_comes_and_goes() {
    let setup = open(MemoryBudget::Auto, MemoryBudget::Bytes(20 << 10));
    let tensors: Vec<Tensor> = (0..6).map(|i| setup.tensor(COUNT, i)).collect();
    thread::scope(|scope| {
        for worker in 0..4usize {
            let (setup, tensors) = (&setup, &tensors);
            scope.spawn(move || {
                for turn in 0..80usize {
                    let which = (turn * (worker + 1) + turn / 7) % tensors.len();
                    let result = setup.run("derives", &tensors[which]).unwrap();
                    let bytes = setup.runtime.download(&result, None).unwrap();
                    assert!(bytes == values(COUNT, which as u32));
                    if turn % 40 == worker {
                        setup.runtime.trim().unwrap();
                    }
                }
            });
        }
    });
    let kept = setup.runtime.stats().kept;
    assert!(kept.reused > 0 && kept.bytes <= kept.limit, "{kept:?}");
    drop(tensors);
    assert_eq!(setup.kept(), (0, 0));
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn what_a_plan_says_of_its_steps_has_to_hold() {
    let setup = usual();
    let input = setup.tensor(COUNT, 0);
    for (op, why) in [
        (
            "bad_derive_input",
            "input 7 alone, and there is no such input",
        ),
        (
            "bad_derive_scratch",
            "scratch buffer 1 is said to depend on input 0 alone, and there is no such buffer",
        ),
        ("bad_derive_unfilled", "and no step fills it"),
        ("bad_derive_twice", "which is said of it twice"),
        (
            "bad_derive_output",
            "and step 1 fills it and has output 0 too",
        ),
        (
            "bad_derive_late",
            "and step 2 fills it once another has read it",
        ),
        ("bad_derive_repeats", "and step 0 fills it and repeats"),
        (
            "bad_derive_counts",
            "and step 0 fills it by workgroup counts of the device",
        ),
        ("bad_derive_spare", "the pack needs a newer host"),
    ] {
        let error = setup.run(op, &input).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported, "{error}");
        assert!(error.to_string().contains(why), "{op}: {error}");
    }
    assert_eq!(setup.commands(&input, &values(COUNT, 0)), 2);
}

#[test]
fn a_kernel_without_room_for_its_scratch_buffers_makes_way() {
    let setup = open(MemoryBudget::Bytes(64 * MIB), MemoryBudget::Auto);
    let (input, bytes) = (setup.tensor(COUNT, 0), values(COUNT, 0));
    let outputs = [(DType::U32, vec![COUNT])];
    let inputs = [&input];
    for _ in 0..2 {
        let request = Request::new("hungry", &inputs, &outputs, &[]);
        let ran = setup.runtime.run_reported(&request).unwrap();
        assert_eq!(&*ran.served_by, "bad/frugal_32");
        assert_eq!(
            setup.runtime.download(&ran.outputs[0], None).unwrap(),
            bytes
        );
    }
    // A result without room is no reason to ask another kernel.
    let outputs = [(DType::U32, vec![1 << 40])];
    let request = Request::new("hungry", &inputs, &outputs, &[]);
    let error = setup.runtime.run_reported(&request).unwrap_err();
    assert_eq!(error.kind(), Kind::OutOfMemory, "{error}");
}
