#!/bin/sh
# Prints a kubeconfig with which the administrator impersonates a user of a group: USER GROUP NAMESPACE.
# It is for trying what that user may do; in production, users sign in by themselves.
kubectl config view --raw --minify --flatten | sed "/^    namespace: /d; s/^    user: /    namespace: $3\n&/"
printf '    as: %s\n    as-groups: [%s]\n' "$1" "$2"
