//! What does not wait, or no longer: memory that others write, rules that change, much memory, and many results at once.

use super::*;

#[test]
fn what_others_may_write_is_read_at_once() {
    let setup = open(true);
    let x = setup.floats(1);
    setup.op("tanh", &[&x], DType::F32);
    assert!(lazy(&setup.op("tanh", &[&x], DType::F32).later).is_some());
    // One that is passed over, and one that nobody asks for.
    let (middle, other) = (
        setup.op("tanh", &[&x], DType::F32),
        setup.op("tanh", &[&x], DType::F32),
    );
    setup.op("exp", &[&middle], DType::F32);
    let last = setup.op("exp", &[&middle], DType::F32);
    setup.check(&last);
    assert!(lazy(&middle.later).unwrap().made().is_none());
    let (exposed, address) = setup.runtime.expose(&x.now).unwrap();
    // SAFETY: the tensor that is exposed lives on, and has 300 elements at its address.
    unsafe { std::ptr::write_bytes(address as *mut f32, 0, 300) };
    setup.check(&middle);
    setup.check(&other);
    let now = Arc::new(exposed);
    let later = Operand::Made(now.clone(), None);
    let x = Value { now, later };
    assert!(lazy(&setup.op("tanh", &[&x], DType::F32).later).is_none());
}

#[test]
fn what_waits_holds_a_part_of_the_memory_at_most() {
    let device = std::env::var("NX_VULKAN_DEVICE").unwrap_or_else(|_| "llvmpipe".to_owned());
    let folder = Folder::new();
    let runtime = Runtime::open(&Config {
        device: DeviceChoice::parse(&device),
        packs: vec![copied(&folder, &["elementwise"])],
        registry: Some(folder.write("registry.toml", RULES)),
        cache_dir: Some(folder.join("cache")),
        lazy: Some(true),
        memory: nx_vulkan_host::MemoryBudget::Bytes(257 << 20),
        ..Config::from_env()
    })
    .unwrap();
    let output = (DType::U8, vec![1 << 10]);
    let outputs = [output.clone()];
    let made = |_| runtime.zeros(DType::F32, &[1 << 20]).unwrap();
    let first = made(0).slice(&[0], &[1 << 10], &[1]).unwrap();
    let inputs = [&first];
    runtime
        .run(&Request::new("as_type", &inputs, &outputs, &[]))
        .unwrap();
    // All of the memory that a view lies in counts.
    let defer = |tensor: Tensor| {
        let view = tensor.slice(&[0], &[1 << 10], &[1]).unwrap();
        let operand = Operand::Made(Arc::new(view), None);
        runtime.defer("as_type", [operand], &output)
    };
    let waiting: Vec<_> = (0..16).map(|at| defer(made(at))).collect();
    let count = |all: &[Option<Arc<Lazy>>]| all.iter().flatten().count();
    assert_eq!(count(&waiting), 8);
    let some: Vec<Arc<Lazy>> = waiting.iter().flatten().take(4).cloned().collect();
    runtime.settle(&some).unwrap();
    let more: Vec<_> = (0..16).map(|at| defer(made(at))).collect();
    assert_eq!(count(&more), 4);
    drop((waiting, more));
    assert_eq!(
        count(&(0..16).map(|at| defer(made(at))).collect::<Vec<_>>()),
        8
    );
}

#[test]
fn rules_that_come_do_not_change_what_was_called_before() {
    let setup = open(true);
    let x = setup.floats(1);
    let tanh = || setup.op("tanh", &[&x], DType::F32);
    tanh();
    let (middle, other) = (tanh(), tanh());
    let last = |of: &Value| setup.op("exp", &[of], DType::F32);
    last(&middle);
    setup.check(&last(&middle));
    let waiting = |value: &Value| lazy(&value.later).unwrap().made().is_none();
    assert!(waiting(&middle) && waiting(&other));
    let deny = "[[deny]]\nop = \"tanh\"\npack = \"elementwise\"\nreason = \"a test\"\n";
    let text = format!("{RULES}fallback = \"error\"\n{deny}");
    setup.folder.write("registry.toml", &text);
    setup.runtime.reload();
    assert!(!waiting(&middle) && !waiting(&other));
    setup.check(&middle);
    setup.check(&other);
    let inputs = [&*x.now];
    let outputs = [(DType::F32, SHAPE.to_vec())];
    let denied = Request::new("tanh", &inputs, &outputs, &[]);
    assert_eq!(
        setup.runtime.run(&denied).unwrap_err().kind(),
        Kind::FallbackForbidden
    );
}

#[test]
fn many_are_run_in_pieces() {
    let setup = open(true);
    let (x, y) = (setup.floats(1), setup.floats(2));
    let sum = |of: &Value| setup.op("add", &[of, &y], DType::F32);
    sum(&x);
    let mut all = vec![sum(&x)];
    for _ in 0..20 {
        let next = sum(&all[all.len() - 1]);
        all.push(next);
    }
    // One of many, and all of them: more than are settled at once, which waits for a thread that may.
    let lazies: Vec<_> = all.iter().filter_map(|v| lazy(&v.later)).collect();
    assert!(!setup.runtime.try_settle(&lazies).unwrap());
    assert!(setup.runtime.try_settle(&lazies[20..]).unwrap());
    setup.runtime.settle(&lazies).unwrap();
    all.iter().for_each(|value| setup.check(value));
    // Nothing is left, also of what was passed over and is needed no more.
    assert!(
        setup
            .runtime
            .try_sync(std::time::Duration::from_secs(20))
            .unwrap()
    );
}
