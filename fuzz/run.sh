#!/bin/sh
# Builds the fuzz targets and runs each for a number of seconds (10 if not given), going on from
# what earlier runs kept; or, with "check", on a number of inputs that are the same each time.
#
# Needs the stable toolchain, a C++ compiler for libFuzzer, and crates.io. The code is free of
# `unsafe`, so it is built with coverage but without sanitizers, which would need more than that.
# Inputs that were worth keeping, and those that failed, are kept below the target directory.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
target=${CARGO_TARGET_DIR:-$here/target}/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')

coverage="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-pc-table"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"

# With a target given, the flags do not reach build scripts.
RUSTFLAGS=$coverage CARGO_TARGET_DIR=$target \
    cargo build --locked --release --target "$host" --manifest-path "$here/Cargo.toml"

case ${1:-10} in
check) kept=$target/check limit="-seed=1 -runs=50000" ;;
*) kept=$target/corpus limit="-max_total_time=${1:-10}" ;;
esac
rm -rf "$target/check"

for name in payload yaml template patches apply schemas cel protobuf selectors requests snapshot \
    catalog bundle crd_safety rendering index resolve image; do
    runs=$limit
    # These ask a server, start one for each input, or write files.
    case "$name $kept" in
    "selectors $target/check") runs="-seed=1 -runs=10000" ;;
    "image $target/check") runs="-seed=1 -runs=3000" ;;
    "requests $target/check" | "snapshot $target/check") runs="-seed=1 -runs=2000" ;;
    esac
    mkdir -p "$kept/$name" "$target/artifacts/$name"
    echo "fuzzing $name: $runs"
    # shellcheck disable=SC2086 # these are several words
    "$target/$host/release/$name" "$kept/$name" "$here/seeds/$name" $runs \
        -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
        -artifact_prefix="$target/artifacts/$name/" -print_final_stats=0 -verbosity=0 \
        >"$target/$name.log" 2>&1 || {
        tail -n 60 "$target/$name.log"
        echo "fuzzing $name failed: the input is in $target/artifacts/$name" >&2
        exit 1
    }
done
echo "no failures"
