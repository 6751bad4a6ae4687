//! Times that a runtime takes itself on a CPU device, and what it does by them.

use crate::{folder::Folder, packs};
use nx_vulkan_host::{Config, DType, Request, Runtime, Spec, Tensor, Times};
use nx_vulkan_ops::{find, infer::infer};
use std::{fs, sync::Arc};

const LARGE: u64 = 1 << 16;

fn open(folder: &Folder, times: Times) -> Arc<Runtime> {
    Runtime::open(&Config {
        packs: vec![folder.join("packs")],
        cache_dir: Some(folder.join("cache")),
        registry: Some(folder.join("registry.toml")),
        registry_override: None,
        times,
        ..Config::from_env()
    })
    .unwrap()
}

fn added(elements: u64) -> Request<'static, Spec> {
    let spec = (DType::F32, vec![elements]);
    infer(find("add").unwrap(), &[spec.clone(), spec], None, &[]).unwrap()
}

/// Adds a tensor of so many elements to itself; who did it, and how many fallbacks there were by then.
fn add(runtime: &Runtime, elements: u64) -> (String, u64) {
    let bytes: Vec<u8> = (0..elements)
        .flat_map(|i| (i as f32).to_ne_bytes())
        .collect();
    let x = runtime.upload(DType::F32, &[elements], &bytes).unwrap();
    let request = added(elements);
    let request: Request<'_, &Tensor> = request.over(vec![&x, &x]);
    let ran = runtime.run_reported(&request).unwrap();
    let sums = runtime.download(&ran.outputs[0], None).unwrap();
    let sums = sums
        .as_chunks()
        .0
        .iter()
        .map(|cell| f32::from_ne_bytes(*cell));
    assert!(sums.zip(0..).all(|(sum, i)| sum == 2.0 * i as f32));
    (ran.served_by.to_string(), runtime.stats().fallbacks)
}

/// Microseconds of the pack's kernel and of the host for that size.
fn times(runtime: &Runtime, elements: u64) -> [Option<f64>; 2] {
    let shape = [elements];
    let x = (DType::F32, &shape[..]);
    let table = runtime.table();
    let sha256 = &table.packs[0].sha256;
    [("elementwise/add", sha256.as_str()), ("host", "")]
        .map(|kernel| runtime.measured().time("add", &[x, x], &[x], kernel))
}

fn folder(registry: &str) -> Folder {
    let folder = Folder::new();
    packs::copied(&folder, &["elementwise"]);
    folder.write("registry.toml", registry);
    folder
}

#[test]
fn the_faster_of_pack_and_host_serves() {
    let folder = folder("schema = 1\n");
    let runtime = open(&folder, Times::Taken);
    if runtime.device().summary().kind != "cpu" {
        eprintln!("not tested: nothing is measured on a GPU");
        return;
    }
    add(&runtime, 100);
    assert!(times(&runtime, 100).iter().all(Option::is_some));

    let (served_by, fallbacks) = add(&runtime, LARGE);
    let [Some(pack), Some(host)] = times(&runtime, LARGE) else {
        panic!("not measured: {:?}", times(&runtime, LARGE));
    };
    let faster = if host < pack {
        "host"
    } else {
        "elementwise/add"
    };
    assert_eq!(served_by, faster);
    assert_eq!(add(&runtime, LARGE).0, faster);
    // A host that runs it because it is faster is no fallback; the one run that times it is.
    assert_eq!(add(&runtime, LARGE).1, fallbacks);

    let explained = runtime.explain(&added(LARGE)).unwrap();
    let [first, second] = &explained.candidates[..] else {
        panic!("{explained}");
    };
    let (least, most) = (pack.min(host), pack.max(host));
    assert_eq!((&*first.kernel, first.measured_us), (faster, Some(least)));
    let picked = format!("; measured {least:.1} us");
    assert!(first.reason.ends_with(&picked), "{explained}");
    let slower = format!("measured {most:.1} us, {faster} {least:.1} us");
    assert_eq!((&second.reason, second.measured_us), (&slower, Some(most)));

    drop(runtime);
    let later = open(&folder, Times::Read);
    let kept = times(&later, LARGE).map(Option::unwrap);
    let same = |(a, b): (f64, f64)| (a - b).abs() < 1e-6 * b;
    assert!(kept.into_iter().zip([pack, host]).all(same), "{kept:?}");
    assert_eq!(add(&later, LARGE).0, faster);
}

#[test]
fn another_file_of_a_pack_is_measured_anew() {
    let folder = folder("schema = 1\n");
    let runtime = open(&folder, Times::Taken);
    if runtime.device().summary().kind != "cpu" {
        eprintln!("not tested: nothing is measured on a GPU");
        return;
    }
    add(&runtime, LARGE);
    assert!(times(&runtime, LARGE).iter().all(Option::is_some));
    drop(runtime);

    let library = folder.join("packs/elementwise.so");
    let mut bytes = fs::read(&library).unwrap();
    bytes.push(0);
    fs::write(&library, bytes).unwrap();
    let runtime = open(&folder, Times::Taken);
    assert_eq!(times(&runtime, LARGE)[0], None, "that was another file");
    add(&runtime, LARGE);
    assert!(times(&runtime, LARGE).iter().all(Option::is_some));
}

#[test]
fn nothing_is_measured_where_the_registry_says_never() {
    let folder = folder("schema = 1\n[defaults]\nmeasure = \"never\"\n");
    let runtime = open(&folder, Times::Taken);
    assert_eq!(add(&runtime, LARGE), ("elementwise/add".to_owned(), 0));
    assert!(runtime.measured().is_empty());
}

/// What takes the host little time needs no scheduler of its own from then on.
#[test]
fn short_work_of_the_host_waits_for_nobody() {
    let folder = folder("schema = 1\n[[op]]\nname = \"add\"\nuse = [\"host\"]\n");
    let runtime = open(&folder, Times::Ignored);
    if runtime.device().summary().kind != "cpu" {
        eprintln!("not tested: the memory of a GPU is not the host's");
        return;
    }
    let x = runtime.upload(DType::F32, &[4], &[0; 16]).unwrap();
    let outputs = [(DType::F32, vec![4])];
    let operands = [&x, &x];
    let request = Request::new("add", &operands, &outputs, &[]);
    let now = || runtime.try_run_cached(&request).unwrap();
    assert!(now().is_none(), "nobody knows how long it takes");
    // A busy machine may take long over some of them.
    let soon = (0..100).find_map(|_| {
        assert_eq!(&*runtime.run_reported(&request).unwrap().served_by, "host");
        now().map(|ran| ran.served_by.to_string())
    });
    assert_eq!(soon, Some("host".to_owned()));
}
