#!/usr/bin/env bash
# Runs the Snakefile: kills a run in the middle of its rounds, which Snakemake tries again, and compares the digest with that of a plain run.
#
#   deploy/workflows/test.sh     needs Python. Exit code 77: skipped, with the reason.
#
# GRAMMATON_BIN: folder of programs to use instead of compiling them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
rounds=150
requirement=snakemake
source "$root/deploy/trial.sh"
plain=
scratch=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$scratch"' EXIT
python3 -m venv "$scratch/venv" >/dev/null 2>&1 || skip "python3 cannot make a virtual environment"
"$scratch/venv/bin/pip" install --quiet snakemake >"$scratch/pip.log" 2>&1 || skip "pip cannot install snakemake: $(tail -1 "$scratch/pip.log")"
find_programs
export PATH=$bin:$scratch/venv/bin:$PATH

make_job "$scratch/job"
mkdir "$scratch/flow"
flow() {
  snakemake --snakefile "$here/Snakefile" --directory "$scratch/flow" --cores 2 --quiet \
    --config "job=$scratch/job/job.toml" seeds=1,2 >>"$scratch/log" 2>&1
}
say "two seeds, one of which is killed"
flow &
running=$!
reached() { [ "$(wc -l <"$scratch/flow/runs/2/metrics.jsonl")" -ge 40 ]; } 2>/dev/null
within 300 reached || fail "no rounds: $(tail -3 "$scratch/log")"
kill -KILL "$(pgrep -f -- "^grammaton train .*--out runs/2 ")"
[ ! -e "$scratch/flow/runs/2/summary.json" ] || fail "too fast: the run had ended"
say "round $(wc -l <"$scratch/flow/runs/2/metrics.jsonl"): killed; Snakemake tries again"
wait "$running" || fail "$(tail -5 "$scratch/log")"
[ "$(cut -f 1 "$scratch/flow/scores.tsv" | sort -u | paste -sd ' ')" = "1 2 seed" ] || fail "$(cat "$scratch/flow/scores.tsv")"
grammaton train "$scratch/job/job.toml" --set inference.seed=2 --out "$scratch/plain" --quiet
same_result "$scratch/plain" "$scratch/flow/runs/2" 1
say "passed"
