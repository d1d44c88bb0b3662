#!/usr/bin/env bash
# Checks the manifests without a cluster: against the schemas of two releases of Kubernetes, unknown keys refused, and
# against each other, the image and the programs' options (check.py).
#
#   deploy/k8s/test.sh           Exit code 77: skipped, with the reason.
#
# GRAMMATON_BIN: folder of the programs whose options are checked; without it they are not checked.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
source "$root/.ci/requirement"
skip() { missing kubernetes "$*"; exit 77; }

command -v kubectl >/dev/null || skip "no kubectl, which renders the manifests"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv" >/dev/null 2>&1 || skip "python3 cannot make a virtual environment"
"$scratch/venv/bin/pip" install --quiet "kubernetes-validate==1.37.0" >"$scratch/pip.log" 2>&1 ||
  skip "pip cannot install kubernetes-validate: $(tail -1 "$scratch/pip.log")"

for variant in base batch tls service; do
  kubectl kustomize "$here/$variant" >"$scratch/$variant.yaml"
  for release in 1.36 1.37; do
    "$scratch/venv/bin/kubernetes-validate" --strict --quiet -k "$release" "$scratch/$variant.yaml"
    echo "$variant: $(grep -c '^kind:' "$scratch/$variant.yaml") objects fit the schemas of Kubernetes $release"
  done
  printf '%s: ' "$variant"
  "$scratch/venv/bin/python" "$here/check.py" "$root" ${GRAMMATON_BIN:+"$GRAMMATON_BIN"} <"$scratch/$variant.yaml"
done
