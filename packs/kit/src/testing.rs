//! Requests as a host makes them, and what every plan for them has to keep: for tests of plans, which need no device.

use nx_vulkan_abi::{
    Access, Attr, AttrKind, BufArg, DType, Description, DeviceInfo, DeviceKind, Features, Matrix,
    MatrixScope, Plan, RSlice, Refusal, Request, Slot, TensorDesc, layout::contiguous_strides,
    plan,
};
use std::sync::LazyLock;

/// What a pack hands to `pack!`.
#[derive(Debug, Clone, Copy)]
pub struct Pack {
    /// What it says of itself.
    pub describe: fn() -> Result<Description, String>,
    /// How it runs a request.
    pub plan: fn(u32, &Request<'_>) -> Result<Plan, Refusal>,
}

/// A device with everything that packs ask for, products of cooperative matrices among it.
pub fn gpu() -> DeviceInfo<'static> {
    DeviceInfo {
        facts: facts(),
        kind: DeviceKind::DISCRETE,
        subgroup_size: 32,
        min_subgroup_size: 32,
        max_subgroup_size: 32,
        shared_bytes: 48 << 10,
        max_invocations: 1024,
        compute_units: 132,
        max_workgroup_size: [1024, 1024, 64],
        max_buffer_range: u64::from(u32::MAX),
        buffer_align: 16,
        features: Features(u64::MAX),
        ..DeviceInfo::default()
    }
}

/// Products of subgroups, 16 x 16 x 16 of floats and 16 x 16 x 32 of integers, with NVIDIA's own driver.
fn facts() -> RSlice<'static, Attr<'static>> {
    static FACTS: LazyLock<[Attr<'static>; 2]> = LazyLock::new(|| {
        let [f16, bf16, f32] = [DType::F16, DType::BF16, DType::F32];
        let rows = [
            (16, f16, f16),
            (16, f16, f32),
            (16, bf16, f32),
            (32, DType::S8, DType::S32),
            (32, DType::U8, DType::U32),
        ];
        let ints = rows.into_iter().flat_map(|(k, operand, sum)| {
            let product = Matrix {
                extents: [16, 16, k],
                a: operand,
                b: operand,
                c: sum,
                result: sum,
                scope: MatrixScope::SUBGROUP,
                saturates: false,
                invocations: 0,
            };
            product.to_ints()
        });
        let ints = ints.collect::<Vec<_>>();
        [fact("driver_id", vec![4]), fact(Matrix::FACT, ints)]
    });
    RSlice::from_slice(&*FACTS)
}

fn fact(name: &'static str, ints: Vec<i64>) -> Attr<'static> {
    Attr {
        name: name.into(),
        kind: AttrKind::INTS,
        spare: 0,
        ints: RSlice::from_slice(ints.leak()),
        floats: RSlice::EMPTY,
        text: "".into(),
    }
}

/// The same device with these integers as the fact of that name; without it where there are none.
pub fn with_fact(
    device: DeviceInfo<'static>,
    name: &'static str,
    ints: &[i64],
) -> DeviceInfo<'static> {
    let facts = device.facts.as_slice().iter();
    let mut facts: Vec<_> = facts.filter(|fact| fact.name != name).copied().collect();
    if !ints.is_empty() {
        facts.push(fact(name, ints.to_vec()));
    }
    DeviceInfo {
        facts: RSlice::from_slice(facts.leak()),
        ..device
    }
}

/// The same device without these capabilities.
pub fn without(device: DeviceInfo<'static>, features: Features) -> DeviceInfo<'static> {
    DeviceInfo {
        features: Features(device.features.0 & !features.0),
        ..device
    }
}

/// A driver that runs on the CPU.
pub fn cpu() -> DeviceInfo<'static> {
    DeviceInfo {
        facts: RSlice::EMPTY,
        kind: DeviceKind::CPU,
        subgroup_size: 8,
        min_subgroup_size: 8,
        max_subgroup_size: 8,
        shared_bytes: 32 << 10,
        compute_units: 0,
        ..gpu()
    }
}

/// An operand or a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Extent of each axis.
    pub shape: Vec<u64>,
    /// Step of each axis, in elements.
    pub strides: Vec<i64>,
    /// First element.
    pub offset: u64,
    /// Bytes of its buffer; without them it ends with the last element.
    pub storage: Option<u64>,
}

impl Tensor {
    /// One in row-major order, from the start of its buffer on.
    pub fn new(dtype: DType, shape: &[u64]) -> Tensor {
        Tensor {
            dtype,
            shape: shape.to_vec(),
            strides: contiguous_strides(shape),
            offset: 0,
            storage: None,
        }
    }

    /// The same shape with other strides and another first element.
    pub fn strided(self, strides: &[i64], offset: u64) -> Tensor {
        Tensor {
            strides: strides.to_vec(),
            offset,
            ..self
        }
    }

    /// The same tensor in a buffer of that many bytes.
    pub fn within(self, bytes: u64) -> Tensor {
        Tensor {
            storage: Some(bytes),
            ..self
        }
    }

    fn desc(&self) -> TensorDesc<'_> {
        let steps = self.shape.iter().zip(&self.strides);
        let last = steps.fold(self.offset, |last, (&extent, &stride)| {
            last.saturating_add(
                extent
                    .saturating_sub(1)
                    .saturating_mul(stride.max(0) as u64),
            )
        });
        let elements = if self.shape.contains(&0) { 0 } else { last + 1 };
        TensorDesc {
            dtype: self.dtype,
            spare: 0,
            shape: self.shape.as_slice().into(),
            strides: self.strides.as_slice().into(),
            offset: self.offset,
            storage_len: self.storage.unwrap_or(elements * self.dtype.size()),
            reserved: [0; 2],
        }
    }
}

/// A request under construction.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Who is asked.
    pub pack: Pack,
    /// Id of the kernel.
    pub kernel: String,
    /// Operands.
    pub inputs: Vec<Tensor>,
    /// Results.
    pub outputs: Vec<Tensor>,
    /// Attributes that are integers.
    pub ints: Vec<(&'static str, Vec<i64>)>,
    /// Attributes that are words.
    pub texts: Vec<(&'static str, &'static str)>,
    /// The device.
    pub device: DeviceInfo<'static>,
}

impl Pack {
    /// A request to `kernel`, without attributes, on [`gpu`].
    pub fn ask(self, kernel: &str, inputs: &[Tensor], outputs: &[Tensor]) -> Ask {
        Ask {
            pack: self,
            kernel: kernel.to_owned(),
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
            ints: Vec::new(),
            texts: Vec::new(),
            device: gpu(),
        }
    }
}

impl Ask {
    /// The same with an attribute of integers.
    #[must_use]
    pub fn ints(mut self, name: &'static str, values: &[i64]) -> Ask {
        self.ints.push((name, values.to_vec()));
        self
    }

    /// The same with an attribute that is a word.
    #[must_use]
    pub fn text(mut self, name: &'static str, word: &'static str) -> Ask {
        self.texts.retain(|(known, _)| *known != name);
        self.texts.push((name, word));
        self
    }

    /// The same on another device.
    #[must_use]
    pub fn on(self, device: DeviceInfo<'static>) -> Ask {
        Ask { device, ..self }
    }

    /// The pack's answer.
    ///
    /// # Panics
    /// Where the pack has no such kernel, answers otherwise the second time, or breaks a rule that hosts check.
    pub fn plan(&self) -> Result<Plan, Refusal> {
        let described = (self.pack.describe)().expect("the pack describes itself");
        let mut kernels = described.kernels.iter();
        let row = kernels.position(|row| row.id == self.kernel);
        let row = row.expect("the pack has the kernel");
        self.given(&described.kernels[row].op, |request| {
            let answer = (self.pack.plan)(row as u32, request);
            let again = (self.pack.plan)(row as u32, request);
            assert_eq!(answer, again, "the same request has one answer");
            if let Ok(plan) = &answer {
                let has = |file: &str| described.sources.iter().any(|s| s.name == file);
                assert!(plan.shaders.iter().all(|s| has(&s.file)), "{plan:?}");
                check(plan, request);
            }
            answer
        })
    }

    /// What `f` makes of the request, as one for `op`.
    pub fn given<T>(&self, op: &str, f: impl FnOnce(&Request<'_>) -> T) -> T {
        let inputs: Vec<_> = self.inputs.iter().map(Tensor::desc).collect();
        let outputs: Vec<_> = self.outputs.iter().map(Tensor::desc).collect();
        let attrs = self.attrs();
        f(&Request {
            op: op.into(),
            inputs: inputs.as_slice().into(),
            outputs: outputs.as_slice().into(),
            attrs: attrs.as_slice().into(),
            device: &self.device,
            spare: [0; 4],
        })
    }

    /// Why the pack does not run it.
    ///
    /// # Panics
    /// Where it does, or wants other operands.
    pub fn reason(&self) -> String {
        match self.plan() {
            Err(Refusal::Decline(why) | Refusal::BadRequest(why)) => why,
            other => panic!("expected a refusal with a reason, got: {other:?}"),
        }
    }

    fn attrs(&self) -> Vec<Attr<'_>> {
        let ints = self.ints.iter().map(|(name, values)| Attr {
            name: (*name).into(),
            kind: AttrKind::INTS,
            spare: 0,
            ints: values.as_slice().into(),
            floats: RSlice::EMPTY,
            text: "".into(),
        });
        let texts = self.texts.iter().map(|(name, text)| Attr {
            name: (*name).into(),
            kind: AttrKind::TEXT,
            spare: 0,
            ints: RSlice::EMPTY,
            floats: RSlice::EMPTY,
            text: (*text).into(),
        });
        ints.chain(texts).collect()
    }
}

/// Panics unless the plan keeps to the limits, and stores every byte of every result.
fn check(plan: &Plan, request: &Request<'_>) {
    assert!(plan.steps.len() <= plan::MAX_STEPS && plan.scratch.len() <= plan::MAX_SCRATCH);
    let mut written = vec![false; plan.scratch.len()];
    let mut stored = vec![Vec::new(); request.outputs.len()];
    for step in &plan.steps {
        let shader = &plan.shaders[step.shader as usize];
        assert_eq!(step.args.len() as u32, shader.bindings);
        assert_eq!(step.push.len() as u32, shader.push_bytes);
        assert!(shader.push_bytes <= request.device.push_bytes);
        let mut groups = step.groups.iter().zip(request.device.max_groups);
        assert!(groups.all(|(n, most)| (1..=most).contains(n)), "{step:?}");
        for arg in &step.args {
            let (from, until) = range(arg, plan, request);
            let index = arg.index as usize;
            let writes = arg.access != Access::READ;
            match arg.slot {
                Slot::OUTPUT if writes => stored[index].push((from, until)),
                Slot::SCRATCH => {
                    let unread = arg.access == Access::WRITE;
                    assert!(unread || written[index], "scratch {index} is not written");
                    written[index] |= writes;
                }
                _ => {}
            }
        }
    }
    for (output, mut ranges) in request.outputs.iter().zip(stored) {
        ranges.sort_unstable();
        let covered = |end: u64, &(from, until): &(u64, u64)| match from <= end {
            true => end.max(until),
            false => end,
        };
        let end = ranges.iter().fold(0, covered);
        assert_eq!(
            end, output.storage_len,
            "bytes of the result that are stored"
        );
    }
}

/// The bytes of its buffer that an argument covers.
fn range(arg: &BufArg, plan: &Plan, request: &Request<'_>) -> (u64, u64) {
    let index = arg.index as usize;
    let whole = match arg.slot {
        Slot::INPUT => request.inputs[index].storage_len,
        Slot::OUTPUT => request.outputs[index].storage_len,
        Slot::SCRATCH => plan.scratch[index],
        _ => plan.params.len() as u64,
    };
    let until = if arg.len == 0 {
        whole
    } else {
        arg.offset + arg.len
    };
    assert!(
        arg.offset.is_multiple_of(256) && arg.offset <= until && until <= whole,
        "{arg:?} of {whole} bytes"
    );
    assert!(
        until - arg.offset <= request.device.max_buffer_range,
        "{arg:?}"
    );
    (arg.offset, until)
}

/// The shader of each step.
pub fn files(plan: &Plan) -> Vec<&str> {
    let shaders = plan.steps.iter().map(|step| step.shader as usize);
    shaders
        .map(|shader| plan.shaders[shader].file.as_str())
        .collect()
}

/// What the shader of a step is given under `name`; nothing where that is not defined.
pub fn defined<'a>(plan: &'a Plan, step: usize, name: &str) -> &'a str {
    let shader = &plan.shaders[plan.steps[step].shader as usize];
    let define = shader.defines.iter().find(|define| define.name == name);
    define.map_or("", |define| define.value.as_str())
}

/// The words that the shader of a step is pushed.
pub fn words(plan: &Plan, step: usize) -> Vec<u32> {
    let words = plan.steps[step].push.as_chunks::<4>().0.iter();
    words.map(|word| u32::from_le_bytes(*word)).collect()
}
