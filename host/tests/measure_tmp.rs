//! Temporary measurements.
mod folder;
use folder::Folder;
use nx_vulkan_host::{Config, DType, Runtime};
use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

fn shader(body: &str) -> String {
    format!(
        "#version 450\nlayout(local_size_x = 64) in;\n\
    layout(set = 0, binding = 0) readonly buffer A {{ float a[]; }};\n\
    layout(set = 0, binding = 1) buffer R {{ float r[]; }};\nvoid main() {{\n    uint i = gl_GlobalInvocationID.x;\n    float x = a[i];\n    {body}\n    r[i] = x;\n}}\n"
    )
}
fn long(count: usize, k: u32) -> String {
    let mut body = format!("double y = double(x) + {k}.0lf;\n");
    for i in 0..count {
        writeln!(
            body,
            "y = y * (y + {i}.5lf) / (y - {i}.25lf) + sqrt(abs(y));"
        )
        .unwrap();
    }
    shader(&(body + "x = float(y);"))
}
fn config(f: &Folder, validation: bool) -> Config {
    Config {
        cache_dir: Some(f.join("cache")),
        prober: Some(env!("CARGO_BIN_EXE_nxv").into()),
        prober_override: None,
        validation,
        build_timeout: Duration::from_secs(200),
        ..Config::from_env()
    }
}
fn once(r: &Runtime, text: &str, own: bool) -> f64 {
    let input = r.upload(DType::F32, &[4], &[0; 16]).unwrap();
    let out = r.zeros(DType::F32, &[4]).unwrap();
    let t = Instant::now();
    let m = if own {
        r.generated_module(text)
    } else {
        r.module_of(text)
    }
    .unwrap();
    let out = r
        .run_module(&m, &[&input], &out, (&[], &[]), [1, 1, 1])
        .unwrap();
    r.download(&out, None).unwrap();
    t.elapsed().as_secs_f64() * 1e3
}
fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 2]
}

#[test]
fn measure() {
    for validation in [false, true] {
        let f = Folder::new();
        let r = Runtime::open(&config(&f, validation)).unwrap();
        let seed = std::process::id();
        let small = |k: u32, w: u32| {
            shader(&format!(
                "x = sqrt(abs(x * {k}.0 + {w}.0 + {seed}.0)) + exp(x) * sin(x);"
            ))
        };
        println!(
            "validation {validation}: first with start of worker {:.1} ms",
            once(&r, &small(1000, 9), false)
        );
        for round in 0..3u32 {
            let own = median(
                (0..20)
                    .map(|k| once(&r, &small(k, 1 + 10 * round), true))
                    .collect(),
            );
            let far = median(
                (0..20)
                    .map(|k| once(&r, &small(k, 2 + 10 * round), false))
                    .collect(),
            );
            println!("  small: own {own:.2} ms, worker {far:.2} ms");
        }
        for n in [200usize, 1000, 3000] {
            println!(
                "  long {n}: own {:.0} ms, worker {:.0} ms",
                once(&r, &long(n, 2 * seed + 1), true),
                once(&r, &long(n, 2 * seed), false)
            );
        }
    }
}
