//! Help texts.

use crate::args::Verb;

/// The help on a verb, or in general.
pub(crate) fn text(verb: Option<Verb>) -> &'static str {
    match verb {
        None => GENERAL,
        Some(Verb::Devices) => DEVICES,
        Some(Verb::Ops) => OPS,
        Some(Verb::Explain) => EXPLAIN,
        Some(Verb::Bench) => BENCH,
        Some(Verb::Check) => CHECK,
    }
}

const GENERAL: &str = "\
nxv looks at nx_vulkan from the command line: devices, kernels, correctness, speed.

Usage: nxv VERB [OPTIONS]

  devices    the Vulkan devices of this machine, best first
  ops        every op on every element type, and who runs it
  explain    who runs one request, and why the others do not
  check      run every op and compare with the CPU kernels
  bench      measure

  nxv help VERB says more.

Options of every verb:
  --json             print JSON
  --device D         an index of `nxv devices`, a UUID, or a part of the name
  --registry FILE    the registry file
  --packs DIRS       folders with kernel packs, a path list
  --cache DIR        where compiled shaders are kept
  --validation       run under the Vulkan validation layers
  --checked          report accesses of shaders outside of their arrays, where they use nxv_load and nxv_store

$NX_VULKAN_DEVICE, $NX_VULKAN_REGISTRY, $NX_VULKAN_PACKS, $NX_VULKAN_CACHE, $NX_VULKAN_VALIDATION=1 and
$NX_VULKAN_CHECKED=1 say the same.

Exit code: 0 on success, 1 on failure, 2 on a command line that makes no sense.
";

const DEVICES: &str = "\
The Vulkan devices of this machine, in the order in which --device counts them.

Usage: nxv devices [--json]

JSON: a list of {index, name, kind, uuid, driver, api, memory, features, unusable}.
";

const OPS: &str = "\
Every op on every element type it takes, and the kernel that runs it on a [64, 64] tensor.

Usage: nxv ops [--filter OP] [--json]

  --filter OP    only this op, or with a trailing *, those that begin with it

JSON: a list of {op, dtype, served_by}; served_by is \"pack/kernel\", \"host\" or null.
";

const EXPLAIN: &str = "\
Who runs a request, every kernel that was considered, and why it was passed over.

Usage: nxv explain OP [OPERAND...] [--attr NAME=VALUE] [--out RESULT] [--json]

  OPERAND            type and shape: f32[512,512], s64[], u8[3]
  --attr NAME=VALUE  an attribute as in docs/ops.md: integers (axes=0,1), floats (x=0.5), text (tie_break=high)
  --out RESULT       type and shape of the result; inferred as Nx does where it can be

Attributes default to: all axes of a reduction, the flat index of an arg reduction, the last axis of a with the
first free axis of b for dot.

  nxv explain dot f32[512,512] f32[512,512]
  nxv explain sum f16[64,1000] --attr axes=1 --out f32[64]
  nxv explain as_type s64[8] --out bf16[8]

JSON: {request, device, picked, candidates: [{kernel, outcome, reason}]}.
Exit code: 1 when nobody runs it.
";

const BENCH: &str = "\
Measures ops on data that lies on the device. Work is timed in batches with one wait at the end of each; the numbers
are of one op: median, minimum and 95th percentile over the batches.

Usage: nxv bench [--filter TEXT] [--list] [--quick] [--host] [--json]

  --filter TEXT  only benchmarks whose name contains it; several texts are separated by commas
  --list         print the names, run nothing
  --quick        fewer batches
  --host         also time the CPU kernels

What does not fit into memory is skipped with a note, what nobody runs as well.
bench/compare.py puts two results side by side.

JSON: {device, driver, results: [{name, median_us, min_us, p95_us, gbps, tflops, served_by, host_us, note}]}.
";

const CHECK: &str = "\
The conformance sweep: runs every op on every element type, in every layout, on random and special values, three times
each, and compares with the CPU kernels. It fails when an element is beyond its tolerance, when a run differs from the
first, when bytes outside of a result or in an operand change, and when a type that the device can compute with is not
served by a pack.

Usage: nxv check [--filter OP] [--seed N] [--quick] [--threads N] [--validation] [--json]

  --filter OP    only this op, or with a trailing *, those that begin with it
  --seed N       another choice of shapes, types and values; 1 by default
  --quick        one problem per op, type and layout, without mixed types
  --threads N    threads, each with a device of its own

JSON: {device, driver, seed, cases, guarded, flushed, ulp, not_served, lacking, failures, failed, seconds, validation}.
Exit code: 1 when anything fails, or with --validation when the layers report anything.
";
