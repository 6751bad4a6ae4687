//! The machine that packs have to be built for. What its libraries look like stands in `library`.

/// The machine that libraries have to be built for, in Rust's words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) arch: &'static str,
    pub(super) os: &'static str,
}

/// The machine that this host runs on.
pub(super) const HOST: Target = Target {
    arch: std::env::consts::ARCH,
    os: std::env::consts::OS,
};

/// The target triple whose pins count.
pub fn target() -> String {
    let environment = match () {
        () if cfg!(target_env = "musl") => "-musl",
        () if cfg!(target_env = "gnu") => "-gnu",
        () => "",
    };
    let system = match std::env::consts::OS {
        "macos" => "apple-darwin".to_owned(),
        os => format!("unknown-{os}{environment}"),
    };
    format!("{}-{system}", std::env::consts::ARCH)
}
