#!/usr/bin/env bash
# Trains with one coordinator and N worker processes on this machine, over gRPC, as they would run on several.
#
#   deploy/local.sh N JOB.toml [options of `grammaton train`]      PORT=7600 unless set
set -euo pipefail
if [ $# -lt 2 ]; then
  echo "usage: deploy/local.sh N JOB.toml [options of grammaton train]" >&2
  exit 2
fi
workers=$1
shift
root=$(cd "$(dirname "$0")/.." && pwd)
address=127.0.0.1:${PORT:-7600}
cargo build --quiet --release --workspace --manifest-path "$root/Cargo.toml"
bin=${CARGO_TARGET_DIR:-$root/target}/release

pids=()
# Workers leave by themselves when the job is done; this is for when it is not.
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT
for _ in $(seq "$workers"); do
  GRAMMATON_LOG=${GRAMMATON_LOG:-error} "$bin/grammaton-worker" --coordinator "http://$address" --threads 1 &
  pids+=($!)
done
"$bin/grammaton" train "$@" --listen "$address" --min-workers "$workers"
wait "${pids[@]}"
