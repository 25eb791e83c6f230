# Sections of a run, their times and what failed. Sourced by `.ci/run` and `.ci/full` from the root of
# the checkout.

exec </dev/null

cache=${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}
export CI=true
export CARGO_TERM_COLOR=never
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$cache/target}
mkdir -p "$cache" || exit 2

# Payloads, catalogs and bundles, beside the checkout.
data=$(cd .. && pwd)/shared/data

# One run at a time: all build in the same directory.
exec 9>"$cache/lock"
flock 9 || exit 2

# The tree of a clean checkout; empty if anything is changed or not added.
tree=
[ -n "$(git status --porcelain 2>&1)" ] || tree=$(git rev-parse 'HEAD^{tree}')

# Goes on in a checkout in the cache, in which git touches only the files that differ from the last
# run, so that only the crates that changed are compiled. What is not committed is tested where it is.
if [ -n "$tree" ]; then
  kept=$cache/checkout
  here=$PWD
  if { [ -d "$kept/.git" ] || git init --quiet "$kept"; } &&
    git -C "$kept" fetch --quiet --no-tags --depth 1 "file://$here" HEAD &&
    git -C "$kept" checkout --quiet --force --detach FETCH_HEAD &&
    git -C "$kept" clean -ffdxq; then
    cd "$kept" || exit 2
  fi
fi

# Tests that lacked something they need, a line each, and seeds that are known to fail.
export SKIPPED_TESTS=$cache/skipped-tests
export OPEN_SEEDS=$cache/open-seeds
rm -f "$SKIPPED_TESTS" "$OPEN_SEEDS"

# The output of all tests, with their seconds.
tests_log=$cache/tests.log
: >"$tests_log"

failed=()
times=()

section() { # TITLE COMMAND...
  local title=$1 start=$SECONDS outcome=ok
  shift
  printf '\n=== %s\n' "$title"
  # A server that outlives its test does not keep the lock.
  "$@" 9>&- || {
    outcome=FAILED
    failed+=("$title")
  }
  times+=("$(printf '%6d s  %-6s %s' $((SECONDS - start)) "$outcome" "$title")")
  printf '=== %s: %s, %d s\n' "$title" "$outcome" $((SECONDS - start))
}

# Runs tests. The harness prints the seconds of each: that is allowed on every toolchain by a variable
# that only the harness gets, since crates are built differently with it.
cargo_test() { # ARGUMENTS... -- ARGUMENTS OF THE HARNESS...
  local host
  host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
  env "CARGO_TARGET_${host}_RUNNER=env RUSTC_BOOTSTRAP=1" \
    cargo test --locked --workspace --no-fail-fast "$@" -Z unstable-options --report-time \
    2>&1 | tee -a "$tests_log"
}

# Makes cargo_test run against a real control plane with all data.
with_everything() {
  [ -d "$data" ] || {
    echo "the payloads and catalogs are not beside the checkout, in $data"
    return 1
  }
  export KUBEBUILDER_ASSETS=$cache/control-plane
  export PATH=$cache/bin:$KUBEBUILDER_ASSETS:$PATH
  export PLIMSOLL_PYTHON=$cache/python/bin/python
  export PLIMSOLL_REGISTRY=$cache/bin/registry
  export PLIMSOLL_PAYLOAD=$data/payload-a
  export PLIMSOLL_PAYLOAD_NEXT=$data/payload-b
  export PLIMSOLL_INCLUSION=$data/oracle/payload-a-inclusion.tsv
  export PLIMSOLL_CATALOGS=$data/catalogs
  export PLIMSOLL_CATALOG=$data/catalogs/community-2021.fbc.json
  export PLIMSOLL_RANGE_VECTORS=$data/golden/range-vectors.json
  export PLIMSOLL_BUNDLES=$data/golden/bundles
  export PLIMSOLL_SCENARIOS=$data/resolution-scenarios/olm-v0.json
  export PLIMSOLL_FRESH_INSTALLS=$data/golden/community-2021-fresh-installs.json
}

# Makes cargo_test run as a newcomer does: nothing outside the repository takes part.
with_nothing() {
  unset KUBEBUILDER_ASSETS PLIMSOLL_PYTHON PLIMSOLL_REGISTRY PLIMSOLL_PAYLOAD PLIMSOLL_PAYLOAD_NEXT \
    PLIMSOLL_INCLUSION PLIMSOLL_CATALOGS PLIMSOLL_CATALOG PLIMSOLL_RANGE_VECTORS PLIMSOLL_BUNDLES \
    PLIMSOLL_SCENARIOS PLIMSOLL_FRESH_INSTALLS PLIMSOLL_EACH_CLUSTER
}

# Fails if a test lacked something.
nothing_skipped() {
  [ -s "$SKIPPED_TESTS" ] || return 0
  echo "skipped although everything should be there:"
  sort -u "$SKIPPED_TESTS"
  return 1
}

tools() {
  cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt || return
  cargo clippy --version >/dev/null 2>&1 || rustup component add clippy || return
  local program
  for program in go python3; do
    command -v "$program" >/dev/null || {
      echo "$program is not installed: the control plane is built with it"
      return 1
    }
  done
}

# The programs of a real control plane; Helm, which renders the charts of the example platform; the
# registry that releases are pushed to; a client of Kubernetes that is not ours.
programs() {
  bash tests/control-plane/build.sh "$cache/control-plane" || return
  GOBIN=$cache/bin go install helm.sh/helm/v3/cmd/helm@v3.22.0 || return
  GOBIN=$cache/bin go install github.com/distribution/distribution/v3/cmd/registry@v3.1.2 || return
  [ -x "$cache/python/bin/python" ] || python3 -m venv "$cache/python" || return
  "$cache/python/bin/python" -m pip install --quiet --disable-pip-version-check \
    kubernetes==37.0.2
}

# Prints where the time went and what failed; the status tells whether anything did.
finish() {
  printf '\nThe slowest tests:\n'
  sed -nE 's/^test (.+) \.\.\. (ok|FAILED) <([0-9.]+)s>$/\3 \1/p' "$tests_log" | sort -rn | head -10 |
    awk '{ printf "%8.1f s  %s\n", $1, $2 }'
  printf '\nThe sections:\n'
  printf '%s\n' "${times[@]}"
  if [ -s "$OPEN_SEEDS" ]; then
    printf '\n%d seeds are known to fail:\n' "$(sort -u "$OPEN_SEEDS" | wc -l)"
    sort -u "$OPEN_SEEDS" | sed 's/^/  /'
  fi
  if [ ${#failed[@]} -gt 0 ]; then
    printf '\n%d s in all; failed:\n' "$SECONDS"
    printf '  %s\n' "${failed[@]}"
    return 1
  fi
  printf '\n%d s in all; everything passed\n' "$SECONDS"
}
