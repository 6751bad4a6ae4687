//! Packs, shaders and the registry file that change under a running runtime.

mod code_free;
mod lent;
mod swaps;
mod watched;

use crate::folder::Folder;
use nx_vulkan_host::{Config, DeviceChoice, Kind, Runtime, live::EventKind};
use std::{
    fs, thread,
    time::{Duration, Instant},
};
use watched::{Watched, shader, square, variant};

#[test]
fn an_edited_shader_serves_and_a_broken_one_does_not() {
    let watched = Watched::new();
    assert_eq!(watched.nine(), 9.0);
    let file = watched
        .folder
        .write("shaders/template/unary.comp", shader("2.0"));
    let event = watched.wait_for(EventKind::ShaderReplaced);
    assert_eq!(
        (event.pack.as_deref(), event.file.as_deref()),
        (Some("template"), Some("unary.comp"))
    );
    assert_eq!(watched.nine(), 18.0);

    fs::write(&file, shader("2.0 * nothing")).unwrap();
    let event = watched.wait_for(EventKind::ShaderRejected);
    assert!(event.message.contains("unary.comp:8"), "{event}");
    assert!(
        event.message.contains(&file.display().to_string()),
        "{event}"
    );
    assert!(event.message.contains("nothing"), "{event}");
    assert_eq!(watched.nine(), 18.0);

    // As editors save: a new file under another name, then renamed.
    let temporary = watched
        .folder
        .write("shaders/template/.unary.comp.swp", shader("3.0"));
    fs::rename(temporary, &file).unwrap();
    watched.wait_for(EventKind::ShaderReplaced);
    assert_eq!(watched.nine(), 27.0);

    fs::remove_file(&file).unwrap();
    watched.wait_for(EventKind::ShaderReplaced);
    assert_eq!(watched.nine(), 9.0);
}

#[test]
fn another_content_that_is_refused_in_the_same_words_is_told() {
    let watched = Watched::new();
    assert_eq!(watched.nine(), 9.0);
    let mut shaders = Vec::new();
    for number in 1..=2 {
        let text = shader(&format!("(nothing + {number}.0)"));
        watched.folder.write("shaders/template/unary.comp", text);
        shaders.push(watched.wait_for(EventKind::ShaderRejected).message);
    }
    assert_eq!(shaders[0], shaders[1]);
    let mut libraries = Vec::new();
    for number in 1..=2 {
        let text = format!("no library {number}");
        watched.folder.write("packs/libtemplate.so", text);
        libraries.push(watched.wait_for(EventKind::Rejected).message);
    }
    assert_eq!(libraries[0], libraries[1]);
    watched.runtime.reload();
    assert_eq!(watched.kinds(), []);
}

/// As many editors save: a file is emptied, then written.
#[test]
fn an_empty_shader_is_not_written_yet() {
    let watched = Watched::new();
    let file = watched
        .folder
        .write("shaders/template/unary.comp", shader("2.0"));
    watched.wait_for(EventKind::ShaderReplaced);
    fs::write(&file, "").unwrap();
    watched.runtime.reload();
    assert_eq!(watched.nine(), 18.0);
    fs::write(&file, shader("4.0")).unwrap();
    watched.wait_for(EventKind::ShaderReplaced);
    assert_eq!(watched.nine(), 36.0);
    assert_eq!(watched.kinds(), []);
}

#[test]
fn a_rebuilt_pack_serves_and_a_broken_one_does_not() {
    let watched = Watched::new();
    assert_eq!(watched.nine(), 9.0);
    let file = watched.folder.join("packs/libtemplate.so");
    let first = watched.runtime.table().packs[0].sha256.clone();

    // As cargo does: away, then a link to the new file.
    let built = watched.folder.write("elsewhere/lib.so", variant(1));
    fs::remove_file(&file).unwrap();
    fs::hard_link(built, &file).unwrap();
    watched.wait_for(EventKind::PackReplaced);
    let second = watched.runtime.table().packs[0].sha256.clone();
    assert_ne!(first, second);
    assert_eq!(watched.nine(), 9.0);

    fs::write(&file, &variant(2)[..10_000]).unwrap();
    let event = watched.wait_for(EventKind::Rejected);
    assert!(
        event.message.contains("template") && event.message.contains("serves on"),
        "{event}"
    );
    assert_eq!(watched.runtime.table().packs[0].sha256, second);
    assert_eq!(watched.nine(), 9.0);

    // A slow writer: what is there in between is no pack, and no call fails.
    let bytes = variant(3);
    for end in [bytes.len() / 3, bytes.len() / 2, bytes.len()] {
        fs::write(&file, &bytes[..end]).unwrap();
        thread::sleep(Duration::from_millis(150));
        assert_eq!(watched.nine(), 9.0);
    }
    watched.wait_for(EventKind::PackReplaced);
    assert_ne!(watched.runtime.table().packs[0].sha256, second);

    fs::remove_file(&file).unwrap();
    watched.wait_for(EventKind::PackRemoved);
    assert_eq!(
        square(&watched.runtime, 3.0).unwrap_err().kind(),
        Kind::Unsupported
    );
    fs::write(&file, variant(4)).unwrap();
    watched.wait_for(EventKind::PackAdded);
    assert_eq!(watched.nine(), 9.0);
}

#[test]
fn a_pack_whose_file_is_gone_goes_though_its_message_is_repeated() {
    let watched = Watched::new();
    assert_eq!(watched.nine(), 9.0);
    let start = Instant::now();
    fs::remove_file(watched.folder.join("packs/libtemplate.so")).unwrap();
    let event = watched.wait_for(EventKind::Rejected);
    assert_eq!(event.pack.as_deref(), Some("template"));
    // Looks within the time in which the file may come back, with the same to tell, which is told once.
    while start.elapsed() < Duration::from_millis(1500) {
        watched.folder.write(
            "shaders/template/other.comp",
            start.elapsed().as_nanos().to_string(),
        );
        thread::sleep(Duration::from_millis(100));
    }
    watched.wait_for(EventKind::PackRemoved);
    assert!(square(&watched.runtime, 3.0).is_err());
}

#[test]
fn folders_may_vanish_and_come_back() {
    let watched = Watched::new();
    fs::remove_dir_all(watched.folder.join("shaders")).unwrap();
    thread::sleep(Duration::from_millis(300));
    watched
        .folder
        .write("shaders/template/unary.comp", shader("2.0"));
    watched.wait_for(EventKind::ShaderReplaced);
    assert_eq!(watched.nine(), 18.0);
    fs::remove_dir_all(watched.folder.join("packs")).unwrap();
    watched.wait_for(EventKind::PackRemoved);
    watched.folder.write("packs/libtemplate.so", variant(1));
    watched.wait_for(EventKind::PackAdded);
    assert_eq!(watched.nine(), 18.0);
}

/// Sooner than what the system did not tell of is looked for, which is every five seconds.
#[test]
fn edits_in_a_folder_that_came_back_are_told_by_the_system() {
    let watched = Watched::new();
    let [folder, away] = ["shaders/template", "away"].map(|name| watched.folder.join(name));
    let file = folder.join("unary.comp");
    fs::write(&file, shader("1.0")).unwrap();
    watched.wait_for(EventKind::ShaderReplaced);
    let mut soon = 0;
    for (round, scale) in ["2.0", "3.0", "4.0", "5.0", "6.0", "7.0"]
        .iter()
        .enumerate()
    {
        match round % 3 {
            0 => {
                fs::rename(&folder, &away).unwrap();
                fs::rename(&away, &folder).unwrap();
            }
            1 => {
                fs::rename(&folder, &away).unwrap();
                thread::sleep(Duration::from_millis(30));
                fs::rename(&away, &folder).unwrap();
            }
            _ => {
                let text = fs::read(&file).unwrap();
                fs::remove_dir_all(&folder).unwrap();
                fs::create_dir(&folder).unwrap();
                fs::write(&file, text).unwrap();
            }
        }
        thread::sleep(Duration::from_millis(700));
        let start = Instant::now();
        fs::write(&file, shader(scale)).unwrap();
        loop {
            let event = watched.wait_for(EventKind::ShaderReplaced);
            if watched.nine() == 9.0 * scale.parse::<f32>().unwrap() {
                break drop(event);
            }
        }
        soon += usize::from(start.elapsed() < Duration::from_secs(2));
    }
    // On a busy machine one or another may take longer.
    assert!(soon >= 4, "{soon} of 6");
}

#[test]
fn packs_serve_on_while_their_folder_cannot_be_listed() {
    let watched = Watched::new();
    assert_eq!(watched.nine(), 9.0);
    let [packs, away] = ["packs", "away"].map(|name| watched.folder.join(name));
    fs::rename(&packs, &away).unwrap();
    fs::write(&packs, "no folder").unwrap();
    // Longer than a file may be away.
    thread::sleep(Duration::from_millis(1500));
    watched.runtime.reload();
    assert!(!watched.kinds().contains(&EventKind::PackRemoved));
    assert_eq!(watched.nine(), 9.0);

    fs::remove_file(&packs).unwrap();
    fs::rename(&away, &packs).unwrap();
    watched.runtime.reload();
    assert_eq!(watched.nine(), 9.0);
    assert!(!watched.kinds().contains(&EventKind::PackRemoved));
}

#[test]
fn the_registry_file_is_read_again_and_a_wrong_one_is_not_used() {
    let watched = Watched::new();
    let file = watched.folder.join("registry.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(watched.nine(), 9.0);

    fs::write(
        &file,
        format!("{text}[[deny]]\npack = \"template\"\nreason = \"wrong\"\n"),
    )
    .unwrap();
    watched.wait_for(EventKind::RegistryReplaced);
    let error = square(&watched.runtime, 3.0).unwrap_err().to_string();
    assert!(error.contains("wrong"), "{error}");

    fs::write(&file, format!("{text}[defaults]\nfallbakc = \"host\"\n")).unwrap();
    let event = watched.wait_for(EventKind::Rejected);
    assert!(
        event.message.contains("fallbakc") && event.message.contains("registry.toml:"),
        "{event}"
    );
    assert!(square(&watched.runtime, 3.0).is_err());

    fs::write(&file, text).unwrap();
    watched.wait_for(EventKind::RegistryReplaced);
    assert_eq!(watched.nine(), 9.0);
}

#[test]
fn nothing_is_watched_once_no_folder_is_named() {
    let watched = Watched::new();
    let file = watched.folder.join("registry.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(watched.nine(), 9.0);
    fs::write(&file, text.replace("watch = [\"shaders\"]", "")).unwrap();
    watched.wait_for(EventKind::RegistryReplaced);
    let unused = shader("2.0");
    watched.folder.write("shaders/template/unary.comp", &unused);
    watched.folder.write("packs/libtemplate.so", variant(1));
    thread::sleep(Duration::from_millis(500));
    assert_eq!((watched.nine(), watched.kinds()), (9.0, vec![]));
    // But the file that may say otherwise is.
    fs::write(&file, text).unwrap();
    watched.wait_for(EventKind::PackReplaced);
    assert_eq!(watched.nine(), 18.0);
}

#[test]
fn a_pack_goes_back_to_a_version_before() {
    let watched = Watched::new();
    assert_eq!(watched.nine(), 9.0);
    let file = watched
        .folder
        .write("shaders/template/unary.comp", shader("2.0"));
    watched.wait_for(EventKind::ShaderReplaced);
    fs::write(&file, shader("3.0")).unwrap();
    watched.wait_for(EventKind::ShaderReplaced);
    assert_eq!(watched.nine(), 27.0);
    let versions = watched.runtime.versions("template");
    assert_eq!(
        versions.iter().map(|v| v.serves).collect::<Vec<_>>(),
        [false, false, true]
    );

    watched.runtime.rollback("template", 1).unwrap();
    assert_eq!(watched.nine(), 18.0);
    assert_eq!(
        watched.wait_for(EventKind::RolledBack).pack.as_deref(),
        Some("template")
    );
    // What lies on disk does not count until somebody says so.
    fs::write(&file, shader("4.0")).unwrap();
    thread::sleep(Duration::from_millis(400));
    assert_eq!(watched.nine(), 18.0);
    watched.runtime.resume("template");
    assert_eq!(watched.nine(), 36.0);

    let error = watched
        .runtime
        .rollback("template", 9)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("steps back for pack template, got: 9"),
        "{error}"
    );
    let error = watched
        .runtime
        .rollback("tepmlate", 1)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("expected a loaded pack (template), got: tepmlate"),
        "{error}"
    );
}

#[test]
fn mode_locked_is_not_left_by_a_reload() {
    let device = Watched::new();
    let folder = Folder::new();
    let registry = folder.write("registry.toml", "schema = 1\nmode = \"locked\"\n");
    let config = Config {
        device: DeviceChoice::Name(device.runtime.device().summary().name.clone()),
        registry: Some(registry.clone()),
        cache_dir: Some(folder.join("cache")),
        ..Config::default()
    };
    let runtime = Runtime::open(&config).unwrap();
    fs::write(registry, "schema = 1\nmode = \"dev\"\n").unwrap();
    let events = runtime.reload();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].kind, EventKind::Rejected);
    assert!(events[0].message.contains("NXR033"), "{}", events[0]);
    assert!(runtime.table().is_locked());
}
