//! Tells the linker, where it needs to be told, that Node brings the symbols of its API.

fn main() {
    napi_build::setup();
}
