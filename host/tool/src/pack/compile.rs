//! `nxv pack compile`: the pack's GLSL to SPIR-V, and no further.

use super::{check::show, file::path};
use crate::{
    asked::Asked,
    global::Global,
    output::{Answer, Outcome, json},
};
use clap::value_parser;
use nx_vulkan_abi::{
    Attr, AttrKind, DType, DeviceInfo, DeviceKind, Features, Matrix, MatrixScope, RSlice,
};
use nx_vulkan_conformance::{
    session::{Session, With},
    vet,
};
use std::path::PathBuf;

/// The least that Vulkan lets a device have: maxComputeSharedMemorySize of its required limits.
const LEAST_SHARED: i64 = 16384;
/// The largest subgroup whose invocations fit the masks of Vulkan's ballots, four words of 32 bits.
const MOST_SUBGROUP: u32 = 128;

/// Compile the pack's shaders without a device.
///
/// Asks every kernel for plans as if the device had every feature, and the products of cooperative matrices that NVIDIA's
/// driver lists, and compiles the shaders of each plan to SPIR-V. No driver sees them. Requests are those of the sweep, and
/// those that --request names.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code: 1 when a shader does not compile, or is a module that no device is given."
)]
pub(crate) struct Compile {
    /// The library of the pack, or the folder of one without code
    #[arg(value_parser = path())]
    file: PathBuf,

    /// This request too, as often as it is given: 'dot f16[512,512] f16[512,512]'
    #[arg(long, value_name = "REQUEST")]
    request: Vec<Asked>,

    /// Other requests of the sweep; the same seed gives the same ones
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// PCI vendor id of the device that plans are asked for, 0x1002 or 4098
    #[arg(long, value_name = "ID", default_value = "0x10de", value_parser = vendor)]
    vendor: u32,

    /// Its driver, as VkDriverId counts; 4 is NVIDIA's own
    #[arg(long, value_name = "ID", default_value_t = 4)]
    driver: i64,

    /// Its name, by which packs may know how fast it is
    #[arg(long, value_name = "NAME", default_value = "NVIDIA H200")]
    name: String,

    /// Its compute units
    #[arg(long, value_name = "N", default_value_t = 132)]
    units: u32,

    /// Its subgroup size
    #[arg(long, value_name = "N", default_value = "32", value_parser = subgroup)]
    subgroup: u32,

    /// Its shared memory in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 48 << 10, value_parser = value_parser!(u32).range(LEAST_SHARED..))]
    shared: u32,
}

fn vendor(id: &str) -> Result<u32, std::num::ParseIntError> {
    match id.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => id.parse(),
    }
}

/// A power of two, as Vulkan has it: VkPhysicalDeviceVulkan11Properties::subgroupSize.
fn subgroup(text: &str) -> Result<u32, String> {
    let size = text.parse().ok();
    let size = size.filter(|size: &u32| size.is_power_of_two() && *size <= MOST_SUBGROUP);
    size.ok_or_else(|| format!("expected a power of two, up to {MOST_SUBGROUP}, got: {text}"))
}

impl Compile {
    /// Compiles, and says what does not.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        let session = Session::new(&global.config(), &self.file, With::Others)?;
        let options = vet::Options {
            file: self.file.clone(),
            config: session.config.clone(),
            seed: self.seed,
            requests: self.request.iter().map(|asked| asked.0.clone()).collect(),
            progress: |_| {},
        };
        let (driver, flexible, matrices) = ([self.driver], flexible(), matrices());
        let facts = [
            fact("driver_id", &driver),
            fact(Matrix::FLEXIBLE_FACT, &flexible),
            fact(Matrix::FACT, &matrices),
        ];
        let report = vet::compile(&options, &self.device(&facts))?;
        let holds = report.findings.iter().all(|finding| !finding.error);
        let mut text = String::new();
        show("compile", &report, !holds, &mut text);
        let json = json(&report);
        Ok(Outcome { text, json, holds })
    }

    /// A device with everything.
    fn device<'a>(&'a self, facts: &'a [Attr<'a>]) -> DeviceInfo<'a> {
        DeviceInfo {
            name: self.name.as_str().into(),
            compute_units: self.units,
            vendor: self.vendor,
            api: 1 << 22 | 3 << 12,
            kind: DeviceKind::DISCRETE,
            subgroup_size: self.subgroup,
            min_subgroup_size: self.subgroup,
            max_subgroup_size: self.subgroup,
            shared_bytes: self.shared,
            push_bytes: 256,
            max_invocations: 1024,
            max_workgroup_size: [1024, 1024, 64],
            max_groups: [i32::MAX as u32, 65535, 65535],
            max_buffer_range: u32::MAX.into(),
            buffer_align: 16,
            features: Features(u64::MAX),
            facts: RSlice::from_slice(facts),
            ..DeviceInfo::default()
        }
    }
}

fn fact<'a>(name: &'a str, ints: &'a [i64]) -> Attr<'a> {
    Attr {
        name: name.into(),
        kind: AttrKind::INTS,
        spare: 0,
        ints: RSlice::from_slice(ints),
        floats: RSlice::EMPTY,
        text: "".into(),
    }
}

/// Types of operands and sums, and the extents, of the products that NVIDIA's driver 580.159.04 lists for subgroups.
const LISTED: [(DType, DType, &[[u32; 3]]); 5] = [
    (
        DType::F16,
        DType::F16,
        &[[16, 16, 16], [16, 8, 16], [16, 8, 8]],
    ),
    (
        DType::F16,
        DType::F32,
        &[[16, 16, 16], [16, 8, 16], [16, 8, 8]],
    ),
    (DType::BF16, DType::F32, &[[16, 16, 16]]),
    (DType::S8, DType::S32, &[[16, 16, 32], [16, 8, 32]]),
    (DType::U8, DType::U32, &[[16, 16, 32], [16, 8, 32]]),
];

/// What m and n have to be multiples of in workgroups of so many invocations; k is that of the first product.
const WORKGROUPS: [(u32, u32, u32); 4] = [(32, 16, 16), (64, 16, 16), (128, 32, 16), (256, 32, 32)];

fn product(operand: DType, sum: DType, extents: [u32; 3]) -> Matrix {
    Matrix {
        extents,
        a: operand,
        b: operand,
        c: sum,
        result: sum,
        scope: MatrixScope::SUBGROUP,
        saturates: false,
        invocations: 0,
    }
}

/// Products of subgroups.
fn matrices() -> Vec<i64> {
    let of = |(operand, sum, all): (DType, DType, &'static [[u32; 3]])| {
        all.iter()
            .map(move |extents| product(operand, sum, *extents))
    };
    LISTED
        .into_iter()
        .flat_map(of)
        .flat_map(Matrix::to_ints)
        .collect()
}

/// Products of workgroups.
fn flexible() -> Vec<i64> {
    let of = |(operand, sum, all): (DType, DType, &[[u32; 3]])| {
        let k = all[0][2];
        WORKGROUPS.map(|(invocations, m, n)| Matrix {
            scope: MatrixScope::WORKGROUP,
            invocations,
            ..product(operand, sum, [m, n, k])
        })
    };
    LISTED
        .into_iter()
        .flat_map(of)
        .flat_map(Matrix::to_ints)
        .collect()
}
