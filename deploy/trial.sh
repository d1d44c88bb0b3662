# shellcheck shell=bash
# What the tests of the launches share: a job long enough for faults to happen in its middle, and the result that it
# must have. To be sourced; needs `root`, the repository's folder, `rounds`, how many the job has, and `requirement`, what the
# launch is called in GRAMMATON_REQUIRE; sets `bin`, the folder of the programs.
: "${root:?}" "${rounds:?}" "${requirement:?}"
source "$root/.ci/requirement"

say() { printf '%s  %s\n' "$(date +%T)" "$*"; }
fail() { say "FAILED: $*"; exit 1; }
# No command ends a test without a word.
trap 'say "FAILED: line $LINENO: $BASH_COMMAND"' ERR
# As many test runners take it: neither passed nor failed.
skip() { missing "$requirement" "$*"; exit 77; }

# GRAMMATON_BIN names a folder of programs that were built already.
find_programs() {
  bin=${GRAMMATON_BIN:-}
  if [ -z "$bin" ]; then
    cargo build --quiet --release --locked --manifest-path "$root/Cargo.toml" -p grammaton-coordinator -p grammaton-worker
    bin=${CARGO_TARGET_DIR:-$root/target}/release
  fi
  bin=$(cd "$bin" && pwd)
}

# Makes $1/job.toml and its corpus, readable for everybody.
make_job() {
  install -d -m 755 "$1"
  "$bin/grammaton" sample "$root/examples/segmentation/lexicon.gr" -n 4000 --seed 7 >"$1/corpus.txt"
  cat >"$1/job.toml" <<JOB
[model]
grammar = "auto:colloc"

[corpus]
path = "corpus.txt"

# No string is dropped and no round is the last one but the last: rounds cost the same until the end.
[inference]
selection = "fixed"
max_rounds = $rounds
tolerance = 0

[output]
score_every = 0
checkpoint_seconds = 1
JOB
  chmod 644 "$1/job.toml" "$1/corpus.txt"
}

# Trains on the job in $1 in one process, into $2: no cluster, no faults. Beside the rest, out of its way; `plain` is its
# process.
train_plainly() {
  nice -n 5 "$bin/grammaton" train "$1/job.toml" --out "$2" --quiet &
  plain=$!
}

# The digest in the output folder $1.
digest() { sed -n 's/.*"parameters_sha256": "\([0-9a-f]*\)".*/\1/p' "$1/summary.json"; }

# Waits until the command succeeds, $1 seconds at most.
within() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$until" ] || return 1
    sleep 0.5
  done
}

# Says whether the results in folder $2 are those of the plain run in folder $1: each round told once, and after $3 losses
# of the coordinator gone on with, not begun again.
same_result() {
  [ -z "$plain" ] || wait "$plain" || fail "the plain run did not succeed"
  plain=
  [ -f "$2/summary.json" ] || fail "no summary.json in the results"
  [ "$(wc -l <"$2/metrics.jsonl")" = "$rounds" ] ||
    fail "metrics.jsonl has $(wc -l <"$2/metrics.jsonl") lines, expected one for each of $rounds rounds"
  grep -q "\"resumed\": $3," "$2/summary.json" || fail "summary.json does not tell that the run was resumed $3 times"
  [ "$(digest "$1")" = "$(digest "$2")" ] || fail "parameters_sha256 is $(digest "$2"), expected $(digest "$1")"
  say "parameters_sha256 of the plain run and of this one: $(digest "$2")"
}
