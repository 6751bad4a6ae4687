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
