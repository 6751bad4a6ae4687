//! Running a request on its route: a pack's dispatches on the device, or a kernel on the CPU.

use super::{Ran, Runtime, byte_len};
use crate::{Attr, Result, Tensor, checked, memory::Buffer, plan::Compiled, route::Route};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::kernels;
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

impl Runtime {
    pub(super) fn execute(
        &self,
        route: &Route,
        op: &str,
        inputs: &[&Tensor],
        outputs: &[(DType, Vec<u64>)],
        attrs: &[Attr],
    ) -> Result<Ran> {
        route.count();
        match route {
            Route::Device {
                compiled,
                prepare,
                served_by,
                ..
            } => {
                let outputs = if prepare.is_empty() {
                    self.record(compiled, inputs, outputs)?
                } else {
                    let mut prepared: Vec<Tensor> = inputs.iter().map(|t| (*t).clone()).collect();
                    for as_type in prepare {
                        let tensor = &mut prepared[as_type.index as usize];
                        *tensor =
                            self.run_one("as_type", &[tensor], as_type.dtype, tensor.shape(), &[])?;
                    }
                    self.record(compiled, &prepared.iter().collect::<Vec<_>>(), outputs)?
                };
                Ok(Ran {
                    outputs,
                    served_by: served_by.clone(),
                })
            }
            Route::Host { served_by, .. } => {
                self.fallbacks.fetch_add(1, Ordering::Relaxed);
                let outputs = self.run_on_host(op, inputs, outputs, attrs)?;
                Ok(Ran {
                    outputs,
                    served_by: served_by.clone(),
                })
            }
        }
    }

    pub(super) fn record(
        &self,
        compiled: &Compiled,
        inputs: &[&Tensor],
        outputs: &[(DType, Vec<u64>)],
    ) -> Result<Vec<Tensor>> {
        let results = outputs
            .iter()
            .map(|(dtype, shape)| {
                let buffer = self.alloc(byte_len(*dtype, shape)?, None)?;
                Ok(Tensor::contiguous(buffer, *dtype, shape))
            })
            .collect::<Result<Vec<_>>>()?;
        let scratch = compiled
            .scratch
            .iter()
            .map(|&len| self.alloc(len, None))
            .collect::<Result<Vec<_>>>()?;
        let reports = compiled
            .watched
            .as_ref()
            .map(|_| self.write_new(&[0; checked::BYTES]));
        let reports = reports.transpose()?;
        let mut buffers: SmallVec<[&Buffer; 8]> = SmallVec::new();
        buffers.extend(inputs.iter().map(|t| &*t.buffer));
        buffers.extend(results.iter().map(|t| &*t.buffer));
        buffers.extend(scratch.iter().map(|b| &**b));
        buffers.extend(compiled.params.as_deref());
        buffers.extend(reports.as_deref());
        if !compiled.steps.is_empty() {
            self.stream
                .record(&self.pipelines, &compiled.steps, &buffers)?;
        }
        drop(buffers);
        if let (Some(watched), Some(reports)) = (&compiled.watched, &reports) {
            watched.verdict(&self.read(reports, 0, checked::BYTES as u64)?)?;
        }
        Ok(results)
    }

    pub(super) fn run_on_host(
        &self,
        op: &str,
        inputs: &[&Tensor],
        outputs: &[(DType, Vec<u64>)],
        attrs: &[Attr],
    ) -> Result<Vec<Tensor>> {
        let bytes = inputs
            .iter()
            .map(|t| self.read(&t.buffer, 0, t.storage_len()))
            .collect::<Result<Vec<_>>>()?;
        let views: Vec<_> = inputs
            .iter()
            .zip(&bytes)
            .map(|(t, bytes)| kernels::View {
                dtype: t.dtype(),
                shape: t.shape(),
                strides: t.strides(),
                offset: t.offset(),
                bytes,
            })
            .collect();
        let mut results = outputs
            .iter()
            .map(|(dtype, shape)| Ok(vec![0u8; byte_len(*dtype, shape)? as usize]))
            .collect::<Result<Vec<_>>>()?;
        let mut outs: Vec<_> = outputs
            .iter()
            .zip(&mut results)
            .map(|((dtype, shape), bytes)| kernels::Out {
                dtype: *dtype,
                shape,
                bytes,
            })
            .collect();
        kernels::run(op, &views, &mut outs, attrs)?;
        outputs
            .iter()
            .zip(&results)
            .map(|((dtype, shape), bytes)| self.upload(*dtype, shape, bytes))
            .collect()
    }
}
