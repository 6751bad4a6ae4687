//! Packs without code, whose shaders are strangers'.

use super::{
    INPUT, assert_serves, bytes, config, floats, open_with,
    texts::{ifs, loops, macro_bomb, shader},
};
use crate::folder::Folder;
use nx_vulkan_host::{Attr, Config, DType, Request, Result, Runtime, Tensor};
use std::time::Duration;

const TABLE: &str = "[pack]\nid = \"twice\"\nversion = \"1.2.3\"\nabi = \"1\"\n\
    [[kernel]]\nid = \"twice\"\nop = \"twice\"\ninputs = [\"f32\"]\noutputs = [\"f32\"]\n\
    shader = \"twice.comp\"\ngroups = [\"ceil(elems / 64)\"]\n";

fn with_pack(text: &str) -> Folder {
    let folder = Folder::new();
    folder.write("packs/twice/pack.toml", TABLE);
    folder.write("packs/twice/twice.comp", text);
    folder
}

fn twice(runtime: &Runtime) -> Result<Vec<f32>> {
    let input: Tensor = runtime.upload(DType::F32, &[4], &bytes(&INPUT))?;
    let no: [Attr; 0] = [];
    let out = runtime.run(&Request::new(
        "twice",
        &[&input],
        &[(DType::F32, vec![4])],
        &no,
    ))?;
    Ok(floats(&runtime.download(&out[0], None)?))
}

#[test]
fn packs_without_code_are_strangers_unless_the_registry_vouches_for_them() {
    let folder = with_pack(&shader("x = x + x;"));
    let packs = [folder.join("packs")];
    let tried = Runtime::open(&Config {
        packs: packs.to_vec(),
        ..config(&folder)
    });
    assert_eq!(twice(&tried.unwrap()).unwrap(), [2.0, 4.0, 6.0, 8.0]);

    let folder = with_pack(&shader("x = x + x;"));
    let packs = [folder.join("packs")];
    let runtime = open_with(&folder, "/nowhere/nxv", &packs);
    let error = twice(&runtime).unwrap_err().to_string();
    assert!(error.contains("does not start"), "{error}");
    let sha256 = nx_vulkan_registry::sha256_of(&packs[0].join("twice")).unwrap();
    let registry = folder.write(
        "registry.toml",
        format!("schema = 1\n[pack.twice]\nsha256 = \"{sha256}\"\n"),
    );
    let pinned = Runtime::open(&Config {
        registry: Some(registry),
        packs: packs.to_vec(),
        prober: Some("/nowhere/nxv".into()),
        ..config(&folder)
    });
    assert_eq!(twice(&pinned.unwrap()).unwrap(), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn a_pack_whose_shader_breaks_the_compiler_is_passed_over() {
    for text in [macro_bomb(), ifs(1000), loops(100)] {
        let folder = with_pack(&text);
        let runtime = Runtime::open(&Config {
            packs: vec![folder.join("packs")],
            build_timeout: Duration::from_secs(5),
            ..config(&folder)
        });
        let runtime = runtime.unwrap();
        let error = twice(&runtime).unwrap_err();
        assert!(error.to_string().contains("twice.comp"), "{error}");
        assert_serves(&runtime, 1);
    }
}
