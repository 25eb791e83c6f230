# Functions that the scripts of this directory share; sourced, not run.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# The token of the administrator of a server that `start` started.
token=admin-token

die() { # MESSAGE
  echo "$1" >&2
  exit 2
}

# Takes the arguments that all scripts have: sets `assets`, `cache`, `work` (a
# new directory) and `results` (a file for lines `ok NAME` and `failed NAME`).
arguments() { # ASSETS CACHE ...
  [ $# -ge 2 ] || die "usage: ${0##*/} ASSETS CACHE [NAME...]"
  [ -x "$1/kube-apiserver" ] || die "there is no program kube-apiserver in $1"
  mkdir -p "$2/suites" || exit 2
  assets=$(cd "$1" && pwd)
  cache=$(cd "$2" && pwd)
  work=$(mktemp -d "$cache/suites/$(basename "$0" .sh).XXXXXX")
  results=$work/results
  : >"$results"
}

# Prints where a writable copy of a Go module lies, made if it is not there.
checkout() { # MODULE VERSION
  local copy=$cache/suites/src/${1##*/}@$2 source
  if [ ! -e "$copy/.complete" ]; then
    source=$(cd / && go mod download -json "$1@$2" | jq -r .Dir) || return
    rm -rf "$copy"
    mkdir -p "${copy%/*}"
    cp -r "$source" "$copy"
    chmod -R u+w "$copy"
    touch "$copy/.complete"
  fi
  echo "$copy"
}

# A writable copy of k8s.io/kubernetes that builds outside its repository: its
# staging modules are replaced with the published ones, as in
# tests/control-plane/go.mod, which pins the version.
kubernetes() {
  local version copy
  version=$(cd "$here/../control-plane" && go list -m -f '{{.Version}}' k8s.io/kubernetes) || return
  copy=$(checkout k8s.io/kubernetes "$version") || return
  if [ ! -e "$copy/.replaced" ]; then
    (
      cd "$copy" && rm -rf vendor go.work go.work.sum
      (cd "$here/../control-plane" && go mod edit -json) |
        jq -r '.Replace[] | "-replace=\(.Old.Path)=\(.New.Path)@\(.New.Version)"' |
        xargs go mod edit
      touch .replaced
    ) || return
  fi
  echo "$copy"
}

# kubectl and kube-controller-manager, in $cache/control-plane.
control_plane() {
  bash "$here/../control-plane/build.sh" "$cache/control-plane" || exit 2
}

# A port of this machine that is free now.
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Further flags of kube-controller-manager.
manager_flags=()

started=()

# Ends what `start` started.
finish() {
  [ ${#started[@]} -eq 0 ] || kill "${started[@]}" 2>/dev/null
  wait "${started[@]}" 2>/dev/null
  started=()
}

# Starts the etcd and the kube-apiserver of $assets with further flags for the
# latter, waits until they are ready, then starts a kube-controller-manager.
# Sets `url`; $work/kubeconfig makes an administrator.
start() { # FLAG...
  local port etcd peer attempt
  mkdir -p "$work/certs"
  port=$(free_port) etcd=http://127.0.0.1:$(free_port) peer=http://127.0.0.1:$(free_port)
  openssl genrsa -out "$work/sa.key" 2048 2>/dev/null
  # Either server serves with the certificate of its directory.
  openssl req -x509 -newkey rsa:2048 -nodes -days 7 -subj /CN=127.0.0.1 \
    -addext 'subjectAltName=IP:127.0.0.1,IP:10.0.0.1' \
    -keyout "$work/certs/apiserver.key" -out "$work/certs/apiserver.crt" 2>/dev/null
  echo "$token,admin,,\"system:masters\"" >"$work/tokens.csv"
  trap finish EXIT
  "$assets/etcd" --data-dir "$work/etcd" --unsafe-no-fsync=true \
    --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
    --listen-peer-urls "$peer" >"$work/etcd.log" 2>&1 &
  started+=($!)
  "$assets/kube-apiserver" --etcd-servers "$etcd" --cert-dir "$work/certs" \
    --bind-address 127.0.0.1 --secure-port "$port" \
    --token-auth-file "$work/tokens.csv" --service-cluster-ip-range 10.0.0.0/24 \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$work/sa.key" \
    --service-account-signing-key-file "$work/sa.key" "$@" \
    >"$work/kube-apiserver.log" 2>&1 &
  started+=($!)
  url=https://127.0.0.1:$port
  jq -n --arg url "$url" --arg token "$token" '{
    apiVersion: "v1", kind: "Config", "current-context": "test",
    clusters: [{name: "test", cluster: {server: $url, "insecure-skip-tls-verify": true}}],
    users: [{name: "test", user: {token: $token}}],
    contexts: [{name: "test", context: {cluster: "test", user: "test"}}]
  }' >"$work/kubeconfig"
  for attempt in $(seq 120); do
    curl -sk -o /dev/null -f -H "Authorization: Bearer $token" "$url/readyz" && break
    kill -0 "${started[1]}" 2>/dev/null || die "the server ended: see $work/kube-apiserver.log"
    [ "$attempt" -lt 120 ] || die "the server did not become ready: see $work"
    sleep 0.5
  done
  "$cache/control-plane/kube-controller-manager" --kubeconfig "$work/kubeconfig" \
    --secure-port "$(free_port)" --leader-elect=false "${manager_flags[@]}" \
    >"$work/kube-controller-manager.log" 2>&1 &
  started+=($!)
}

# The lines of $results for a JSON report of ginkgo.
ginkgo_results() { # PREFIX <REPORT
  jq -r --arg prefix "$1" '.[].SpecReports[]?
    | select(.State != "skipped" and .State != "pending")
    | select(.LeafNodeType == "It" or .State != "passed")
    | "\(if .State == "passed" then "ok" else "failed" end) \($prefix)\(
        (.ContainerHierarchyTexts // []) + [.LeafNodeText] | join(" ") | gsub("\\s+"; " "))"'
}

# The lines of $results for the events of `go test -json`: of tests with
# subtests, the latter alone; suites of ginkgo report for themselves.
go_results() { # PREFIX <EVENTS
  jq -rs --arg prefix "$1" '. as $all
    | [.[] | select(.Test != null and (.Action == "pass" or .Action == "fail"))]
    | (map(.Test | split("/") | .[:-1] | join("/")) | unique) as $parents
    | ($all | map(select((.Output // "") | startswith("Running Suite:")).Test)) as $suites
    | .[] | select(.Test | IN(($parents + $suites)[]) | not)
    | "\(if .Action == "pass" then "ok" else "failed" end) \($prefix)\(.Test)"'
}

# The names that a list has of what need not pass.
excused() { # LIST
  sed -n 's/^- \(.*[^ ]\)  *#.*/\1/p' "$here/$1.txt" | sort -u
}

# Compares the results with a list: its line `passed N` says how many pass at
# least, when everything was run, and its lines `- NAME # REASON` what need not.
verdict() { # LIST NAMES_GIVEN
  local passed failed unexpected least
  passed=$(grep -c '^ok ' "$results")
  failed=$(grep -c '^failed ' "$results")
  echo "$passed passed, $failed failed; logs: $work"
  unexpected=$(comm -13 <(excused "$1") <(sed -n 's/^failed //p' "$results" | sort -u))
  if [ -n "$unexpected" ]; then
    printf 'failed, and %s.txt does not say why:\n%s\n' "$1" "$unexpected"
    return 1
  fi
  least=$(sed -n 's/^passed //p' "$here/$1.txt")
  if [ "$2" -eq 0 ] && [ "$passed" -lt "$least" ]; then
    echo "fewer passed than the $least of $1.txt"
    return 1
  fi
}
