#!/usr/bin/env bash
#
# kubectl.sh ASSETS CACHE [NAME...]
#
# Runs Kubernetes' own scripts for kubectl (test/cmd of its Go module) against
# the etcd and kube-apiserver in ASSETS. Programs and results are kept in CACHE.
# NAMEs, such as `pod` or `kubectl_apply`, choose among the scripts.
set -uo pipefail

# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
arguments "$@"
shift 2
chosen=$#
control_plane
tree=$(kubernetes) || exit 2

# The scripts expect the programs where a build of Kubernetes puts them.
mkdir -p "$tree/_output/bin"
ln -sf "$cache/control-plane/kubectl" "$tree/_output/bin/kubectl"
# Modules do not keep who may run a file.
chmod -R a+x "$tree/test/fixtures/pkg/kubectl/plugins"
if [ $# -eq 0 ]; then
  mapfile -t names < <(grep -o '^ *record_command run_[A-Za-z_]*' "$tree/test/cmd/legacy-script.sh" |
    sed 's/.*record_command run_//; s/_tests$//' | awk '!seen[$0]++')
  set -- "${names[@]}"
fi

# As test-cmd.sh of Kubernetes starts it: what mode AlwaysAllow allows is
# allowed, and pods are replaced with what a file says, without what admission
# adds.
disabled=ServiceAccount,DefaultStorageClass,DefaultTolerationSeconds,StorageObjectInUseProtection
disabled+=,MutatingAdmissionWebhook,ValidatingAdmissionWebhook
manager_flags=(--cluster-signing-cert-file="$tree/hack/testdata/ca/ca.crt"
  --cluster-signing-key-file="$tree/hack/testdata/ca/ca.key")
start --authorization-mode=RBAC,AlwaysAllow --client-ca-file="$tree/hack/testdata/ca/ca.crt" \
  --enable-admission-plugins=LimitRanger,ResourceQuota --disable-admission-plugins="$disabled"
export KUBE_ROOT=$tree SECURE_API_PORT=${url##*:} HOME=$work/home
export KUBE_JUNIT_REPORT_DIR=$work/junit
# Scripts read the server's certificate from there.
export TMPDIR=$work/certs
mkdir -p "$HOME"
kubectl=$tree/_output/bin/kubectl
unset KUBECONFIG
"$kubectl" config set-credentials test-admin --token "$token" >/dev/null
"$kubectl" config set-cluster local --insecure-skip-tls-verify --server "$url" >/dev/null
"$kubectl" config set-context test --user test-admin --cluster local >/dev/null
"$kubectl" config use-context test >/dev/null
"$kubectl" create -f - >/dev/null <<'NODE'
{"kind": "Node", "apiVersion": "v1",
 "metadata": {"name": "127.0.0.1", "annotations": {"save-managers": "true"}},
 "status": {"capacity": {"memory": "1Gi"}}}
NODE

for name in "$@"; do
  start=$SECONDS
  if (cd "$tree" && WHAT=$name timeout --kill-after=10 300 bash "$here/kubectl-case.sh") \
    >"$work/$name.log" 2>&1 </dev/null; then
    echo "ok $name" >>"$results"
  else
    echo "failed $name" >>"$results"
  fi
  printf '%s (%d s)\n' "$(tail -1 "$results")" $((SECONDS - start))
done
verdict kubectl "$chosen"
