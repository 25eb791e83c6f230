#!/bin/sh
# Serves the class configmap-seal of class.yaml with kubectl alone: `controller.sh` until it is stopped,
# `controller.sh once` what is to be done now. permissions.yaml has what it needs, docs/action-classes.md the
# contract. It may be killed at any time, and run more than once at a time.
set -eu

# Namespace and name of each Action of the class that has not ended.
open='{{range .items}}{{if eq .spec.actionClass "configmap-seal"}}{{$state := ""}}{{with .status}}{{$state = .state}}{{end}}{{if not (eq $state "Succeeded" "Failed" "Cancelled")}}{{.metadata.namespace}} {{.metadata.name}}{{"\n"}}{{end}}{{end}}{{end}}'
# Of one Action: resourceVersion, state, attempts, whether it is cancelled, whether dry, number of groups; then, a line
# each, the ConfigMap, the user, the groups. What a requester writes stays in one line.
facts='{{.metadata.resourceVersion}} {{with .status}}{{.state}} {{with .attempts}}{{.}}{{else}}0{{end}}{{else}}Pending 0{{end}} {{with .spec.cancelled}}{{.}}{{else}}false{{end}} {{with .spec.dryRun}}{{.}}{{else}}false{{end}} {{with .spec.requester}}{{with .groups}}{{len .}}{{else}}0{{end}}{{else}}0{{end}}
{{with .spec.parameters}}{{with .name}}{{urlquery .}}{{end}}{{end}}
{{with .spec.requester}}{{.username}}{{range .groups}}{{"\n"}}{{.}}{{end}}{{end}}'

# Writes a status, unless the Action is not as it was read: state, ActionSucceeded, reason, message, other fields.
report() {
  now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  case $1 in Running) time= ;; *) time=", \"completionTime\": \"$now\"" ;; esac
  [ "$1 $state" != "Running Pending" ] || time=", \"startTime\": \"$now\""
  message=$(printf %s "$4" | tr '\n' ' ' | tr -cd '[:print:]' | sed 's/["\\]/\\&/g')
  version=$(kubectl patch actions.olm.io "$action" -n "$namespace" --subresource=status --type=merge \
    -o go-template='{{.metadata.resourceVersion}}' -p "{\"metadata\": {\"resourceVersion\": \"$version\"}, \"status\": {
    \"state\": \"$1\", \"outcome\": \"$(printf %s "$1" | tr '[:lower:]' '[:upper:]')\"$time${5:-}, \"conditions\": [{
    \"type\": \"ActionSucceeded\", \"status\": \"$2\", \"reason\": \"$3\", \"message\": \"$message\",
    \"lastTransitionTime\": \"$now\"}]}}")
}

# Prints status.failure: whether the change is `left` to do, or it is `unknown` whether it was made.
failure() {
  printf ', "failure": {"item": "%s", "%s": ["seal ConfigMap %s"], "command": "%s"}' "$name" "$1" "$name" \
    "kubectl patch configmap $name -n $namespace --type=merge -p '{\\\"immutable\\\": true}'"
}

# Ends an Action whose change is refused; leaves it to the next run if it is not known what became of the request.
# What kubectl answered, and what is to be reported of the change.
refused() {
  change=$2
  case $1 in
    *'(NotFound)'* | *'(Forbidden)'* | *'(BadRequest)'* | *' is invalid: '*) ;;
    *)
      change=unknown
      [ "$attempts" -ge 20 ] || { echo "$namespace/$action: $1" >&2; return; }
      ;;
  esac
  report Failed False PatchFailed "$1" "$(failure "$change")"
}

# Carries an Action out from where it is: namespace, name. If a status is refused, the Action is another controller's,
# or changed: it is left to the next run.
serve() {
  namespace=$1 action=$2
  lines=$(kubectl get actions.olm.io "$action" -n "$namespace" -o go-template="$facts") || return
  set --
  {
    read -r version state attempts cancelled dry count && IFS= read -r name && IFS= read -r user
    while IFS= read -r group; do set -- "$@" "--as-group=$group"; done
  } <<END
$lines
END
  if [ "$cancelled" = true ] && [ "$state" != Running ]; then
    report Cancelled False ActionCancelled "it was cancelled before it began"
    return
  fi
  case $name in '' | *[!a-z0-9.-]*) user= ;; esac
  if [ -z "$user" ] || [ "$dry" = true ] || [ $# -ne "$count" ]; then
    report Failed False InvalidAction "it needs spec.requester and spec.parameters.name, and has no spec.dryRun"
    return
  fi
  report Running Unknown ActionRunning "ConfigMap $name is sealed" ", \"attempts\": $((attempts + 1))" || return
  set -- "configmap/$name" -n "$namespace" "--as=$user" "$@"
  before=left
  [ "$attempts" = 0 ] || before=unknown
  found=$(kubectl get "$@" -o go-template='{{.metadata.resourceVersion}} {{.immutable}}' 2>&1) ||
    { refused "$found" "$before"; return; }
  if [ "${found#* }" != true ] && [ "$cancelled" = true ]; then
    report Cancelled False ActionCancelled "it was cancelled before ConfigMap $name was sealed" "$(failure left)"
    return
  elif [ "${found#* }" != true ]; then
    answer=$(kubectl patch "$@" --type=merge 2>&1 \
      -p "{\"metadata\": {\"resourceVersion\": \"${found%% *}\"}, \"immutable\": true}") ||
      { refused "$answer" left; return; }
  fi
  report Succeeded True ActionSucceeded "ConfigMap $name is immutable"
}

if [ "${1:-}" = once ]; then
  # Without a class that names this controller, no Action is its own.
  controller=$(kubectl get actionclasses.olm.io configmap-seal --ignore-not-found -o go-template='{{.spec.controller}}')
  [ "$controller" = example.com/configmap-seal ] || exit 0
  actions=$(kubectl get actions.olm.io --all-namespaces -o go-template="$open")
  printf '%s\n' "$actions" | while read -r namespace action; do
    [ -z "$action" ] || serve "$namespace" "$action" || true
  done
  exit
fi
while true; do
  sh "$0" once || true
  sleep 5
done
