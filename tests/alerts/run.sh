#!/usr/bin/env bash
#
# run.sh PROGRAM CACHE
#
# Tests deploy/alerts.yaml, then has an EventAction update Operators whenever a
# catalog changes: one change is harmless, and of another one the update would
# leave an orphan. The Action for the latter fails, and Prometheus raises the
# alert. PROGRAM is plimsoll; logs are kept in CACHE. kubectl, prometheus,
# promtool, jq, curl and python3 have to be in PATH.
set -uo pipefail

# shellcheck source=../suites/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../suites/lib.sh"
[ $# -eq 2 ] || die "usage: ${0##*/} PROGRAM CACHE"
program=$(realpath "$1") || exit 2
root=$(cd "$here/../.." && pwd)
mkdir -p "$2/alerts" || exit 2
work=$(mktemp -d "$2/alerts/run.XXXXXX")
work=$(realpath "$work")
metrics=127.0.0.1:$(free_port)
prometheus=127.0.0.1:$(free_port)

# How long anything may take, in seconds.
DEADLINE=60

# The job that the rules are about.
JOB=cluster-version-operator

export KUBECONFIG=$work/kubeconfig
# Times of Prometheus are compared with those of `date`.
export TZ=UTC
# Nothing here is reached by way of a proxy.
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1

fail() { # MESSAGE
  echo "$1; logs: $work" >&2
  exit 1
}

# Runs a command until it succeeds, and shows what it printed last if it does not.
wait_for() { # WHAT COMMAND...
  local what=$1 end=$((SECONDS + DEADLINE)) pid
  shift
  until "$@" >"$work/last" 2>&1; do
    for pid in "${started[@]}"; do
      kill -0 "$pid" 2>/dev/null || fail "a program ended while waiting until $what"
    done
    if [ $SECONDS -ge $end ]; then
      cat "$work/last" >&2
      fail "not within $DEADLINE s: $what"
    fi
    sleep 0.2
  done
  printf '%4d s  %s\n' "$SECONDS" "$what"
}

# Starts a program that ends with the script; its log has its name.
run() { # NAME COMMAND...
  local name=$1
  shift
  "$@" >"$work/$name.log" 2>&1 &
  started+=($!)
}

# Whether a filter of jq is true of a JSON text, which is shown if it is not.
holds() { # FILTER [ARGUMENTS OF JQ...] <JSON
  local filter=$1 text
  shift
  text=$(cat)
  jq -e "$@" "$filter" <<<"$text" >/dev/null 2>&1 || {
    printf '%s\nis not so: %s\n' "$text" "$filter"
    return 1
  }
}

# Whether a filter of jq is true of what the cluster has.
cluster_has() { # KIND[/NAME] FILTER [ARGUMENTS OF JQ...]
  local what=$1
  shift
  kubectl get "$what" -o json | holds "$@"
}

# Prometheus' answer to a query of its HTTP API.
ask() { # PATH [ARGUMENTS OF CURL...]
  local path=$1
  shift
  curl -sSf --max-time 10 --get "http://$prometheus/api/v1/$path" "$@"
}

# Whether Prometheus has a result for a query.
result_is_there() { # QUERY
  ask query --data-urlencode "query=$1" | holds '.data.result != []'
}

# Whether the rule of an alert has been evaluated since a time, and without an error.
evaluated_since() { # ALERT TIME
  # shellcheck disable=SC2016 # The variables are those of jq.
  ask rules | holds '[.data.groups[].rules[] | select(.name == $name)]
    | length == 1 and all(.health == "ok" and .lastEvaluation > $since)' --arg name "$1" --arg since "$2"
}

alert_fires() { # NAME
  # shellcheck disable=SC2016 # The variables are those of jq.
  ask alerts | holds '.data.alerts | any(.labels.alertname == $name and .state == "firing")' --arg name "$1"
}

# Prints the last Action of the EventAction.
last_action() {
  kubectl get actions --selector olm.io/action-owner=follow -o json |
    jq '.items | max_by(.metadata.creationTimestamp)'
}

# Whether the EventAction has made so many Actions, of which the last one has a state.
last_action_is() { # NUMBER STATE
  # shellcheck disable=SC2016 # The variables are those of jq.
  cluster_has actions '.items | length == $number' --argjson number "$1" &&
    last_action | holds '.status.state == $state' --arg state "$2"
}

# Prints what updates change, and no times.
state() {
  kubectl get operators,deployments --all-namespaces -o json | jq '[.items[] | {
    kind, name: .metadata.name, labels: .metadata.labels, annotations: .metadata.annotations,
    generation: .metadata.generation, spec, bundle: .status.bundle
  }]'
}

# Starts the controller as the last of all programs.
start_controller() {
  run controller "$program" run --operators --actions --catalog-dir "$work" --metrics-listen "$metrics"
}

# Adds a bundle to the catalog, all of it at once.
publish() { # DIRECTORY PACKAGE VERSION
  rm -rf "$work/bundle" && cp -r "$1" "$work/bundle" && mkdir -p "$work/catalog/$2" &&
    mv "$work/bundle" "$work/catalog/$2/$3"
}

echo "--- the rules by themselves"
promtool check rules "$root/deploy/alerts.yaml" || exit 1
promtool test rules "$here/../alerts/rules-test.yaml" || exit 1

echo "--- a cluster, and Prometheus"
cat >"$work/prometheus.yaml" <<CONFIG
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ['$root/deploy/alerts.yaml']
scrape_configs:
- job_name: $JOB
  static_configs: [{targets: ['$metrics']}]
CONFIG
promtool check config "$work/prometheus.yaml" || exit 1
bundles=$root/examples/catalog
publish "$bundles/lantern/1.0.0" lantern 1.0.0
publish "$bundles/ledger/1.4.0" ledger 1.4.0
cp "$bundles/lantern/ci.yaml" "$work/catalog/lantern/"
cp "$bundles/ledger/ci.yaml" "$work/catalog/ledger/"

trap finish EXIT
run serve "$program" sandbox serve --kubeconfig "$KUBECONFIG"
wait_for "the API server answers" kubectl get --raw /readyz
run operators "$program" sandbox operators --delay 0s
run prometheus prometheus --config.file "$work/prometheus.yaml" --storage.tsdb.path "$work/prometheus" \
  --web.listen-address "$prometheus"
start_controller
wait_for "Prometheus has metrics of the leader" result_is_there "plimsoll_operators_leader{job=\"$JOB\"} == 1"
wait_for "the kinds are served" kubectl get catalogs,operators,eventactions
kubectl apply -f - <<CATALOG || fail "the Catalog was refused"
apiVersion: olm.io/v1
kind: Catalog
metadata: {name: test}
spec: {source: {type: Directory, path: $work/catalog}, pollInterval: 1s}
CATALOG
wait_for "the catalog is served" cluster_has catalog/test '.status.bundles == 2'
"$program" operator install lantern@1.0.0 --yes || fail "lantern was not installed"
kubectl apply -f - <<'FOLLOW' || fail "the EventAction was refused"
apiVersion: olm.io/v1
kind: EventAction
metadata: {name: follow}
spec:
  trigger: {kind: Catalog, names: [test]}
  template:
    actionClass: operator-update
    parameters: {latest: true, together: true}
    preconditions: {consistent: true, noWorkloadRemoval: true, noOrphans: true}
  requester: {username: admin, groups: ['system:masters']}
FOLLOW
wait_for "the EventAction has seen the catalog" cluster_has eventaction/follow '.status.observed | length == 1'

echo "--- a harmless change of the catalog"
publish "$bundles/lantern/1.1.1" lantern 1.1.1
wait_for "an Action succeeds" last_action_is 1 Succeeded
wait_for "lantern is updated" cluster_has operator/lantern '.status.bundle.version == "1.1.1"'
wait_for "Prometheus counts the Action" \
  result_is_there 'plimsoll_action_total{result="succeeded"} == 1 and plimsoll_action_last_end_seconds{class="operator-update"}'
wait_for "the rule is evaluated once more" evaluated_since PlimsollActionsFailing "$(date --utc +%FT%T.%NZ)"
ask alerts | holds '.data.alerts == []' || fail "there is an alert"

echo "--- a change after which nothing needs ledger any more"
state >"$work/before"
cp -r "$bundles/lantern/1.1.1" "$work/1.2.0"
rm "$work/1.2.0/metadata/dependencies.yaml"
sed -i 's/1\.1\.1/1.2.0/; s/replaces: .*/replaces: lantern.v1.1.1/; /skips:/d; /- lantern\.v1\.1\.0/d' \
  "$work/1.2.0/manifests/lantern.clusterserviceversion.yaml"
publish "$work/1.2.0" lantern 1.2.0
wait_for "an Action fails" last_action_is 2 Failed
last_action | holds '.status | .outcome == "FAILED" and .planSummary == "1 to update"
  and .failure == {precondition: "noOrphans", item: "ledger", left: ["update lantern to v1.2.0"],
    command: "kubectl operator update --latest"}
  and (.conditions[] | select(.type == "ActionSucceeded") | .status == "False" and .reason == "PreconditionFailed"
    and (.message | contains("noOrphans: nothing would depend on ledger any more")))
  and (.plan | length == 1 and all(.state == "Planned" and .version == "1.2.0" and .versionBefore == "1.1.1"))' ||
  fail "the status of the Action does not say why"
wait_for "an event says so" cluster_has events '.items | any(
  .type == "Warning" and .reason == "PreconditionFailed" and (.message + .note | contains("noOrphans")))'
wait_for "the alert fires" alert_fires PlimsollActionsFailing
ask alerts | holds '.data.alerts | length == 1 and (.[0]
  | .labels == {alertname: "PlimsollActionsFailing", class: "operator-update", reason: "PreconditionFailed", severity: "info"}
    and (.annotations.description
      | contains("class operator-update") and contains("PreconditionFailed") and contains("list -A --state failed")))' ||
  fail "the alert does not say what failed"
listed=$("$program" operator action list -A --state failed)
grep -q PreconditionFailed <<<"$listed" || fail "the command that the alert names does not show the Action"
state | diff "$work/before" - || fail "something was changed"

echo "--- a restart of the controller"
kill "${started[-1]}" && wait "${started[-1]}"
unset 'started[-1]'
start_controller
wait_for "the controller leads again, and counts from 0" \
  result_is_there "plimsoll_operators_leader{job=\"$JOB\"} == 1 unless on(job) plimsoll_action_total"
wait_for "the rule is evaluated once more" evaluated_since PlimsollActionsFailing "$(date --utc +%FT%T.%NZ)"
alert_fires PlimsollActionsFailing || fail "the restart has ended the alert"

echo "--- what the administrator does about it"
# Whoever wants to keep ledger says so; the next change of the catalog is for the same update.
kubectl label operator ledger --overwrite olm.io/installed-as=user >/dev/null || fail "ledger was not labelled"
publish "$bundles/tide/0.3.0" tide 0.3.0
wait_for "an Action succeeds" last_action_is 3 Succeeded
wait_for "lantern is updated" cluster_has operator/lantern '.status.bundle.version == "1.2.0"'
cluster_has operator/ledger '.status.bundle.version == "1.4.0"' || fail "ledger was changed"
echo "everything as expected; logs: $work"
