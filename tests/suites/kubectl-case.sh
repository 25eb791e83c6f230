# Runs the script $WHAT of test/cmd; started by kubectl.sh in $KUBE_ROOT.
set -o errexit -o nounset -o pipefail

source hack/lib/init.sh
source hack/lib/test.sh
source test/cmd/legacy-script.sh

CONTEXT=test
# The server is not of the same build as kubectl.
export ALLOW_SKEW=true
SUPPORTED_RESOURCES=("*")
kube::util::ensure-temp-dir
SED=sed
kube::util::trap_add 'stop-proxy; rm -rf "${KUBE_TEMP}"' EXIT

# Two of the functions do not end as the others do.
run_kubectl_diff_same_names_tests() { run_kubectl_diff_same_names; }
run_secrets_test_tests() { run_secrets_test; }

runTests
