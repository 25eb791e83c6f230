//! Whatever the bytes: they are an object or not, and an object that can be written is the same when
//! it is read again.
//!
//! The input is an encoded object, or the JSON of one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use k8s_schema::protobuf;
use serde_json::Value;

fn check(object: &Value) {
    let Ok(encoded) = protobuf::encode(object) else { return };
    let read = protobuf::decode(&encoded).expect("what was written can be read");
    // The first reading may bring values into their form; from then on nothing changes.
    let again = protobuf::encode(&read).expect("what was read can be written");
    assert_eq!(protobuf::decode(&again).as_ref(), Ok(&read));
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(object) = serde_json::from_slice(bytes) {
        check(&object);
        return;
    }
    if let Ok(object) = protobuf::decode(bytes) {
        check(&object);
    }
});
