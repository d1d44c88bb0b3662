# shellcheck shell=bash
# Shared by the tests of the launches: a job long enough for faults in its middle, and the check of its
# result. To be sourced; needs `root`, the repository's folder, `rounds`, the job's number of rounds, and `requirement`, the name of
# the launch in GRAMMATON_REQUIRE; sets `bin`, the folder of the programs.
: "${root:?}" "${rounds:?}" "${requirement:?}"
source "$root/.ci/requirement"

say() { printf '%s  %s\n' "$(date +%T)" "$*"; }
fail() { say "FAILED: $*"; exit 1; }
# Reports the command that ends a test.
trap 'say "FAILED: line $LINENO: $BASH_COMMAND"' ERR
# The convention of many test runners for a skipped test.
skip() { missing "$requirement" "$*"; exit 77; }

# GRAMMATON_BIN names a folder of built programs.
find_programs() {
  bin=${GRAMMATON_BIN:-}
  if [ -z "$bin" ]; then
    cargo build --quiet --release --locked --manifest-path "$root/Cargo.toml" -p grammaton-cli
    bin=${CARGO_TARGET_DIR:-$root/target}/release
  fi
  bin=$(cd "$bin" && pwd)
}

# Makes $1/job.toml and its corpus, readable for all users.
make_job() {
  install -d -m 755 "$1"
  "$bin/grammaton" sample "$root/examples/segmentation/lexicon.gr" -n 4000 --seed 7 >"$1/corpus.txt"
  cat >"$1/job.toml" <<JOB
[model]
grammar = "auto:colloc"

[corpus]
path = "corpus.txt"

# Without dropped strings and early stopping, all rounds cost the same.
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

# Trains the job in $1 in one process, into $2, without cluster and faults, in the background at low priority; `plain` is the id of its
# process.
train_plainly() {
  nice -n 5 "$bin/grammaton" train "$1/job.toml" --out "$2" --quiet &
  plain=$!
}

# The digest in the output folder $1.
digest() { sed -n 's/.*"parameters_sha256": "\([0-9a-f]*\)".*/\1/p' "$1/summary.json"; }

# Waits until the command succeeds, at most $1 seconds.
within() {
  local until=$((SECONDS + $1))
  shift
  until "$@"; do
    [ "$SECONDS" -lt "$until" ] || return 1
    sleep 0.5
  done
}

# Checks that the results in folder $2 equal those of the plain run in folder $1, that each round is in the metrics once, and that the run
# was resumed $3 times.
same_result() {
  [ -z "$plain" ] || wait "$plain" || fail "the plain run did not succeed"
  plain=
  [ -f "$2/summary.json" ] || fail "no summary.json in the results"
  [ "$(wc -l <"$2/metrics.jsonl")" = "$rounds" ] ||
    fail "metrics.jsonl has $(wc -l <"$2/metrics.jsonl") lines, expected one for each of $rounds rounds"
  grep -q "\"resumed\": $3," "$2/summary.json" || fail "summary.json does not say that the run was resumed $3 times"
  [ "$(digest "$1")" = "$(digest "$2")" ] || fail "parameters_sha256 is $(digest "$2"), expected $(digest "$1")"
  say "parameters_sha256 of the plain run and of this one: $(digest "$2")"
}
