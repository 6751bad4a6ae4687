//! Packs without code that change under a running runtime.

use super::watched::{Watched, square, variant};
use nx_vulkan_host::{DType, Request, live::EventKind};
use std::fs;

const TABLE: &str = "[pack]\nid = \"scaled\"\nversion = \"1.0.0\"\nabi = \"1\"\n\
    [[kernel]]\nid = \"scaled\"\nop = \"scaled\"\ninputs = [\"f32\"]\noutputs = [\"f32\"]\n\
    shader = \"shaders/scaled.comp\"\npush = [\"elems\"]\ngroups = [\"ceil(elems / 64)\"]\n\
    defines = { FACTOR = \"2.0\" }\n";

const SCALED: &str = "#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Params { uint count; };
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) y[i] = FACTOR * x[i];
}
";

#[test]
fn a_pack_without_code_is_edited_while_it_serves() {
    let watched = Watched::new();
    let scaled = || {
        let runtime = &watched.runtime;
        let input = runtime.upload(DType::F32, &[1], &3f32.to_le_bytes())?;
        let outputs = runtime.run(&Request::new(
            "scaled",
            &[&input],
            &[(DType::F32, vec![1])],
            &[],
        ))?;
        let bytes = runtime.download(&outputs[0], None)?;
        Ok::<f32, nx_vulkan_host::Error>(f32::from_le_bytes(bytes.try_into().unwrap()))
    };
    // A build makes the folder elsewhere and moves it in.
    let table = watched.folder.write("made/pack.toml", TABLE);
    watched.folder.write("made/shaders/scaled.comp", SCALED);
    let made = table.parent().unwrap();
    fs::rename(made, watched.folder.join("packs/scaled")).unwrap();
    let event = watched.wait_for(EventKind::PackAdded);
    assert_eq!(event.pack.as_deref(), Some("scaled"));
    assert_eq!(scaled().unwrap(), 6.0);
    let is_timed = || {
        let packs = &watched.runtime.table().packs;
        let pack = packs.iter().find(|pack| pack.id == "scaled").unwrap();
        pack.timed_as().is_some()
    };
    assert!(is_timed());

    let table = watched.folder.join("packs/scaled/pack.toml");
    fs::write(&table, TABLE.replace("2.0", "5.0")).unwrap();
    watched.wait_for(EventKind::PackReplaced);
    assert_eq!(scaled().unwrap(), 15.0);
    // Whoever edits a pack wants to see it serve, whatever the host was faster than.
    assert!(!is_timed());

    let shader = watched.folder.join("packs/scaled/shaders/scaled.comp");
    fs::write(&shader, SCALED.replace("x[i];", "x[i] + 1.0;")).unwrap();
    watched.wait_for(EventKind::PackReplaced);
    assert_eq!(scaled().unwrap(), 16.0);

    fs::write(&shader, "").unwrap();
    assert_eq!(watched.runtime.reload().len(), 0, "it is being written");
    assert_eq!(scaled().unwrap(), 16.0);
    fs::write(&shader, SCALED.replace("x[i];", "nothing;")).unwrap();
    let event = watched.wait_for(EventKind::ShaderRejected);
    let place = format!("{}:8: 'nothing'", shader.display());
    assert!(event.message.contains(&place), "{event}");
    assert_eq!(scaled().unwrap(), 16.0);
    // It compiles, and breaks the plan that the table still makes.
    let store = "y[i] = FACTOR * x[i];";
    for (edit, expected) in [
        (
            SCALED
                .replace("readonly buffer X", "buffer X")
                .replace(store, "{ y[i] = 0.0; x[i] = 1.0; }"),
            "writes to binding 0, which the plan only reads",
        ),
        (
            SCALED
                .replace("uint count;", "uint count; float more;")
                .replace("FACTOR *", "more *"),
            "reads 8 bytes of push constants, and the plan declares 4",
        ),
        (
            SCALED
                .replace(
                    "void main",
                    "layout(set = 0, binding = 2) readonly buffer Z { float z[]; };\nvoid main",
                )
                .replace("FACTOR *", "z[i] *"),
            "uses bindings [0, 1, 2], and the plan declares 2",
        ),
    ] {
        fs::write(&shader, edit).unwrap();
        let event = watched.wait_for(EventKind::ShaderRejected);
        assert!(event.message.contains(expected), "{event}");
        assert_eq!(scaled().unwrap(), 16.0);
    }
    fs::write(&shader, SCALED).unwrap();
    watched.wait_for(EventKind::PackReplaced);
    assert_eq!(scaled().unwrap(), 15.0);

    // A table that tells its shader more, and then a shader that reads it: what the table before made is no measure.
    let more = TABLE
        .replace("push = [\"elems\"]", "push = [\"elems\", \"a.offset\"]")
        .replace("2.0", "5.0");
    fs::write(&table, more).unwrap();
    watched.wait_for(EventKind::PackReplaced);
    fs::write(
        &shader,
        SCALED.replace("uint count;", "uint count, offset;"),
    )
    .unwrap();
    watched.wait_for(EventKind::PackReplaced);
    assert_eq!(scaled().unwrap(), 15.0);
    fs::write(&shader, SCALED).unwrap();
    watched.wait_for(EventKind::PackReplaced);
    assert_eq!(scaled().unwrap(), 15.0);

    fs::write(&table, TABLE.replace("push = ", "psuh = ")).unwrap();
    let event = watched.wait_for(EventKind::Rejected);
    let place = format!("{}:11:", table.display());
    assert!(
        event.message.contains(&place) && event.message.contains("serves on"),
        "{event}"
    );
    assert_eq!(scaled().unwrap(), 15.0);

    // The pack before the last edit, until the files change again.
    fs::write(&table, TABLE).unwrap();
    watched.wait_for(EventKind::PackReplaced);
    watched.runtime.rollback("scaled", 1).unwrap();
    assert_eq!(scaled().unwrap(), 15.0);
    fs::write(&table, TABLE.replace("2.0", "7.0")).unwrap();
    watched.wait_for(EventKind::PackReplaced);
    assert_eq!(scaled().unwrap(), 21.0);

    fs::remove_dir_all(watched.folder.join("packs/scaled")).unwrap();
    let event = watched.wait_for(EventKind::PackRemoved);
    assert_eq!(event.pack.as_deref(), Some("scaled"));
    assert!(scaled().is_err());
    assert_eq!(watched.nine(), 9.0);
}

#[test]
fn packs_that_the_registry_names_by_their_path_are_watched() {
    let watched = Watched::new();
    let folder = &watched.folder;
    fs::remove_file(folder.join("packs/libtemplate.so")).unwrap();
    watched.wait_for(EventKind::PackRemoved);
    assert!(square(&watched.runtime, 3.0).is_err());

    let library = folder.write("elsewhere/library.so", variant(1));
    folder.write("far/off/scaled/pack.toml", TABLE);
    let shader = folder.write("far/off/scaled/shaders/scaled.comp", SCALED);
    let registry = fs::read_to_string(folder.join("registry.toml")).unwrap()
        + "[pack.template]\nfile = \"elsewhere/library.so\"\n\
           [pack.scaled]\nfile = \"far/off/scaled\"\n";
    folder.write("registry.toml", registry);
    watched.wait_for(EventKind::PackAdded);
    watched.wait_for(EventKind::PackAdded);
    assert_eq!(watched.nine(), 9.0);

    fs::write(&library, variant(2)).unwrap();
    let event = watched.wait_for(EventKind::PackReplaced);
    assert_eq!(event.pack.as_deref(), Some("template"));
    fs::write(&shader, SCALED.replace("x[i];", "x[i] + 1.0;")).unwrap();
    let event = watched.wait_for(EventKind::PackReplaced);
    assert_eq!(event.pack.as_deref(), Some("scaled"));

    // The registry still names it.
    fs::remove_dir_all(folder.join("far")).unwrap();
    let event = watched.wait_for(EventKind::Rejected);
    assert_eq!(event.pack.as_deref(), Some("scaled"));
    assert!(event.message.contains("the old one serves on"), "{event}");
    assert_eq!(watched.runtime.table().packs.len(), 2);
}
