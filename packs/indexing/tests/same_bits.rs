//! Sums of floats have the same bits on every run, whatever the order in which a device gets to the updates, and the last one put is
//! what stays.

use nx_vulkan_abi::DType;
use nx_vulkan_conformance::session::Session;
use nx_vulkan_host::Kind;
use nx_vulkan_ops::{Attr, Request, values::Rng};

const KERNELS: [(&str, &str); 5] = [
    ("indexed_add", "indexing/indexed_add_few"),
    ("indexed_put", "indexing/indexed_put_few"),
    ("indexed_add", "indexing/indexed_add"),
    ("indexed_add", "indexing/indexed_add_dealt"),
    ("indexed_put", "indexing/indexed_put_dealt"),
];

#[test]
fn updates_of_one_place_are_taken_in_the_same_order() {
    let session = Session::of_test("indexing").unwrap();
    let runtime = session.runtime().unwrap();
    let mut rng = Rng(3);
    let mut planned = [0; 5];
    // Places, their elements, how many of them have updates, updates, and how far pieces of 64 such places are apart: lists of groups and of places,
    // crowded ones, chunks; and buckets with one round of short lists, with several of long ones, with chunks that join updates,
    // with a last round of a few updates, and with chunks of more places than a round has.
    for (places, part, used, rows, apart) in [
        (40_000, 1, 40_000, 10_000, 1),
        (3000, 1, 3000, 20_000, 1),
        (40_000, 1, 9, 10_000, 1),
        (3000, 1, 50, 20_000, 1),
        (7, 1, 7, 30_000, 1),
        (100_000, 1, 2000, 90_000, 1),
        (100_000, 1, 60, 90_000, 1),
        (1 << 21, 1, 15_360, 263_000, 1),
        (1 << 21, 1, 2048, 263_000, 1025),
        (5000, 40, 5000, 30_000, 1),
        (3000, 33, 700, 9000, 1),
        (30, 300, 20, 9000, 1),
        (3000, 1, 10, 64, 1),
        (50, 128, 9, 500, 1),
    ] {
        let of = |extent| match part {
            1 => vec![extent],
            _ => vec![extent, part],
        };
        let mut floats = |count: u64| -> Vec<u8> {
            let float = |_| match rng.below(4000) {
                0 => f32::INFINITY,
                1 => f32::NEG_INFINITY,
                2 => f32::NAN,
                3..50 => -0.0,
                _ => 10f32.powi(rng.below(9) as i32 - 4) * rng.between(-1.0, 1.0) as f32,
            };
            (0..count).map(float).flat_map(f32::to_le_bytes).collect()
        };
        let (tensor, updates) = (floats(places * part), floats(rows * part));
        let mut index = || {
            let at = rng.below(used);
            (at / 64 * apart * 64 + at % 64) as i32
        };
        let indices: Vec<i32> = (0..rows).map(|_| index()).collect();
        let mut put = tensor.clone();
        let size = 4 * part as usize;
        for (index, update) in indices.iter().zip(updates.chunks_exact(size)) {
            put[*index as usize * size..][..size].copy_from_slice(update);
        }
        let indices: Vec<u8> = indices.iter().flat_map(|at| at.to_le_bytes()).collect();
        let tensor = runtime.upload(DType::F32, &of(places), &tensor).unwrap();
        let indices = runtime.upload(DType::S32, &[rows, 1], &indices).unwrap();
        let updates = runtime.upload(DType::F32, &of(rows), &updates).unwrap();
        let operands = vec![&tensor, &indices, &updates];
        let outputs = vec![(DType::F32, of(places))];
        let attrs = vec![Attr::ints("axes", [0])];
        for ((op, kernel), count) in KERNELS.iter().zip(&mut planned) {
            let request = Request::new(*op, operands.clone(), outputs.clone(), attrs.clone());
            let forced = match runtime.plan_with(kernel, &request) {
                Ok(forced) => forced,
                Err(error) if error.kind() == Kind::Unsupported => continue,
                Err(error) => panic!("{kernel}: {error}"),
            };
            *count += 1;
            let run = || {
                let ran = runtime.run_planned(&forced, &operands).unwrap();
                assert_eq!(ran.served_by.to_string(), *kernel);
                runtime.download(&ran.outputs[0], None).unwrap()
            };
            let first = if *op == "indexed_put" {
                put.clone()
            } else {
                run()
            };
            for _ in 0..5 {
                assert!(
                    run() == first,
                    "{kernel}: {rows} updates at {used} of {places}"
                );
            }
        }
    }
    assert!(
        planned[2] >= 3 && planned[..2] == [2, 2] && planned[3..].iter().all(|&n| n >= 6),
        "{planned:?}"
    );
}
