//! Plans, without a device.

use super::*;
use nx_vulkan_abi::{DType, DeviceInfo};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, files, gpu};
