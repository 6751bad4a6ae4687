//! Plans, without a device.
