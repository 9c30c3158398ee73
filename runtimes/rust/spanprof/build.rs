//! Finds libspanprof for the feature `context`: in the folder that SPANPROF_LIB_DIR names, or where
//! pkg-config says.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=SPANPROF_LIB_DIR");
    if std::env::var_os("CARGO_FEATURE_CONTEXT").is_none() {
        return;
    }
    match library_folder() {
        Ok(folder) => {
            println!("cargo:rustc-link-search=native={folder}");
            println!("cargo:rustc-link-lib=dylib=spanprof");
            // What depends on this crate finds it as DEP_SPANPROF_LIB_DIR, for its own rpath.
            println!("cargo:lib_dir={folder}");
            println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
        }
        Err(problem) => {
            eprintln!(
                "The feature `context` of the crate spanprof needs libspanprof.so: {problem}."
            );
            eprintln!(
                "Build it with ./dev build in spanprof's tree, and set SPANPROF_LIB_DIR to the"
            );
            eprintln!("folder that has it (build/release/lib), or leave the feature out.");
            std::process::exit(1);
        }
    }
}

fn library_folder() -> Result<String, String> {
    if let Ok(folder) = std::env::var("SPANPROF_LIB_DIR") {
        if Path::new(&folder).join("libspanprof.so").exists() {
            return Ok(folder);
        }
        return Err(format!(
            "SPANPROF_LIB_DIR is {folder}, which has no libspanprof.so"
        ));
    }
    let pkg_config = Command::new("pkg-config")
        .args(["--variable=libdir", "spanprof"])
        .output();
    match pkg_config {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        _ => Err("SPANPROF_LIB_DIR is not set and pkg-config does not know it".to_owned()),
    }
}
