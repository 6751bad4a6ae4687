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
        Some(Verb::Pack) => PACK,
        Some(Verb::Tune) => TUNE,
        Some(Verb::Registry) => REGISTRY,
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
  tune       time the kernels that compete, so that the registry can choose by it
  pack       write, check, test, measure, pin and sign a kernel pack
  registry   check a registry file before it is used

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
$NX_VULKAN_CHECKED=1 say the same; under a registry in mode locked only the first does.

Exit code: 0 on success, 1 on failure, 2 on a command line that makes no sense.
";

const DEVICES: &str = "\
The Vulkan devices of this machine, in the order in which --device counts them.

Usage: nxv devices [--json]

JSON: a list of {index, name, kind, uuid, driver, api, memory, features, unusable}.
";

const OPS: &str = "\
Every op on every element type it takes, and the kernel that runs it on a [64, 64] tensor.

Usage: nxv ops [--filter OP] [--json | --markdown]

  --filter OP    only this op, or with a trailing *, those that begin with it
  --markdown     a table of ops and types, as in docs/support.md

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

const TUNE: &str = "\
Times every kernel that can run an op, for each element type at sizes from 2^6 to 2^22 elements, and keeps the times in
the cache folder, for this device and driver. A runtime that opens afterwards uses them where the registry's `order`
includes \"measured\". A time counts only for the very file of the pack that it was measured with. Nothing is ever
measured without this verb.

Usage: nxv tune [--filter OP] [--budget SECONDS] [--json]

  --filter OP         only this op, or with a trailing *, those that begin with it
  --budget SECONDS    no measurement begins after this; 60 by default

JSON: {file, device, driver, measured, skipped, complete, seconds, best: [{op, types, elements, kernel, us, next, next_us}]}.
";

const PACK: &str = "\
What an author of a kernel pack needs. docs/writing-a-pack.md goes through all of it.

Usage: nxv pack new NAME [--into DIR] [--abi PATH]
       nxv pack check FILE [--seed N] [--timeout SECONDS] [--json]
       nxv pack test FILE [--op OP] [--seed N] [--quick] [--threads N] [--json]
       nxv pack bench FILE [--op OP] [--quick] [--json]
       nxv pack watch FOLDER [--op OP] [--for SECONDS] [--json]
       nxv pack pin FILE [--registry FILE]
       nxv pack keygen [--key FILE]
       nxv pack sign FILE --key FILE
       nxv pack quarantine [--json]
       nxv pack release SHA256

  new         writes a crate that builds, passes and has one unary op, one binary op and one op with its own shader
  check       looks for what would make the host refuse the pack or its plans: metadata, symbols, layout, purity and
              determinism of plan, hostile requests, shaders against what plans say of them. Each group of checks runs
              in a process of its own, so that a crash is a finding
  test        compares the pack's kernels with the CPU kernels: three runs on reused buffers, with guards around results
  bench       times the pack's kernels against every other kernel of the same op, the CPU's included
  watch       reloads the packs and shaders of a folder as they are saved, and shows what each kernel costs now and cost
              before, until it is interrupted
  pin         prints the registry entry with the sha256 of the file, or with --registry puts it into that file
  keygen      makes a key for sign
  sign        writes FILE.minisig, whose trusted comment names id, version and ABI
  quarantine  lists the packs that are not loaded because they ended a process, with their sha256
  release     lets a pack out of quarantine; the first 8 digits of its sha256 are enough

  --abi PATH     the folder of the nx-vulkan-abi crate; without it the crate is fetched from the project's repository
  --into DIR     where the new folder goes; here by default
  --key FILE     the secret key, nx-vulkan.key by default for keygen; FILE.pub is the public one
  --for S        watches for so long
  --op OP        only this op, or with a trailing *, those that begin with it
  --seed N       other requests, shapes and values; 1 by default. The same seed gives the same ones
  --timeout S    seconds without progress after which a group of checks is ended; 60 by default

$NX_VULKAN_KEY_PASSWORD protects the key of keygen and opens it in sign; without it the key is not encrypted.
Exit code: 1 when a check, a test or a signature fails.
";

const REGISTRY: &str = "\
Every mistake in a registry file, with its place and its code; docs/registry.md says what to do about each.

Usage: nxv registry check [FILE] [--packs DIRS] [--json]
       nxv registry schema

  FILE           the file; without it that of --registry, of $NX_VULKAN_REGISTRY, or registry.toml here
  --packs DIRS   load the packs of these folders and of the file, and check the names in its rules against them;
                 without it no pack is loaded, whatever the file names
  schema         print the JSON Schema of the file, for editors

JSON: {file, valid, diagnostics: [{code, severity, file, line, column, message, excerpt}], packs, rejected, failure}.
Exit code: 1 when the file is not valid.
";
