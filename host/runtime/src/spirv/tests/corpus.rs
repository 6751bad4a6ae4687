use super::*;

#[test]
fn corpus() {
    let Ok(dir) = std::env::var("NXV_CORPUS") else {
        return;
    };
    let mut n = 0;
    let mut t = std::time::Duration::ZERO;
    let mut words_total = 0;
    let mut loose = 0;
    let mut bad = 0;
    let mut slowest = std::time::Duration::ZERO;
    let mut tc = std::time::Duration::ZERO;
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let body = if bytes[..4] == 0x0723_0203u32.to_le_bytes() {
            &bytes[..]
        } else {
            &bytes[32..]
        };
        let words: Vec<u32> = body
            .as_chunks::<4>()
            .0
            .iter()
            .map(|c| u32::from_le_bytes(*c))
            .collect();
        let words: Arc<[u32]> = words.into();
        words_total += words.len();
        let start = std::time::Instant::now();
        let m = Module::admit(words.clone(), Origin::Library);
        let e = start.elapsed();
        t += e;
        slowest = slowest.max(e);
        n += 1;
        if let Err(e) = m {
            println!("{}: {e}", path.display());
            bad += 1;
            continue;
        }
        let s = Scan::new(&words, Origin::Stranger).unwrap();
        loose += s.memory.loose.len();
        let start = std::time::Instant::now();
        let c = Module::admit(words.clone(), Origin::Stranger).unwrap();
        tc += start.elapsed();
        if let Err(e) = Module::admit(c.words().clone(), Origin::Stranger) {
            println!("CLAMPED {}: {e}", path.display());
            bad += 1;
        }
        if let Ok(out) = std::env::var("NXV_OUT") {
            if !s.memory.loose.is_empty() {
                let b: Vec<u8> = c.words().iter().flat_map(|w| w.to_le_bytes()).collect();
                std::fs::write(
                    std::path::Path::new(&out).join(path.file_name().unwrap()),
                    b,
                )
                .unwrap();
            }
        }
    }
    println!(
        "{n} modules {words_total} words {bad} bad {loose} loose {t:?} slowest {slowest:?} clamped {tc:?}"
    );
    println!("MAXIMA {:?}", crate::spirv::maxima());
}
