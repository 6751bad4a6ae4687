//! What requests say of themselves.

use nx_vulkan_ops::{DType, Request};

#[test]
fn a_request_is_shown_and_checked_whatever_its_operands_are() {
    let row = (DType::F32, vec![3]);
    let output = [(DType::F32, vec![2, 3])];
    let request = Request::new("add", vec![output[0].clone(), row.clone()], &output, &[]);
    assert_eq!(request.to_string(), "add(f32[2,3], f32[3]) -> f32[2,3]");
    assert!(request.check().is_ok());
    assert_eq!(request.rank(), Some(2));
    let one = [row];
    let other = request.over(&one);
    assert_eq!(other.to_string(), "add(f32[3]) -> f32[2,3]");
    assert!(other.check().is_err());
    assert_eq!(other.clone().into_owned(), other);
    let strange = Request::new("frobnicate", &one, &output, &[]);
    assert!(strange.check().is_ok());
}
