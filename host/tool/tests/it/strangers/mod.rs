//! Shaders that would end the process that compiles them, or never let it go: each is refused with its reason, and this
//! process lives on and computes what is right.

pub(crate) mod child;
mod packs;
mod texts;

use crate::folder::Folder;
use nx_vulkan_host::{Config, DType, Kind, Result, Runtime, config::Environment};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use texts::{ifs, long, loops, macro_bomb, shader};

fn config(cache: &Folder) -> Config {
    Config {
        cache_dir: Some(cache.join("cache")),
        prober: Some(env!("CARGO_BIN_EXE_nxv").into()),
        environment: Environment::default(),
        ..Config::from_env()
    }
}

fn open(cache: &Folder) -> Arc<Runtime> {
    Runtime::open(&config(cache)).unwrap()
}

/// With another program to try shaders with.
fn open_with(folder: &Folder, program: impl AsRef<Path>, packs: &[PathBuf]) -> Arc<Runtime> {
    let config = Config {
        prober: Some(program.as_ref().to_owned()),
        packs: packs.to_vec(),
        ..config(folder)
    };
    Runtime::open(&config).unwrap()
}

const INPUT: [f32; 4] = [1.0, 2.0, 3.0, 4.0];

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|x| x.to_ne_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| f32::from_ne_bytes(*word)).collect()
}

/// Runs a module over four elements.
fn run(runtime: &Runtime, module: &nx_vulkan_host::Module) -> Result<Vec<f32>> {
    let input = runtime.upload(DType::F32, &[4], &bytes(&INPUT))?;
    let out = runtime.zeros(DType::F32, &[4])?;
    let out = runtime.run_module(module, &[&input], &out, (&[], &[]), [1, 1, 1])?;
    Ok(floats(&runtime.download(&out, None)?))
}

fn run_text(runtime: &Runtime, glsl: &str) -> Result<Vec<f32>> {
    run(runtime, &*runtime.module_of(glsl)?)
}

fn run_file(runtime: &Runtime, path: &Path) -> Result<Vec<f32>> {
    run(runtime, &*runtime.module_at(path)?)
}

/// Whether the runtime still computes what is right, by a shader that it has not seen yet.
#[track_caller]
fn assert_serves(runtime: &Runtime, number: u32) {
    let text = shader(&format!("x = x * 2.0 + {number}.0;"));
    let expected: Vec<f32> = INPUT.iter().map(|x| x * 2.0 + number as f32).collect();
    assert_eq!(run_text(runtime, &text).unwrap(), expected);
}

#[test]
fn a_macro_that_grows_beyond_measure_is_refused() {
    let folder = Folder::new();
    let runtime = open(&folder);
    for module in [
        runtime.module_of(&macro_bomb()),
        runtime.generated_module(&macro_bomb()),
    ] {
        let error = module.unwrap_err();
        assert_eq!(error.kind(), Kind::Shader);
        assert!(error.to_string().contains("operators"), "{error}");
    }
    assert_serves(&runtime, 1);
}

#[test]
fn ifs_that_nest_deeply_end_nothing() {
    let folder = Folder::new();
    let runtime = open(&folder);
    assert!(run_text(&runtime, &ifs(10)).is_ok());
    for count in [120, 250, 1000] {
        match run_text(&runtime, &ifs(count)) {
            Ok(values) => assert_eq!(values.len(), 4),
            Err(error) => {
                assert_eq!(error.kind(), Kind::Shader, "{error}");
                let text = error.to_string();
                assert!(text.contains("nest") || text.contains("ends the"), "{text}");
            }
        }
    }
    assert_serves(&runtime, 1);
}

#[test]
fn loops_that_compile_for_minutes_are_given_up() {
    let folder = Folder::new();
    let runtime = Runtime::open(&Config {
        build_timeout: Duration::from_secs(5),
        ..config(&folder)
    });
    let runtime = runtime.unwrap();
    for _ in 0..2 {
        let start = Instant::now();
        let error = run_text(&runtime, &loops(60)).unwrap_err();
        assert!(start.elapsed() < Duration::from_secs(30));
        assert_eq!(error.kind(), Kind::Shader, "{error}");
        let text = error.to_string();
        assert!(
            ["nest", "within 5 s", "ends the"]
                .iter()
                .any(|why| text.contains(why)),
            "{text}"
        );
    }
    assert_serves(&runtime, 1);
}

#[test]
fn the_limit_of_time_is_kept_and_named() {
    let folder = Folder::new();
    let runtime = Runtime::open(&Config {
        build_timeout: Duration::from_secs(5),
        ..config(&folder)
    });
    let runtime = runtime.unwrap();
    assert_serves(&runtime, 1);
    let start = Instant::now();
    let error = run_text(&runtime, &long(20_000)).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(60));
    assert!(
        error.to_string().contains("did not finish within 5 s"),
        "{error}"
    );
    let start = Instant::now();
    let again = run_text(&runtime, &long(20_000)).unwrap_err();
    assert_eq!(again.to_string(), error.to_string());
    assert!(start.elapsed() < Duration::from_secs(5), "it is remembered");
    assert_serves(&runtime, 2);
}

/// A file of a module with one word changed at a time: whatever that does to the driver, this process answers.
#[test]
fn files_with_one_changed_word_end_nothing() {
    let folder = Folder::new();
    let runtime = open(&folder);
    let module = runtime
        .module_of(&shader("if (x > 1.0) { x = sqrt(x); }"))
        .unwrap();
    let words = module.words().to_vec();
    let mut ended = Vec::new();
    let mut tried = 0;
    for at in 5..words.len() {
        for value in [
            0,
            words[at].wrapping_add(1),
            words[at] ^ 1 << 16,
            0x7fff_ffff,
        ] {
            let mut changed = words.clone();
            changed[at] = value;
            let bytes: Vec<u8> = changed.iter().flat_map(|word| word.to_le_bytes()).collect();
            let path = folder.write(&format!("{tried}.spv"), bytes);
            tried += 1;
            if let Err(error) = run_file(&runtime, &path)
                && error.to_string().contains("ends the driver's compiler")
            {
                let named = error.to_string().starts_with(&path.display().to_string());
                assert!(named && error.kind() == Kind::Shader, "{error}");
                assert_eq!(
                    run_file(&runtime, &path).unwrap_err().to_string(),
                    error.to_string()
                );
                ended.push(format!("word {at} = {value:#x}: {error}"));
            }
        }
    }
    // What ends this driver is refused before it.
    let is_lavapipe = runtime.device().summary().name.contains("llvmpipe");
    assert!(
        ended.is_empty() || !is_lavapipe,
        "{} of {tried} ended their process: {}",
        ended.len(),
        ended.join("\n")
    );
    assert_serves(&runtime, 1);
}

#[test]
fn threads_get_their_own_answers() {
    let folder = Folder::new();
    let runtime = open(&folder);
    thread::scope(|scope| {
        for number in 0..8 {
            let runtime = &runtime;
            scope.spawn(move || {
                for round in 0..5 {
                    assert_serves(runtime, 10 * number + round);
                }
            });
        }
        let broken = scope.spawn(|| runtime.module_of("#version 450\nvoid main() { y; }"));
        let error = broken.join().unwrap().unwrap_err();
        assert!(
            error.to_string().starts_with("shader:2: 'y' : undeclared"),
            "{error}"
        );
    });
}

/// A second runtime remembers what the first one built, so that it needs no child.
#[test]
fn what_passed_is_noted_for_the_next_process() {
    let folder = Folder::new();
    assert_serves(&open(&folder), 1);
    let later = open_with(&folder, "/nowhere/nxv", &[]);
    assert_serves(&later, 1);
    let text = shader("x = 9.0;");
    assert!(
        later.module_of(&text).is_err(),
        "what was not built is not noted"
    );

    let notes = fs::read_dir(folder.join("cache/built")).unwrap().flatten();
    let notes: Vec<PathBuf> = notes.map(|entry| entry.path()).collect();
    let built = notes
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "built"));
    let built: Vec<_> = built.collect();
    assert_eq!(built.len(), 1, "{notes:?}");
    fs::remove_file(built[0]).unwrap();
    fs::write(built[0], "anything").unwrap();
    let doubtful = open_with(&folder, "/nowhere/nxv", &[]);
    let module = doubtful.module_of(&shader("x = x * 2.0 + 1.0;")).unwrap();
    assert!(
        run(&doubtful, &module).is_err(),
        "a note of another content does not count"
    );
}

/// In mode locked the environment does not choose the program that sees shaders.
#[test]
fn the_environment_chooses_no_program_in_mode_locked() {
    let folder = Folder::new();
    let registry = folder.write("registry.toml", "schema = 1\nmode = \"locked\"\n");
    let runtime = Runtime::open(&Config {
        registry: Some(registry),
        environment: Environment {
            prober: Some("/nowhere/nxv".into()),
            ..Environment::default()
        },
        ..config(&folder)
    });
    assert_serves(&runtime.unwrap(), 1);
    let other = Runtime::open(&Config {
        environment: Environment {
            prober: Some("/nowhere/nxv".into()),
            ..Environment::default()
        },
        ..config(&folder)
    });
    assert!(other.unwrap().module_of(&shader("x = 5.0;")).is_err());
}
