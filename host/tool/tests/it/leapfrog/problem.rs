//! Chains to take, on the device and on the host, and how far apart the two are.

use crate::{folder::Folder, packs::built};
use nx_vulkan_host::{Config, DType, Request, Result, Runtime, Tensor};
use nx_vulkan_ops::kernels::{self, FAMILIES, Family, Out, View};
use std::{
    fs,
    sync::{Arc, OnceLock},
};

/// A runtime that finds this pack and no other.
pub(crate) fn runtime() -> Arc<Runtime> {
    static OPEN: OnceLock<Arc<Runtime>> = OnceLock::new();
    let open = || {
        let folder = Folder::new();
        folder.write("packs/leapfrog.so", fs::read(built("leapfrog")).unwrap());
        let config = Config {
            packs: vec![folder.join("packs")],
            cache_dir: Some(folder.join("cache")),
            validation: true,
            ..Config::from_env()
        };
        Runtime::open(&config).unwrap()
    };
    OPEN.get_or_init(open).clone()
}

/// A problem of one family. States, inverse masses and momenta have another scale in every coordinate.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(crate) family: &'static Family,
    pub(crate) dtype: DType,
    pub(crate) chains: usize,
    pub(crate) steps: usize,
    pub(crate) extent: usize,
    pub(crate) scalars: Vec<f64>,
    pub(crate) q: Vec<f64>,
    pub(crate) p: Vec<f64>,
    pub(crate) inv_mass: Vec<f64>,
}

const PARAMETERS: [(&str, &[f64]); 9] = [
    ("leapfrog_normal", &[0.5, 2.0]),
    ("leapfrog_exponential", &[1.5]),
    ("leapfrog_studentt", &[-0.5, 1.5, 3.0]),
    ("leapfrog_cauchy", &[0.25, 1.25]),
    ("leapfrog_halfnormal", &[1.75]),
    ("leapfrog_weibull", &[1.5, 2.0]),
    ("leapfrog_beta", &[2.5, 1.5]),
    ("leapfrog_gamma", &[3.5, 2.0]),
    ("leapfrog_lognormal", &[-0.25, 0.75]),
];

pub(crate) fn problems(
    dtype: DType,
    [chains, steps, extent]: [usize; 3],
) -> impl Iterator<Item = Problem> {
    FAMILIES.iter().map(move |family| {
        let row = PARAMETERS.iter().find(|row| row.0 == family.op).unwrap();
        let mut state = 0x9e37_79b9_u32 ^ (chains * 7919 + steps * 104_729 + extent) as u32;
        let mut draw = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state >> 8) / f64::from(1 << 23) - 1.0
        };
        let round = |x: f64| match dtype {
            DType::F32 => f64::from(x as f32),
            _ => x,
        };
        let count = chains * extent;
        // Rounding errors of the positions become errors of the phase, which grow with the time that a chain takes: a
        // long one has smaller steps.
        let epsilon = 0.04f64.min(10.0 / steps as f64);
        let inv_mass = |i: usize| round(0.2 + 0.3 * (i % 4) as f64);
        let p = |i: usize, draw: f64| round(draw / inv_mass(i).sqrt());
        Problem {
            family,
            dtype,
            chains,
            steps,
            extent,
            scalars: [epsilon].iter().chain(row.1).map(|x| round(*x)).collect(),
            q: (0..count)
                .map(|i| round(draw() * (0.3 + 0.2 * (i % 5) as f64)))
                .collect(),
            p: (0..count).map(|i| p(i, draw())).collect(),
            inv_mass: (0..count).map(inv_mass).collect(),
        }
    })
}

/// q_chain, p_chain, grad_chain and logp_chain.
pub(crate) type Chains = [Vec<f64>; 4];

impl Problem {
    pub(crate) fn outputs(&self) -> Vec<(DType, Vec<u64>)> {
        let [chains, steps, extent] = [self.chains, self.steps, self.extent].map(|n| n as u64);
        let chain = (self.dtype, vec![chains, steps, extent]);
        let logp = (self.dtype, vec![chains, steps]);
        vec![chain.clone(), chain.clone(), chain, logp]
    }

    pub(crate) fn inputs(&self) -> [(Vec<u64>, Vec<u8>); 4] {
        let state = vec![self.chains as u64, self.extent as u64];
        let encoded = |values: &[f64]| encode(self.dtype, values);
        [
            (state.clone(), encoded(&self.q)),
            (state.clone(), encoded(&self.p)),
            (state, encoded(&self.inv_mass)),
            (vec![self.scalars.len() as u64], encoded(&self.scalars)),
        ]
    }

    /// Runs on the device; another server than the pack is a failure.
    pub(crate) fn on_device(&self) -> Chains {
        let runtime = runtime();
        let inputs = self.inputs();
        let tensors =
            inputs.map(|(shape, bytes)| runtime.upload(self.dtype, &shape, &bytes).unwrap());
        self.run(&runtime, &tensors.each_ref()).unwrap()
    }

    pub(crate) fn run(&self, runtime: &Runtime, inputs: &[&Tensor; 4]) -> Result<Chains> {
        let ran =
            runtime.run_reported(&Request::new(self.family.op, inputs, self.outputs(), &[]))?;
        assert_eq!(&*ran.served_by, format!("leapfrog/{}", self.family.op));
        let read = |i: usize| {
            decode(
                self.dtype,
                &runtime.download(&ran.outputs[i], None).unwrap(),
            )
        };
        Ok([read(0), read(1), read(2), read(3)])
    }

    pub(crate) fn on_host(&self) -> Chains {
        let inputs = self.inputs();
        let strides = |shape: &[u64]| match shape {
            [_, extent] => vec![*extent as i64, 1],
            _ => vec![1],
        };
        let strides: Vec<Vec<i64>> = inputs.iter().map(|(shape, _)| strides(shape)).collect();
        let views: Vec<View> = inputs
            .iter()
            .zip(&strides)
            .map(|((shape, bytes), strides)| View {
                dtype: self.dtype,
                shape,
                strides,
                offset: 0,
                bytes,
            })
            .collect();
        let outputs = self.outputs();
        let size = |shape: &[u64]| (shape.iter().product::<u64>() * self.dtype.size()) as usize;
        let mut bytes: Vec<Vec<u8>> = outputs
            .iter()
            .map(|(_, shape)| vec![0; size(shape)])
            .collect();
        let mut outs: Vec<Out> = outputs
            .iter()
            .zip(&mut bytes)
            .map(|((dtype, shape), bytes)| Out {
                dtype: *dtype,
                shape,
                bytes,
            })
            .collect();
        kernels::run(self.family.op, &views, &mut outs, &[]).unwrap();
        let read = |i: usize| decode(self.dtype, &bytes[i]);
        [read(0), read(1), read(2), read(3)]
    }

    /// The problem of one chain.
    pub(crate) fn chain(&self, chain: usize) -> Problem {
        let own = |all: &[f64]| all[chain * self.extent..][..self.extent].to_vec();
        Problem {
            chains: 1,
            q: own(&self.q),
            p: own(&self.p),
            inv_mass: own(&self.inv_mass),
            ..self.clone()
        }
    }

    /// The largest error of `got` in a result whose rows have `extent` elements. It is relative to the largest magnitude
    /// that the quantity has in its chain: along a chain every one of them crosses zero.
    fn error(&self, got: &[f64], expected: &[f64], extent: usize) -> f64 {
        let rows = self.steps * extent;
        let chains = got.chunks_exact(rows).zip(expected.chunks_exact(rows));
        let error = |(got, expected): (&[f64], &[f64])| {
            let scale = expected.iter().fold(0f64, |scale, x| scale.max(x.abs()));
            let errors = got.iter().zip(expected).map(|(a, b)| (a - b).abs() / scale);
            errors.fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a })
        };
        chains
            .map(error)
            .fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a })
    }

    /// The errors of all four results.
    pub(crate) fn errors(&self, got: &Chains, expected: &Chains) -> [f64; 4] {
        let extents = [self.extent, self.extent, self.extent, 1];
        [0, 1, 2, 3].map(|i| self.error(&got[i], &expected[i], extents[i]))
    }
}

pub(crate) fn encode(dtype: DType, values: &[f64]) -> Vec<u8> {
    match dtype {
        DType::F32 => values
            .iter()
            .flat_map(|x| (*x as f32).to_ne_bytes())
            .collect(),
        _ => values.iter().flat_map(|x| x.to_ne_bytes()).collect(),
    }
}

fn decode(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    match dtype {
        DType::F32 => {
            let words = bytes.as_chunks::<4>().0.iter();
            words.map(|word| f32::from_ne_bytes(*word).into()).collect()
        }
        _ => {
            let words = bytes.as_chunks::<8>().0.iter();
            words.map(|word| f64::from_ne_bytes(*word)).collect()
        }
    }
}
