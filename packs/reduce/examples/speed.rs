//! Times reductions on the device.
use nx_vulkan_host::{Attr, Config, DType, Runtime};
use std::time::Instant;

fn main() {
    let runtime = Runtime::open(&Config::from_env()).expect("a device");
    let info = runtime.device_info();
    println!("{} units {} subgroup {} features {:?}", info.name, info.compute_units, info.subgroup_size, info.features.names());
    let small = std::env::args().any(|a| a == "small");
    let k: u64 = if small { 1 << 10 } else { 8192 };
    let full = k * k;
    let cases: Vec<(&str, DType, DType, Vec<u64>, Vec<i64>)> = vec![
        ("sum", DType::F32, DType::F32, vec![full], vec![0]),
        ("sum", DType::F32, DType::F32, vec![k, k], vec![0]),
        ("sum", DType::F32, DType::F32, vec![k, k], vec![1]),
        ("reduce_max", DType::F32, DType::F32, vec![full], vec![0]),
        ("reduce_max", DType::F32, DType::F32, vec![k, k], vec![0]),
        ("reduce_max", DType::F32, DType::F32, vec![k, k], vec![1]),
        ("argmax", DType::F32, DType::S32, vec![k, k], vec![1]),
        ("argmax", DType::F32, DType::S32, vec![k, k], vec![0]),
        ("argmax", DType::F32, DType::S32, vec![full], vec![]),
        ("product", DType::F32, DType::F32, vec![full], vec![0]),
        ("sum", DType::U8, DType::U32, vec![full], vec![0]),
        ("sum", DType::U8, DType::U32, vec![k, k], vec![0]),
        ("sum", DType::F16, DType::F16, vec![full], vec![0]),
        ("sum", DType::BF16, DType::BF16, vec![full], vec![0]),
        ("sum", DType::BF16, DType::BF16, vec![k, k], vec![0]),
        ("sum", DType::F64, DType::F64, vec![full], vec![0]),
        ("sum", DType::F64, DType::F64, vec![k, k], vec![0]),
        ("sum", DType::F64, DType::F64, vec![k, k], vec![1]),
        ("sum", DType::S32, DType::S64, vec![full], vec![0]),
        ("all", DType::U8, DType::U8, vec![full], vec![0]),
        ("sum", DType::F32, DType::F32, vec![full / 64, 64], vec![1]),
        ("sum", DType::F32, DType::F32, vec![full / 8, 8], vec![1]),
        ("sum", DType::F32, DType::F32, vec![full / 1024, 1024], vec![1]),
        ("sum", DType::F32, DType::F32, vec![full / 3, 3], vec![0]),
        ("sum", DType::F32, DType::F32, vec![k - 1, k - 1], vec![0]),
        ("sum", DType::F32, DType::F32, vec![k - 1, k - 1], vec![1]),
        ("sum", DType::F32, DType::F32, vec![full / 256 / 3136, 256, 3136], vec![0, 2]),
        ("sum", DType::F32, DType::F32, vec![1024], vec![0]),
    ];
    for (op, from, to, shape, axes) in cases {
        let elements: u64 = shape.iter().product();
        let bytes: Vec<u8> = if from.is_integer() { vec![1; (elements * from.size()) as usize] } else {
            // Small positive floats: 0x3c in the top bytes.
            (0..elements * from.size()).map(|i| if i % from.size() == from.size() - 1 { 0x3c } else { (i * 31) as u8 }).collect()
        };
        let x = runtime.upload(from, &shape, &bytes).expect("upload");
        let picks = op.starts_with("arg");
        let kept: Vec<u64> = if picks && axes.is_empty() { vec![] } else {
            shape.iter().zip(0..).filter(|(_, a)| !axes.contains(a)).map(|(e, _)| *e).collect()
        };
        let mut attrs = vec![Attr::ints(if picks { "axis" } else { "axes" }, axes.clone())];
        if picks { attrs.push(Attr::text("tie_break", "low")); }
        let run = || runtime.run_reported(op, &[&x], &[(to, kept.clone())], &attrs).expect("run");
        let by = run().served_by;
        for _ in 0..20 { run(); }
        runtime.sync().expect("sync");
        let mut best = f64::MAX;
        for _ in 0..5 {
            let times = if small { 5 } else { 100 };
            let start = Instant::now();
            for _ in 0..times { run(); }
            runtime.sync().expect("sync");
            best = best.min(start.elapsed().as_secs_f64() / times as f64);
        }
        let gb = (elements * from.size()) as f64 / best / 1e9;
        println!("{op:11} {from:?}->{to:?} {shape:?} {axes:?}: {:8.1} us  {gb:7.0} GB/s  {by}", best * 1e6);
    }
}
