//! Measured order from end to end: `nxv tune` writes times, and whoever opens a device afterwards goes by them.

use crate::folder::Folder;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/packs/swish");

fn nxv(folder: &Folder, words: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_nxv"))
        .args(words)
        .args(["--json", "--device", "llvmpipe", "--packs"])
        .arg(folder.join("packs"))
        .arg("--cache")
        .arg(folder.join("cache"))
        .arg("--registry")
        .arg(folder.join("registry.toml"))
        .env_remove("NX_VULKAN_REGISTRY")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Who runs add of 1024 f32.
fn picked(folder: &Folder) -> String {
    let explained = nxv(folder, &["explain", "add", "f32[1024]", "f32[1024]"]);
    explained["picked"].as_str().unwrap().to_owned()
}

/// The example without code, as a pack `id` of that rank.
fn pack(folder: &Folder, id: &str, rank: u32) {
    let from = Path::new(EXAMPLE);
    let table = fs::read_to_string(from.join("pack.toml")).unwrap();
    let table = table
        .replace(
            "id = \"swish\"\nversion",
            &format!("id = \"{id}\"\nversion"),
        )
        .replace("rank = 140", &format!("rank = {rank}"));
    folder.write(&format!("packs/{id}/pack.toml"), table);
    for shader in fs::read_dir(from.join("shaders")).unwrap() {
        let shader = shader.unwrap();
        let name = shader.file_name().into_string().unwrap();
        let text = fs::read(shader.path()).unwrap();
        folder.write(&format!("packs/{id}/shaders/{name}"), text);
    }
}

/// Sets the times of add of 1024 f32, of those kernels only.
fn set(file: &Path, times: &[(&str, f64)]) {
    let mut content: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let rows = content["times"].as_array_mut().unwrap();
    let of_add =
        |row: &Value| row["request"] == "add f32,f32->f32" && row["bucket"] == json!([10, 10]);
    for row in rows.iter_mut().filter(|row| of_add(row)) {
        let time = times.iter().find(|time| row["kernel"] == time.0);
        row["us"] = json!(time.map(|time| time.1));
    }
    fs::write(file, content.to_string()).unwrap();
}

#[test]
fn what_tune_measured_decides() {
    let folder = Folder::new();
    let devices = Command::new(env!("CARGO_BIN_EXE_nxv"))
        .arg("devices")
        .output();
    if !String::from_utf8_lossy(&devices.unwrap().stdout).contains("llvmpipe") {
        eprintln!("SKIPPED: there is no lavapipe here, so no kernel was measured");
        return;
    }
    pack(&folder, "first", 150);
    pack(&folder, "second", 140);
    folder.write("registry.toml", "schema = 1\n");
    assert_eq!(picked(&folder), "first/add");

    let tuned = nxv(&folder, &["tune", "--filter", "add", "--budget", "20"]);
    let file = PathBuf::from(tuned["file"].as_str().unwrap());
    let best = tuned["best"].as_array().unwrap().iter();
    let best = best.filter(|row| row["types"] == "f32,f32->f32" && row["elements"] == 1024);
    let best: Vec<&str> = best.map(|row| row["kernel"].as_str().unwrap()).collect();
    assert_eq!(best, [picked(&folder)], "{tuned:#}");

    set(
        &file,
        &[("first/add", 2.0), ("second/add", 1.0), ("host", 3.0)],
    );
    assert_eq!(picked(&folder), "second/add");
    set(
        &file,
        &[("first/add", 1.0), ("second/add", 2.0), ("host", 3.0)],
    );
    assert_eq!(picked(&folder), "first/add");
    set(
        &file,
        &[("first/add", 2.0), ("second/add", 3.0), ("host", 1.0)],
    );
    assert_eq!(picked(&folder), "host");
    set(&file, &[("host", 1.0)]);
    assert_eq!(
        picked(&folder),
        "first/add",
        "nobody to compare the host with"
    );

    // A rule, an order without times and an edited pack make the times not count.
    set(
        &file,
        &[("first/add", 2.0), ("second/add", 1.0), ("host", 0.5)],
    );
    let rule = "schema = 1\n[[op]]\nname = \"add\"\nuse = [\"second\", \"first\"]\n";
    folder.write("registry.toml", rule);
    assert_eq!(picked(&folder), "second/add");
    folder.write(
        "registry.toml",
        "schema = 1\n[defaults]\norder = [\"rank\"]\n",
    );
    assert_eq!(picked(&folder), "first/add");
    folder.write("registry.toml", "schema = 1\n");
    assert_eq!(picked(&folder), "host");
    pack(&folder, "second", 141);
    set(&file, &[("first/add", 2.0), ("second/add", 1.0)]);
    assert_eq!(picked(&folder), "first/add", "another file of the pack");
}
