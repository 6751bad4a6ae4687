//! The pack's table.

use super::{DIRECT, ask::matrices};
use crate::{Table, plan};
use nx_vulkan_abi::{DType, Refusal};
use nx_vulkan_pack_kit::testing::gpu;

#[test]
fn a_wrong_table_is_refused() {
    let text = include_str!("../../pack.toml");
    assert_eq!(Table::parse(text).unwrap().rows().unwrap().len(), 13);
    assert!(
        Table::parse(&text.replace("[128, 128, 8]", "[128, 100, 8]"))
            .unwrap_err()
            .contains("100")
    );
    // Rows of 48 columns are no whole number of what stores a row together.
    let row = "block = [32, 32, 16],   warp = [16, 32],  packs = [1, 1]";
    let other = "block = [32, 48, 8], warp = [8, 12], packs = [1, 3]";
    let wrong = Table::parse(&text.replacen(row, other, 1)).unwrap_err();
    assert!(wrong.contains("48"), "{wrong}");
    assert!(
        Table::parse(&text.replace("speed", "sped"))
            .unwrap_err()
            .contains("sped")
    );
    let unknown = Table::parse(&text.replacen("\"number\"", "\"f17\"", 1)).unwrap();
    assert!(unknown.rows().unwrap_err().contains("dot_skinny"));
    let ask = matrices(DIRECT, gpu(), [1; 3], DType::F32);
    let unknown = ask.given("dot", |request| plan(99, request));
    assert!(matches!(unknown, Err(Refusal::Internal(_))));
}
