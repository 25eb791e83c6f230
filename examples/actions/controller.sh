#!/bin/sh
# Serves the class configmap-seal of class.yaml with kubectl alone. `controller.sh` runs until it is stopped,
# `controller.sh once` does what is to be done now. It needs get, list and patch of actions and configmaps, and
# patch of actions/status.
set -eu

# The Actions of the class that have not ended: namespace, name, the ConfigMap, and whether it is cancelled.
open='{{range .items}}{{if eq .spec.actionClass "configmap-seal"}}{{$ended := false}}{{with .status}}{{if .completionTime}}{{$ended = true}}{{end}}{{end}}{{if not $ended}}{{.metadata.namespace}} {{.metadata.name}} {{.spec.parameters.name}} {{.spec.cancelled}}{{"\n"}}{{end}}{{end}}{{end}}'

# Writes a status: namespace, name, state, whether it succeeded, reason, message.
report() {
  now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  completed=
  case $3 in Succeeded | Failed | Cancelled) completed=",\"completionTime\": \"$now\"" ;; esac
  kubectl patch actions.olm.io "$2" -n "$1" --subresource=status --type=merge -p "{\"status\": {
    \"state\": \"$3\"$completed,
    \"conditions\": [{\"type\": \"ActionSucceeded\", \"status\": \"$4\", \"reason\": \"$5\",
      \"message\": \"$6\", \"lastTransitionTime\": \"$now\"}]}}" >/dev/null
}

# Repeating what was done already changes nothing, so an interrupted Action is simply done again.
serve() {
  kubectl get actions.olm.io --all-namespaces -o go-template="$open" |
    while read -r namespace action name cancelled; do
      if [ "$cancelled" = true ]; then
        report "$namespace" "$action" Cancelled False ActionCancelled "it was cancelled before it began"
        continue
      fi
      report "$namespace" "$action" Running Unknown ActionRunning "ConfigMap $name is made immutable"
      if kubectl patch configmap "$name" -n "$namespace" -p '{"immutable": true}' >/dev/null; then
        report "$namespace" "$action" Succeeded True ActionSucceeded "ConfigMap $name is immutable"
      else
        report "$namespace" "$action" Failed False PatchFailed "ConfigMap $name cannot be changed"
      fi
    done
}

if [ "${1:-}" = once ]; then
  serve
  exit
fi
while true; do
  serve
  sleep 5
done
