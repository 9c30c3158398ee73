//! Lets the programs find the libspanprof that they were linked with.

fn main() {
    println!("cargo:rerun-if-env-changed=DEP_SPANPROF_LIB_DIR");
    if let Ok(folder) = std::env::var("DEP_SPANPROF_LIB_DIR") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
