//! Which pipelines are given back.

use super::*;
use crate::{Config, shader::Shaders};
use nx_vulkan_registry::Glsl;

const SHADER: &str = "#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const uint N = 0;
layout(set = 0, binding = 0) buffer Data { uint x[]; };
void main() { x[0] += N; }";

/// Holders let go of what they have, and have asked again for what they use by the time that pipelines are dropped.
#[test]
fn what_is_in_use_stays_where_holders_let_go() {
    const MOST: usize = 40;
    let config = Config::from_env();
    let device = Device::open(&config.device, config.validation).unwrap();
    let mut pipelines = Pipelines::new(&device, &Cache::open(None)).unwrap();
    pipelines.most_held = MOST;
    pipelines.state.get_mut().crowded_at = MOST;
    let own = Glsl::new(SHADER, Origin::Stranger);
    let find = |name: &str| (name == "add").then_some(own);
    let module = Shaders::new(None).compile("add", &[], &find).unwrap();
    let get = |n: u32| {
        let spec = PipelineSpec {
            module: &module,
            bindings: 1,
            push_bytes: 0,
            subgroup_size: 0,
            constants: &[(0, n)],
        };
        pipelines.get(&spec).unwrap()
    };
    let sweep = || pipelines.forget_spare(|| 0, 0);

    let held: Vec<_> = (0..MOST as u32 - 1).map(get).collect();
    assert!(!pipelines.are_crowded());
    let last = get(MOST as u32);
    assert!(pipelines.are_crowded());
    let used: Vec<_> = held[..5].iter().map(Arc::downgrade).collect();
    drop((held, last));
    pipelines.note_let_go();
    assert!(!pipelines.are_crowded());
    sweep();
    assert_eq!(pipelines.len(), MOST, "it is not known yet what is in use");

    let again: Vec<_> = (0..5).map(get).collect();
    for n in 0..MOST_SPARE as u32 {
        get(1_000 + n);
        // As reloads do.
        pipelines.note_let_go();
        sweep();
    }
    assert_eq!(pipelines.len(), 5 + MOST / 2);
    for (old, new) in used.iter().zip(&again) {
        assert!(old.upgrade().is_some_and(|old| Arc::ptr_eq(&old, new)));
    }
    assert!(!pipelines.are_crowded());
}
