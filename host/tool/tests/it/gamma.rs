//! The logarithm of the gamma function and its relatives, as the GLSL headers have them, on a device.

use crate::folder::Folder;
use nx_vulkan_host::{Config, DType, Request, Runtime, Tensor};
use std::sync::Arc;

type Table = &'static [(f64, f64)];

/// Argument and value with 60 digits, rounded once. Arguments are floats of 32 bits.
#[rustfmt::skip]
const LGAMMA: Table = &[
    (9.999999682655225e-21, 46.051701891615394),
    (9.999999747378752e-06, 11.512919718158097),
    (0.009999999776482582, 4.599479900519132),
    (0.10000000149011612, 2.252712636201601),
    (0.20000000298023224, 1.5240638066682175),
    (0.23000000417232513, 1.3761944400387816),
    (0.23999999463558197, 1.3311791671025481),
    (0.30000001192092896, 1.095797953064734),
    (0.46000000834465027, 0.6550437703412558),
    (0.5, 0.5723649429247001),
    (0.699999988079071, 0.2608672610754808),
    (0.7300000190734863, 0.22551372799114114),
    (0.7400000095367432, 0.21426753570453164),
    (0.8799999952316284, 0.08186362563594592),
    (0.8999999761581421, 0.06637625773360459),
    (0.9100000262260437, 0.05892254832513561),
    (0.949999988079071, 0.030968803136895182),
    (0.9900000095367432, 0.005854801101922376),
    (0.9998999834060669, 5.773937256934961e-05),
    (1.0, 0.0),
    (1.000100016593933, -5.772291776898885e-05),
    (1.0099999904632568, -0.005690302597049016),
    (1.100000023841858, -0.049872451362944395),
    (1.2200000286102295, -0.09090336939693403),
    (1.2400000095367432, -0.09593721445807359),
    (1.2999999523162842, -0.10817480144020891),
    (1.4500000476837158, -0.12142059127991489),
    (1.4615999460220337, -0.12148629003421686),
    (1.4800000190734863, -0.12132396178873502),
    (1.600000023841858, -0.11259176269155008),
    (1.7200000286102295, -0.09147888649866973),
    (1.7400000095367432, -0.08683754419189929),
    (1.7999999523162842, -0.07108388650382184),
    (1.899999976158142, -0.0389842844151753),
    (1.9900000095367432, -0.0041955251185052085),
    (1.999899983406067, -4.228222335681117e-05),
    (2.0, 0.0),
    (2.0000998973846436, 4.2238267333173845e-05),
    (2.009999990463257, 0.0042600188137990585),
    (2.5, 0.2846828704729192),
    (2.990000009536743, 0.683939118410229),
    (3.0, std::f64::consts::LN_2),
    (3.5, 1.2009736023470743),
    (4.199999809265137, 2.0485553868425503),
    (5.0, 3.1780538303479458),
    (5.900000095367432, 4.617792266456926),
    (6.699999809265137, 6.02443348166111),
    (7.0, 6.579251212010101),
    (7.989999771118164, 8.505011145049691),
    (8.0, 8.525161361065415),
    (8.010000228881836, 8.545324891395984),
    (8.5, 9.549267257300997),
    (10.0, 12.801827480081469),
    (12.300000190734863, 18.238983877901873),
    (20.0, 39.339884187199495),
    (55.5, 166.32150615984037),
    (100.0, 359.1342053695754),
    (1000.0, 5905.220423209181),
    (123456.0, 1323892.7688437013),
    (1000000.0, 12815504.569147611),
    (999999986991104.0, 3.353877594559932e+16),
    (1.0000000150474662e+30, 6.807755382926351e+31),
];
/// As [`LGAMMA`].
#[rustfmt::skip]
const HALF_STEP: Table = &[
    (9.999999747378752e-06, -10.940574410086423),
    (0.009999999776482582, -4.046506082161297),
    (0.25, -1.084741573266782),
    (0.5, -0.5723649429247001),
    (1.0, -0.12078223763524522),
    (1.5, 0.12078223763524522),
    (2.5, 0.40846431008702616),
    (3.9000000953674316, 0.6485231571872244),
    (4.0, 0.6619771016143872),
    (4.099999904632568, 0.6750799469393112),
    (7.699999809265137, 1.0043877368546823),
    (10.0, 1.1387977393222941),
    (15.899999618530273, 1.3752992013843337),
    (16.0, 1.378483131199923),
    (16.100000381469727, 1.3816469194493248),
    (30.0, 1.6964322170013992),
    (1000.0, 3.453752639496277),
    (1000000.0, 6.907755153982137),
    (999999995904.0, 13.815510555916148),
];
/// As [`LGAMMA`].
#[rustfmt::skip]
const PEAK: Table = &[
    (9.999999747378752e-06, -11.513044847409837),
    (0.009999999776482582, -4.655531601349677),
    (0.25, -1.8845961149780501),
    (0.5, -1.4189385332046727),
    (1.0, -1.0),
    (1.5, -0.7710201002025082),
    (2.0, -0.6137056388801094),
    (2.9000000953674316, -0.41520845559429487),
    (3.0, -0.3973103145556162),
    (3.0999999046325684, -0.38002855385205697),
    (5.5, -0.0816994603073775),
    (7.900000095367432, 0.10394993799075078),
    (8.0, 0.11037097237327313),
    (8.100000381469727, 0.1167106601942404),
    (30.0, 0.7788824826966523),
    (1000.0, 2.53485577295584),
    (1000000.0, 5.988816662444131),
    (999999995904.0, 12.896572022711519),
];
/// As [`LGAMMA`], of two arguments.
#[rustfmt::skip]
const LBETA: &[(f64, f64, f64)] = &[
    (9.999999747378752e-06, 9.999999747378752e-06, 12.206072670627808),
    (0.5, 0.5, 1.1447298858494002),
    (1.0, 1.0, 0.0),
    (1.0, 2.0, -std::f64::consts::LN_2),
    (2.0, 3.5, -2.7568403652716422),
    (0.009999999776482582, 7.900000095367432, 4.579450772451364),
    (3.0, 7.989999771118164, -5.8827409433454925),
    (4.0, 8.0, -7.1853870155804165),
    (0.009999999776482582, 8.100000381469727, 4.579184659260149),
    (8.0, 8.0, -10.848948661710063),
    (9.0, 0.5, -0.5123655751273182),
    (20.0, 30.0, -33.968820791977386),
    (1.0, 1000000.0, -13.815510557964274),
    (1000000.0, 1000000.0, -1386300.003362921),
    (2.5, 10000000000.0, -57.27994445456572),
    (9.999999747378752e-06, 1000.0, 11.512850645607836),
];

const SHADER: &str = r#"#version 450
#include "dtype.glsl"
#ifdef NXV_NEEDS_FP64
#include "gamma_f64.glsl"
#else
#include "gamma_f32.glsl"
#endif
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer A { A_STORAGE a[]; };
layout(set = 0, binding = 1) readonly buffer B { A_STORAGE b[]; };
layout(set = 0, binding = 2) writeonly buffer R { A_STORAGE r[]; };
layout(push_constant) uniform Push { uint count; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) r[i] = EXPRESSION;
}
"#;

/// Op and expression.
const OPS: [(&str, &str); 4] = [
    ("lgamma", "nxv_lgamma(a[i])"),
    ("half_step", "nxv_lgamma_half_step(a[i])"),
    ("peak", "nxv_lgamma_peak(a[i])"),
    ("lbeta", "nxv_lbeta(a[i], b[i])"),
];

struct Device {
    runtime: Arc<Runtime>,
    _folder: Folder,
}

impl Device {
    fn open() -> Device {
        let folder = Folder::new();
        let mut table = "[pack]\nid = \"gammas\"\nversion = \"1.0.0\"\nabi = \"1\"\n".to_owned();
        for (op, expression) in OPS {
            table += &format!(
                "[[kernel]]\nid = \"{op}\"\nop = \"{op}\"\ninputs = [\"f32\", \"f64\"]\n\
                 outputs = [\"f32\", \"f64\"]\ntypes = \"equal\"\nshader = \"gammas.comp\"\n\
                 defines = {{ EXPRESSION = \"{expression}\" }}\npush = [\"elems\"]\ngroups = [\"ceil(elems / 64)\"]\n"
            );
        }
        folder.write("packs/gammas/pack.toml", table);
        folder.write("packs/gammas/gammas.comp", SHADER);
        let config = Config {
            packs: vec![folder.join("packs")],
            cache_dir: Some(folder.join("cache")),
            ..Config::from_env()
        };
        Device {
            runtime: Runtime::open(&config).unwrap(),
            _folder: folder,
        }
    }

    fn run(&self, op: &str, dtype: DType, a: &[f64], b: &[f64]) -> Vec<f64> {
        let shape = [a.len() as u64];
        let upload = |values: &[f64]| -> Tensor {
            let bytes: Vec<u8> = match dtype {
                DType::F32 => values
                    .iter()
                    .flat_map(|x| (*x as f32).to_ne_bytes())
                    .collect(),
                _ => values.iter().flat_map(|x| x.to_ne_bytes()).collect(),
            };
            self.runtime.upload(dtype, &shape, &bytes).unwrap()
        };
        let operands = [upload(a), upload(b)];
        let inputs: Vec<&Tensor> = operands.iter().collect();
        let outputs = [(dtype, shape.to_vec())];
        let ran = self
            .runtime
            .run(&Request::new(op, &inputs, &outputs, &[]))
            .unwrap();
        let bytes = self.runtime.download(&ran[0], None).unwrap();
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
}

const TYPES: [DType; 2] = [DType::F32, DType::F64];

/// The distance from one number of `dtype` to the next at `x`.
fn ulp(dtype: DType, x: f64) -> f64 {
    let exponent = x.abs().log2().floor();
    match dtype {
        DType::F32 => (exponent - 23.0).exp2(),
        _ => (exponent - 52.0).exp2(),
    }
}

/// The largest error in units of `ulp(max(|value|, least))`, and where it is.
fn worst(dtype: DType, got: &[f64], expected: &[f64], at: &[f64], least: f64) -> (f64, f64) {
    let errors = got.iter().zip(expected).zip(at).map(|((got, want), at)| {
        let unit = ulp(dtype, want.abs().max(least));
        let error = (got - want).abs() / unit;
        (
            if *want == 0.0 && *got == 0.0 {
                0.0
            } else {
                error
            },
            *at,
        )
    });
    errors.fold(
        (0.0, 0.0),
        |a, b| if b.0 > a.0 || b.0.is_nan() { b } else { a },
    )
}

#[test]
fn errors_stay_below_what_the_headers_state() {
    let device = Device::open();
    // Op, table, least magnitude that counts, error in ulp of f32 and of f64.
    type Row = (&'static str, Table, f64, [f64; 2]);
    let tables: [Row; 3] = [
        ("lgamma", LGAMMA, 0.0, [2.5, 1.5]),
        ("half_step", HALF_STEP, 1.0, [2.0, 8.0]),
        ("peak", PEAK, 1.0, [2.0, 6.0]),
    ];
    for (op, table, least, bounds) in tables {
        let (a, expected): (Vec<f64>, Vec<f64>) = table.iter().copied().unzip();
        for (dtype, bound) in TYPES.into_iter().zip(bounds) {
            let got = device.run(op, dtype, &a, &a);
            let (error, at) = worst(dtype, &got, &expected, &a, least);
            eprintln!("{op} {dtype}: {error:.2} ulp at {at}");
            assert!(error <= bound, "{op} {dtype}: {error} ulp at {at}");
        }
    }
    let a: Vec<f64> = LBETA.iter().map(|row| row.0).collect();
    let b: Vec<f64> = LBETA.iter().map(|row| row.1).collect();
    let expected: Vec<f64> = LBETA.iter().map(|row| row.2).collect();
    for (dtype, bound) in TYPES.into_iter().zip([3.0, 2.0]) {
        let got = device.run("lbeta", dtype, &a, &b);
        let (error, at) = worst(dtype, &got, &expected, &a, 1.0);
        eprintln!("lbeta {dtype}: {error:.2} ulp at {at}");
        assert!(error <= bound, "lbeta {dtype}: {error} ulp at {at}");
        assert_eq!(
            got,
            device.run("lbeta", dtype, &b, &a),
            "lbeta is symmetric"
        );
    }
}

/// Thousands of points over the whole domain; the reference is libm's function in f64.
#[test]
fn lgamma_is_that_of_libm_everywhere() {
    let device = Device::open();
    for (dtype, low, high, bound) in [
        (DType::F32, -100.0, 120.0, 2.5),
        (DType::F64, -800.0, 900.0, 1.5),
    ] {
        let mut points: Vec<f64> = (0..20_000)
            .map(|i| (low + (high - low) * f64::from(i) / 20_000.0).exp2())
            .collect();
        points.extend((1..20_000).map(|i| f64::from(i) / 2000.0));
        if dtype == DType::F32 {
            points.iter_mut().for_each(|x| *x = f64::from(*x as f32));
        }
        let expected: Vec<f64> = points.iter().map(|x| libm::lgamma(*x)).collect();
        let got = device.run("lgamma", dtype, &points, &points);
        let (error, at) = worst(dtype, &got, &expected, &points, 0.0);
        eprintln!("lgamma {dtype}: {error:.2} ulp at {at}");
        assert!(error <= bound, "lgamma {dtype}: {error} ulp at {at}");
    }
}

#[test]
fn special_arguments() {
    let device = Device::open();
    for dtype in TYPES {
        let x = [0.0, f64::INFINITY, 1.0, 2.0, -1.5, f64::NAN];
        let got = device.run("lgamma", dtype, &x, &x);
        assert_eq!(
            got[..4],
            [f64::INFINITY, f64::INFINITY, 0.0, 0.0],
            "{dtype}"
        );
        assert!(got[4].is_nan() && got[5].is_nan(), "{dtype}: {got:?}");
    }
}
