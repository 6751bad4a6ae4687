//! What Nx has beyond elementwise ops, reductions and products.

use super::{F32, Workload};
use nx_vulkan_host::{Attr, DType};
use nx_vulkan_ops::Spec;

pub(super) fn all() -> Vec<Workload> {
    let families = [
        indexing,
        joins,
        scans,
        sorts,
        windows,
        convolutions,
        transforms,
        matrices,
    ];
    families.iter().flat_map(|family| family()).collect()
}

/// A workload that memory limits, by the bytes that it has to read and write.
fn moves(name: &str, op: &'static str, inputs: Vec<Spec>, bytes: u64) -> Workload {
    Workload::new(name.to_owned(), op, inputs).bytes(bytes)
}

fn indexing() -> Vec<Workload> {
    let (n, few) = (1 << 22, 1 << 20);
    let rows = 16_384;
    vec![
        moves(
            "gather 2^20 of 2^22",
            "gather",
            vec![(F32, vec![n]), (DType::S32, vec![few, 1])],
            12 * few,
        )
        .attrs(vec![Attr::ints("axes", [0])]),
        moves(
            "take 16384 rows of [65536,1024] f32",
            "Nx.Block.Take",
            vec![(F32, vec![65_536, 1024]), (DType::S32, vec![rows])],
            8 * 1024 * rows,
        )
        .attrs(vec![Attr::ints("axis", [0])]),
    ]
}

fn joins() -> Vec<Workload> {
    // Updates go to places of their own most of the time, or many of them to few.
    let adds = |name: &str, extents: Vec<u64>| {
        let (count, axes) = (1 << 20, extents.len() as u64);
        let places = extents.iter().product::<u64>();
        moves(
            name,
            "indexed_add",
            vec![
                (F32, extents),
                (DType::S32, vec![count, axes]),
                (F32, vec![count]),
            ],
            (4 * axes + 4) * count + 8 * places,
        )
        .attrs(vec![Attr::ints("axes", Vec::from_iter(0..axes as i64))])
    };
    let half = || (F32, vec![8192, 4096]);
    let n = 8192 * 4096;
    let ones = |name: &str| Attr::ints(name, [1, 1]);
    vec![
        moves(
            "concatenate axis 1 2x[8192,4096] f32",
            "concatenate",
            vec![half(), half()],
            16 * n,
        )
        .attrs(vec![Attr::ints("axis", [1])]),
        moves(
            "pad 1 all sides [8192,4096] f32",
            "pad",
            vec![half(), (F32, Vec::new())],
            8 * n,
        )
        .attrs(vec![
            ones("high"),
            Attr::ints("interior", [0, 0]),
            ones("low"),
        ]),
        adds("indexed_add 2^20", vec![1 << 22]),
        // Indices are below the least extent.
        adds("indexed_add 2^20 at 256 of 2^22", vec![16, 1 << 18]),
        adds("indexed_add 2^20 into 1000", vec![1000]),
        adds("indexed_add 2^20 into 16", vec![16]),
    ]
}

fn scans() -> Vec<Workload> {
    let along = |name: &str, axis: i64| {
        let x = (F32, vec![8192, 8192]);
        moves(name, "Nx.Block.CumulativeSum", vec![x], 8 << 26)
            .attrs(vec![Attr::ints("axis", [axis]), Attr::ints("reverse", [0])])
    };
    let one = (F32, vec![1 << 24]);
    let one = moves(
        "cumsum 2^24 f32",
        "Nx.Block.CumulativeSum",
        vec![one],
        8 << 24,
    );
    vec![
        along("cumsum axis1 8192 f32", 1),
        along("cumsum axis0 8192 f32", 0),
        one.attrs(vec![Attr::ints("axis", [0]), Attr::ints("reverse", [0])]),
    ]
}

fn sorts() -> Vec<Workload> {
    let of = |name: &str, op, shape: Vec<u64>| {
        let axis = shape.len() as i64 - 1;
        Workload::new(name.to_owned(), op, vec![(F32, shape)]).attrs(vec![
            Attr::ints("axis", [axis]),
            Attr::text("direction", "asc"),
        ])
    };
    let x = (F32, vec![64, 128_256]);
    let top = Workload::new(
        "top_k 50 of [64,128256] f32".to_owned(),
        "Nx.Block.TopK",
        vec![x],
    );
    vec![
        of("sort 2^22 f32", "sort", vec![1 << 22]),
        of("argsort 2^22 f32", "argsort", vec![1 << 22]),
        of("sort rows [4096,1024] f32", "sort", vec![4096, 1024]),
        top.attrs(vec![Attr::ints("k", [50])]),
    ]
}

fn windows() -> Vec<Workload> {
    let x = (F32, vec![32, 64, 112, 112]);
    let pool = Workload::new(
        "max pool 3x3 stride 2 32x64x112x112 f32".to_owned(),
        "window_max",
        vec![x],
    );
    vec![pool.attrs(vec![
        Attr::ints("padding", [0, 0, 0, 0, 1, 1, 1, 1]),
        Attr::ints("strides", [1, 1, 2, 2]),
        Attr::ints("window", [1, 1, 3, 3]),
        Attr::ints("window_dilations", [1, 1, 1, 1]),
    ])]
}

/// Extents of x and filters, `[batch, channels, extent, extent]` and `[filters, channels of a group, size, size]`, and strides.
type Conv = (&'static str, [u64; 4], [u64; 4], u64);

const CONVS: &[Conv] = &[
    ("conv 32x64x56x56 3x3", [32, 64, 56, 56], [64, 64, 3, 3], 1),
    (
        "conv 32x256x14x14 3x3",
        [32, 256, 14, 14],
        [256, 256, 3, 3],
        1,
    ),
    ("conv 32x64x56x56 1x1", [32, 64, 56, 56], [256, 64, 1, 1], 1),
    (
        "conv 32x3x224x224 7x7 s2",
        [32, 3, 224, 224],
        [64, 3, 7, 7],
        2,
    ),
    (
        "depthwise conv 32x128x56x56 3x3",
        [32, 128, 56, 56],
        [128, 1, 3, 3],
        1,
    ),
];

fn convolutions() -> Vec<Workload> {
    let of_type = |dtype: DType| {
        let forward = CONVS.iter().map(move |conv| forward(*conv, dtype));
        let gradients = CONVS[..2]
            .iter()
            .flat_map(move |conv| gradients(*conv, dtype));
        forward.chain(gradients)
    };
    let types = [F32, DType::F16, DType::BF16].into_iter();
    types.flat_map(of_type).collect()
}

fn forward((name, x, kernel, stride): Conv, dtype: DType) -> Workload {
    let ([batch, channels, extent, _], [filters, depth, size, _]) = (x, kernel);
    let half = (size as i64 - 1) / 2;
    let places = (extent.div_ceil(stride)).pow(2);
    let inputs = vec![(dtype, x.to_vec()), (dtype, kernel.to_vec())];
    Workload::new(format!("{name} {dtype}"), "conv", inputs)
        .attrs(vec![
            Attr::ints("batch_group_size", [1]),
            Attr::ints("feature_group_size", [(channels / depth) as i64]),
            Attr::ints("input_dilation", [1, 1]),
            Attr::ints("input_permutation", [0, 1, 2, 3]),
            Attr::ints("kernel_dilation", [1, 1]),
            Attr::ints("kernel_permutation", [0, 1, 2, 3]),
            Attr::ints("output_permutation", [0, 1, 2, 3]),
            Attr::ints("padding", [half; 4]),
            Attr::ints("strides", [stride as i64; 2]),
        ])
        .flops(2 * batch * filters * places * depth * size * size)
}

/// What the gradients of a convolution without strides are, as `Nx.Defn.grad` asks for them: that of x from the result's and
/// the kernel, with filters and channels exchanged, and that of the kernel from x and the result's, along the batch.
fn gradients(conv: Conv, dtype: DType) -> [Workload; 2] {
    let exchanged = |mut workload: Workload, names: &[&str]| {
        let of = |attr: &&mut Attr| names.contains(&&*attr.name);
        for attr in workload.attrs.iter_mut().filter(of) {
            *attr = Attr::ints(&attr.name, [1, 0, 2, 3]);
        }
        workload
    };
    let (name, x, [filters, ..], _) = conv;
    let result = [x[0], filters, x[2], x[3]];
    let named = |what: &str| Workload {
        name: format!("{name} grad {what} {dtype}"),
        family: format!("conv grad {what} {dtype}"),
        ..forward(conv, dtype)
    };
    let of_kernel = Workload {
        inputs: vec![(dtype, x.to_vec()), (dtype, result.to_vec())],
        ..named("kernel")
    };
    let all = [
        "input_permutation",
        "kernel_permutation",
        "output_permutation",
    ];
    [
        exchanged(named("x"), &["kernel_permutation"]),
        exchanged(of_kernel, &all),
    ]
}

fn matrices() -> Vec<Workload> {
    let of = |name: &str, op: &'static str, n: u64, attrs: Vec<Attr>| {
        Workload::new(format!("{name} {n} f32"), op, vec![(F32, vec![n, n])]).attrs(attrs)
    };
    let mut all = Vec::new();
    for n in [64, 512, 2048] {
        all.push(of("cholesky", "Nx.Block.LinAlg.Cholesky", n, vec![]));
        all.push(of("lu", "Nx.Block.LinAlg.LU", n, vec![]));
        all.push(of(
            "qr",
            "Nx.Block.LinAlg.QR",
            n,
            vec![Attr::text("mode", "reduced")],
        ));
        let inputs = vec![(F32, vec![n, n]), (F32, vec![n, n.min(64)])];
        all.push(Workload::new(
            format!("solve {n} f32"),
            "Nx.Block.LinAlg.Solve",
            inputs,
        ));
    }
    for n in [64, 512] {
        all.push(of("eigh", "Nx.Block.LinAlg.Eigh", n, vec![]));
        all.push(of("svd", "Nx.Block.LinAlg.SVD", n, vec![]));
    }
    for n in [777, 1024, 2048] {
        all.push(of("eigh", "Nx.Block.LinAlg.Eigh", n, vec![]));
    }
    let batch = (F32, vec![1024, 32, 32]);
    all.push(Workload::new(
        "cholesky 1024x32 f32".to_owned(),
        "Nx.Block.LinAlg.Cholesky",
        vec![batch],
    ));
    all
}

fn transforms() -> Vec<Workload> {
    let of = |name: &str, shape: [u64; 2]| {
        let bytes = 16 * shape.iter().product::<u64>();
        let attrs = vec![
            Attr::ints("axis", [1]),
            Attr::float("eps", 0.0),
            Attr::ints("length", [shape[1] as i64]),
        ];
        Workload::new(name.to_owned(), "fft", vec![(DType::C64, shape.to_vec())])
            .attrs(attrs)
            .bytes(bytes)
    };
    vec![
        of("fft 4096x1024 c64", [4096, 1024]),
        of("fft 64x2^16 c64", [64, 1 << 16]),
        of("fft 64x65537 c64", [64, 65_537]),
    ]
}
