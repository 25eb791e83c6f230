#!/usr/bin/env bash
#
# gateway-api.sh ASSETS CACHE [CHANNEL...]
#
# Runs the tests of gateway-api's definitions, their rules and its examples, on
# the etcd and kube-apiserver in ASSETS. Results are kept in CACHE.
set -uo pipefail

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
arguments "$@"
shift 2
chosen=$#
control_plane

# The last version whose tests are in the module itself.
tree=$(checkout sigs.k8s.io/gateway-api v1.4.1) || exit 2
cd "$tree" || exit 2
# Programs are those of KUBEBUILDER_ASSETS instead of downloaded ones.
sed -i 's/\(DownloadBinaryAssets: *\)true/\1false/' pkg/test/*/*_test.go
[ $# -gt 0 ] || set -- standard experimental

# A kubeconfig is written beside kubectl.
mkdir "$work/assets"
ln -s "$assets/etcd" "$assets/kube-apiserver" "$cache/control-plane/kubectl" "$work/assets"
export KUBEBUILDER_ASSETS=$work/assets
for channel in "$@"; do
  log=$work/$channel
  CRD_CHANNEL=$channel nice go test -p 1 -vet off -count 1 -timeout 20m -json \
    -tags "$channel" ./pkg/test/cel ./pkg/test/crd >"$log.log" 2>&1
  status=$?
  grep '^{' "$log.log" | go_results "$channel: " >"$log.results"
  if [ $status -ne 0 ] && ! grep -q '^failed ' "$log.results"; then
    echo "failed $channel: the program" >>"$log.results"
  fi
  cat "$log.results" >>"$results"
  echo "$channel: $(grep -c '^ok ' "$log.results") of $(wc -l <"$log.results")"
done
verdict gateway-api "$chosen"
