//! Gives the shared library the name that programs ask for: it changes when they must be built
//! anew.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtyr.so.1");
}
