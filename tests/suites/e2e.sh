#!/usr/bin/env bash
#
# e2e.sh ASSETS CACHE [FOCUS]
#
# Runs Kubernetes' end-to-end tests of sig-api-machinery against the etcd and
# kube-apiserver in ASSETS. Programs and results are kept in CACHE. FOCUS is a
# regular expression that chooses among the tests; without it, all run but
# those that e2e.txt excuses.
set -uo pipefail

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
arguments "$@"
shift 2
chosen=$#
control_plane

# In a module with the dependencies of the control plane, whose compiled
# packages are then used again.
module=$cache/suites/e2e
program=$module/e2e-$(cat "$here/e2e/main_test.go" "$here/../control-plane/go.mod" |
  sha256sum | cut -c1-16)
if [ ! -x "$program" ]; then
  echo "compiling the tests: this takes a while" >&2
  mkdir -p "$module"
  cp "$here/e2e/main_test.go" "$here"/../control-plane/go.{mod,sum} "$module/"
  (cd "$module" && CGO_ENABLED=0 nice go test -c -p 1 -vet off -mod=mod -buildvcs=false -trimpath \
    -ldflags "-s -w" -o "$program" .) || exit 2
fi

start --authorization-mode=RBAC
flags=(--kubeconfig "$work/kubeconfig" --provider local --dump-logs-on-failure=false
  --kubectl-path "$cache/control-plane/kubectl" --ginkgo.no-color
  --ginkgo.json-report "$work/report.json")
if [ $chosen -gt 0 ]; then
  flags+=(--ginkgo.focus "$1")
else
  # Without features that are off by default, and without what upstream calls flaky.
  flags+=(--ginkgo.focus '\[sig-api-machinery\]' --ginkgo.skip '\[(Feature:|Flaky\])')
  # A test that cannot pass waits long for what does not come.
  while IFS= read -r name; do
    flags+=(--ginkgo.skip "$(sed 's/[][().*+?^${}|\\/]/\\&/g' <<<"$name")")
  done < <(excused e2e)
fi
nice "$program" "${flags[@]}" >"$work/log" 2>&1
ginkgo_results "" <"$work/report.json" >"$results"
grep '^failed ' "$results"
verdict e2e "$chosen"
