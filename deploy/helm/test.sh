#!/usr/bin/env bash
# Checks the chart without a cluster: it is rendered by Helm's own library, for several values, and the objects are checked against the schemas of
# two releases of Kubernetes, and against each other, the image and the program's options (check.py). Wrong values must be refused.
#
#   deploy/helm/test.sh          Exit code 77: skipped, with the reason.
#
# GRAMMATON_BIN: folder of the program whose options are checked; without it they are not checked.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
source "$root/.ci/requirement"
skip() { missing helm "$*"; exit 77; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv" >/dev/null 2>&1 || skip "python3 cannot make a virtual environment"
"$scratch/venv/bin/pip" install --quiet "helm-python-sdk==0.2.2" "kubernetes-validate==1.37.0" >"$scratch/pip.log" 2>&1 ||
  skip "pip cannot install helm-python-sdk and kubernetes-validate: $(tail -1 "$scratch/pip.log")"

render() { "$scratch/venv/bin/python" "$here/render.py" "$here/grammaton" "$1" "$scratch/notes"; }
check() {
  local name=$1 values=$2
  render "$values" >"$scratch/$name.yaml"
  for release in 1.36 1.37; do
    "$scratch/venv/bin/kubernetes-validate" --strict --quiet -k "$release" "$scratch/$name.yaml"
    echo "$name: $(grep -c '^kind:' "$scratch/$name.yaml") objects fit the schemas of Kubernetes $release"
  done
}
fits() {
  check "$@"
  printf '%s: ' "$1"
  "$scratch/venv/bin/python" "$here/check.py" "$root" "$scratch/notes" ${GRAMMATON_BIN:+"$GRAMMATON_BIN"} <"$scratch/$1.yaml"
}
tls='"secrets": {"coordinatorTls": "grammaton-coordinator-tls", "workerTls": "grammaton-worker-tls"}'
fits service '{}'
fits options '{"coordinator": {"running": 4, "keepDays": 30, "extraArgs": ["--max-user-jobs=8"]}, "worker": {"replicas": 9, "nodeSelector": {"disk": "ssd"},
  "tolerations": [{"key": "batch", "operator": "Exists"}]}, "store": {"storageClass": "fast", "size": "50Gi"}}'
fits tls "{$tls}"
fits job '{"job": {"configMap": "grammaton-job"}}'
fits job-tls "{\"job\": {\"configMap\": \"grammaton-job\"}, $tls}"
fits batch '{"job": {"configMap": "grammaton-job"}, "worker": {"indexed": true}}'
check policies '{"networkPolicy": {"enabled": false}}'
check objects '{"store": {"url": "s3://models/service"}, "env": [{"name": "AWS_REGION", "value": "eu-central-1"}]}'
check claim '{"store": {"existingClaim": "jobs"}}'
[ "$(grep -c 'kind: PersistentVolumeClaim' "$scratch/objects.yaml" "$scratch/claim.yaml" | grep -c ':0$')" = 2 ] ||
  { echo "a volume is made that nothing uses"; exit 1; }

# A misspelt key, a value out of range, a store that is no object store, half of mutual TLS, workers that end without a single job, a single job in an object store.
for values in '{"workers": {}}' '{"worker": {"replicas": -1}}' '{"store": {"url": "http://x"}}' '{"secrets": {"workerTls": "x"}}' \
  '{"worker": {"indexed": true}}' '{"job": {"configMap": "x"}, "store": {"url": "s3://x"}}'; do
  if render "$values" >/dev/null 2>"$scratch/refused"; then echo "not refused: $values"; exit 1; fi
  echo "refused: $values: $(tail -1 "$scratch/refused" | cut -c 1-150)"
done
