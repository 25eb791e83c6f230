//! Whatever the file: it is a snapshot or not, and what a server writes that was started from it
//! gives the same server.
#![no_main]

use libfuzzer_sys::fuzz_target;
use k8s_apiserver::{ApiServer, Options};

fn written(server: &ApiServer) -> Vec<u8> {
    let mut file = Vec::new();
    server.snapshot(&mut file).expect("memory can be written to");
    file
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(server) = ApiServer::restore(bytes, Options::default()) else { return };
    let file = written(&server);
    let again = ApiServer::restore(&*file, Options::default());
    let again = again.expect("what a server wrote can be read");
    assert_eq!(String::from_utf8_lossy(&written(&again)), String::from_utf8_lossy(&file));
});
