//! The layout against the C++ header: a C++ compiler checks every offset, size and number.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Kind, CONSTANTS, FIELDS, SIZES};

fn assertions() -> String {
    let mut source = String::from(
        "#include <cstddef>\n#include <spanprof/internal/coroutine_layout.hpp>\n\
         using namespace spanprof::internal::coroutine;\n",
    );
    for (name, bytes, alignment) in SIZES {
        writeln!(source, "static_assert(sizeof({name}) == {bytes});").unwrap();
        writeln!(source, "static_assert(alignof({name}) == {alignment});").unwrap();
    }
    for (name, field, offset) in FIELDS {
        if !field.starts_with('_') {
            writeln!(
                source,
                "static_assert(offsetof({name}, {field}) == {offset});"
            )
            .unwrap();
        }
    }
    for (name, value) in CONSTANTS {
        writeln!(source, "static_assert({name} == {value}u);").unwrap();
    }
    for kind in [
        Kind::Birth,
        Kind::Adopted,
        Kind::Resume,
        Kind::Suspend,
        Kind::Yield,
        Kind::Done,
        Kind::Death,
        Kind::Awaits,
        Kind::Ready,
    ] {
        writeln!(source, "static_assert(kKind{kind:?} == {});", kind as u32).unwrap();
    }
    source
}

/// None: the C++ header is not there, because this is not the whole tree.
fn compile(source: &str) -> Option<std::process::Output> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../include");
    if !include
        .join("spanprof/internal/coroutine_layout.hpp")
        .exists()
    {
        return None;
    }
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let mut child = Command::new(compiler)
        .args([
            "-std=c++20",
            "-fsyntax-only",
            "-Wno-invalid-offsetof",
            "-x",
            "c++",
            "-I",
        ])
        .arg(include)
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a C++ compiler is needed; CXX names it");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(source.as_bytes())
        .unwrap();
    Some(child.wait_with_output().unwrap())
}

#[test]
fn a_cpp_compiler_finds_the_same_layout() {
    let Some(output) = compile(&assertions()) else {
        println!("skipped: the C++ header is not there");
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_cpp_compiler_would_find_a_difference() {
    let wrong = assertions().replace(
        "offsetof(StationData, frame) == 584",
        "offsetof(StationData, frame) == 585",
    );
    let Some(output) = compile(&wrong) else {
        println!("skipped: the C++ header is not there");
        return;
    };
    assert!(!output.status.success());
}
