//! What `pack!` supplies: hooks, the log, and a guard that turns every panic into an answer and a line of the log.

use nx_vulkan_abi::{
    __abi_stable::prefix_type::PrefixTypeTrait as _, Description, DeviceInfo, Fault, HostApi,
    Level, Outcome, Plan, RStr, Refusal, Request, Row, host, log,
};
use std::sync::Mutex;

nx_vulkan_abi::pack! {
    id: "demo", version: "1.0.0", describe: describe, plan: plan, init: init, retire: retire
}

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

extern "C" fn keep(level: Level, pack: RStr<'_>, message: RStr<'_>) {
    LINES
        .lock()
        .unwrap()
        .push(format!("{} {pack}: {message}", level.0));
}

fn lines() -> Vec<String> {
    std::mem::take(&mut LINES.lock().unwrap())
}

fn init() -> Result<(), String> {
    log(Level::INFO, "hello");
    Err(format!(
        "no licence for minor {}",
        host().map_or(0, |host| host.abi_minor())
    ))
}

fn describe() -> Result<Description, String> {
    Ok(Description {
        kernels: vec![Row {
            id: "one".to_owned(),
            op: "negate".to_owned(),
            ..Row::default()
        }],
        ..Description::default()
    })
}

fn plan(row: u32, _: &Request<'_>) -> Result<Plan, Refusal> {
    match row {
        0 => panic!("row {row} is not there"),
        _ => Err(Refusal::decline("not today")),
    }
}

fn retire() {
    panic!("it does not want to go");
}

#[test]
fn hooks_run_behind_the_guard_and_panics_reach_the_log() {
    log(Level::ERROR, "nobody listens yet");
    assert!(host().is_none() && lines().is_empty());

    let api = HostApi {
        abi_minor: 7,
        log: keep,
    }
    .leak_into_prefix();
    let pack = nxv_root_module();
    let status = pack.init()(api);
    assert_eq!(
        (status.fault, status.message.as_str()),
        (Fault::PACK, "no licence for minor 7")
    );
    assert_eq!(lines(), ["3 demo: hello"]);

    let described = pack.describe()();
    assert_eq!(described.status.fault, Fault::NONE);
    let kernel = described.kernels[0];
    assert_eq!(
        (kernel.id().as_str(), kernel.row(), kernel.rank()),
        ("one", 0, 128)
    );

    let request = Request {
        op: "negate".into(),
        inputs: [][..].into(),
        outputs: [][..].into(),
        attrs: [][..].into(),
        device: &DeviceInfo::default(),
        spare: [0; 4],
    };
    let reply = kernel.plan()(0, &request);
    assert_eq!((reply.outcome, reply.fault), (Outcome::ERROR, Fault::PANIC));
    assert_eq!(reply.message.as_str(), "row 0 is not there");
    let logged = lines();
    assert!(
        logged[0].starts_with("1 demo: panic at abi/tests/author.rs:"),
        "{logged:?}"
    );
    assert!(logged[0].ends_with(": row 0 is not there"), "{logged:?}");
    assert_eq!(kernel.plan()(1, &request).outcome, Outcome::DECLINE);

    pack.retire()();
    assert!(lines()[0].ends_with(": it does not want to go"));
}
