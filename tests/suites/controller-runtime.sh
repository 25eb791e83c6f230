#!/usr/bin/env bash
#
# controller-runtime.sh ASSETS CACHE [PACKAGE...]
#
# Runs the test packages of controller-runtime that start a control plane, on
# the etcd and kube-apiserver in ASSETS. Builds and results are kept in CACHE.
set -uo pipefail

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
arguments "$@"
shift 2
chosen=$#

tree=$(checkout sigs.k8s.io/controller-runtime v0.25.2) || exit 2
cd "$tree" || exit 2
if [ $# -eq 0 ]; then
  mapfile -t packages < <(grep -rl --include='*_test.go' 'envtest\.Environment{' pkg |
    xargs -n 1 dirname | sort -u)
  set -- "${packages[@]}"
fi

export KUBEBUILDER_ASSETS=$assets
for package in "$@"; do
  log=$work/${package//\//_}
  flags=(-json)
  if grep -q RunSpecs "$package"/*_test.go; then
    flags+=(-ginkgo.json-report "$log.json")
  fi
  nice go test -p 1 -vet off -count 1 -timeout 20m "./$package" "${flags[@]}" >"$log.log" 2>&1
  status=$?
  grep '^{' "$log.log" | go_results "$package: " >"$log.results"
  [ ! -e "$log.json" ] || ginkgo_results "$package: " <"$log.json" >>"$log.results"
  # What ends the program, such as a crash.
  if [ $status -ne 0 ] && ! grep -q '^failed ' "$log.results"; then
    echo "failed $package: the program" >>"$log.results"
  fi
  cat "$log.results" >>"$results"
  echo "$package: $(grep -c '^ok ' "$log.results") of $(wc -l <"$log.results")"
done
verdict controller-runtime "$chosen"
