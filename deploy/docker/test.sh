#!/usr/bin/env bash
# Launches compose.yaml on a real Docker engine with faults: a worker is killed, two are added, the
# coordinator is killed and restarts by itself. Then service.yaml: a job is submitted, and the service killed in the middle of it. The
# results must equal a plain run's, bit for bit. The image is that of `Dockerfile`, without network. If `docker compose` and `docker-compose` are there, the first
# part uses the one, the second part the other.
#
#   deploy/docker/test.sh        as root. Exit code 77: skipped, with the reason.
#
# GRAMMATON_BIN: folder of the program to put into the image instead of compiling it. ROUNDS: rounds of the first job (1000); faults have to come before
# its end, so optimised programs need more.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
rounds=${ROUNDS:-1000}
requirement=docker
source "$root/deploy/trial.sh"

[ "$(id -u)" = 0 ] || skip "killing a container's process from outside needs root"
docker info >/dev/null 2>&1 || skip "no Docker engine answers"
clients=()
for client in 'docker compose' docker-compose; do
  $client version >/dev/null 2>&1 && clients+=("$client")
done
[ ${#clients[@]} -gt 0 ] || skip "neither docker compose nor docker-compose is installed"
find_programs

scratch=$(mktemp -d)
chmod 755 "$scratch"
project=grammaton-test-$$
# METRICS, LISTEN, PAGE: any free port.
export IMAGE=$project JOB=$scratch/job TOKEN=$scratch/secrets/token MIN_WORKERS=2 METRICS=127.0.0.1: LISTEN=127.0.0.1: PAGE=127.0.0.1:
# Sets `compose` to the client $1 with the file $2.
use() {
  local client
  read -ra client <<<"$1"
  compose=("${client[@]}" -p "$project" -f "$here/$2")
  say "$2 by $1 $("${client[@]}" version --short)"
}
plain=
clean_up() {
  kill "$plain" 2>/dev/null || true
  "${compose[@]}" down --volumes --timeout 5 >/dev/null 2>&1 || true
  docker image rm --force "$project" >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
use "${clients[0]}" compose.yaml
trap clean_up EXIT

make_job "$JOB"
mkdir -m 700 "$scratch/secrets"
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$TOKEN"
say "training plainly meanwhile, for comparison"
train_plainly "$JOB" "$scratch/plain"

diff <(sed -n '/^USER/,$p' "$here/Dockerfile") <(sed -n '/^USER/,$p' "$here/Dockerfile.source") || fail "the two files make different images"
begun=$SECONDS
"$here/build.sh" "$bin/grammaton" >"$scratch/build.log" 2>&1 || fail "build.sh: $(tail -3 "$scratch/build.log")"
bytes=$(docker image inspect -f '{{.Size}}' "$IMAGE")
ldd "$bin/grammaton" >/dev/null 2>&1 || [ "$bytes" -le 30000000 ] || fail "the image has $bytes bytes, more than 30 MB"
say "$(docker run --rm --network none --read-only --cap-drop ALL "$IMAGE" --version), $bytes bytes, as user $(
  docker image inspect -f '{{.Config.User}}' "$IMAGE"), made in $((SECONDS - begun)) s"
! docker run --rm --entrypoint /bin/sh "$IMAGE" -c true 2>/dev/null || fail "the image has a shell"
docker run --rm --network none --cap-drop ALL "$IMAGE" demo >"$scratch/demo" 2>&1 || fail "demo: $(tail -1 "$scratch/demo")"

container() { "${compose[@]}" ps -a -q coordinator; }
# Number of rounds in the metrics; 0 before there are any.
round() { { docker cp "$(container):/results/metrics.jsonl" - | tar -xO; } 2>/dev/null | wc -l || true; }
reached() { [ "$(round)" -ge "$1" ]; }
# As if the machine ran out of memory: unlike `docker kill`, the engine restarts the container.
kill_container() { kill -KILL "$(docker inspect -f '{{.State.Pid}}' "$1")"; }
restarted() { [ "$(docker inspect -f '{{.RestartCount}} {{.State.Running}}' "$1")" = "1 true" ]; }

say "starting a coordinator and 2 workers"
"${compose[@]}" up -d --no-build --scale worker=2 >/dev/null 2>"$scratch/up.log" || fail "up: $(tail -3 "$scratch/up.log")"
within 240 reached 50 || fail "no 50 rounds within 240 s: $(docker logs "$(container)" 2>&1 | tail -5)"

# Reads all of the input: closing a pipe after the first line would sometimes fail the test.
mapfile -t workers < <("${compose[@]}" ps -a -q worker)
victim=${workers[0]}
say "round $(round): killing a worker"
kill_container "$victim"
within 60 restarted "$victim" || fail "the worker did not come back"

say "round $(round): adding 2 workers"
"${compose[@]}" up -d --no-build --no-recreate --scale worker=4 >/dev/null 2>"$scratch/up.log" || fail "scaling: $(tail -3 "$scratch/up.log")"
within 240 reached 200 || fail "no progress after a worker was killed"
docker exec "$(container)" grammaton status http://127.0.0.1:7600 --token-file /run/secrets/token ||
  fail "no status in round $(round) of $rounds: $(docker logs "$(container)" 2>&1 | tail -3)"
page=/dev/tcp/$(docker port "$(container)" 9600/tcp | tr : /)
n_metrics=$(exec 3<>"$page" && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && grep -c '^grammaton_' <&3)
say "$n_metrics values at /metrics"

before=$(round)
[ "$before" -lt $((rounds * 9 / 10)) ] || fail "too fast: in round $before of $rounds already"
say "round $before: killing the coordinator"
kill_container "$(container)"
within 60 restarted "$(container)" || fail "the coordinator did not come back"
going_on() { docker logs "$(container)" 2>&1 | sed -n 's/^resumed after round \([0-9]*\) of checkpoint .*$/\1/p' | grep .; }
within 60 going_on >/dev/null || fail "it did not go on from a checkpoint: $(docker logs "$(container)" 2>&1 | tail -5)"
say "back, and resumed after round $(going_on)"

[ "$(timeout 300 docker wait "$(container)")" = 0 ] ||
  fail "coordinator: $(docker logs "$(container)" 2>&1 | tail -5)"
for worker in $("${compose[@]}" ps -a -q worker); do
  [ "$(timeout 60 docker wait "$worker")" = 0 ] || fail "worker: $(docker logs "$worker" 2>&1 | tail -5)"
done
say "coordinator and 4 workers have left with exit code 0"
docker cp "$(container):/results" "$scratch/results" >/dev/null
same_result "$scratch/plain" "$scratch/results" 1
"${compose[@]}" down --volumes --timeout 5 >/dev/null 2>&1

rounds=$((rounds * 3 / 10))
job=$scratch/short
make_job "$job"
train_plainly "$job" "$scratch/plain-short"
use "${clients[-1]}" service.yaml
say "starting a service and 2 workers"
"${compose[@]}" up -d --no-build --scale worker=2 >/dev/null 2>"$scratch/up.log" || fail "up: $(tail -3 "$scratch/up.log")"
container() { "${compose[@]}" ps -a -q service; }
# The port changes when the container restarts.
service() { "$bin/grammaton" "$@" --coordinator "http://$(docker port "$(container)" 7600/tcp)" --token-file "$TOKEN"; }
answers() { service jobs >/dev/null 2>&1; }
within 60 answers || fail "the service does not answer: $(docker logs "$(container)" 2>&1 | tail -5)"
id=$(service submit "$job/job.toml") || fail "submit: $(docker logs "$(container)" 2>&1 | tail -5)"
logged() { service logs "$id" >"$scratch/log" 2>/dev/null && [ "$(grep -c '^round ' "$scratch/log")" -ge "$1" ]; }
within 240 logged 50 || fail "no 50 rounds within 240 s: $(docker logs "$(container)" 2>&1 | tail -5)"
say "job $id, round $(grep -c '^round ' "$scratch/log"): killing the service"
kill_container "$(container)"
within 60 restarted "$(container)" || fail "the service did not come back"
over() { logged 0 && grep -qE '^(done|failed):' "$scratch/log"; }
within 400 over || fail "the job did not end: $(tail -3 "$scratch/log")"
resumed=$(grep '^resumed after round' "$scratch/log") || fail "the job was not resumed: $(tail -3 "$scratch/log")"
say "$resumed; $(tail -1 "$scratch/log")"
service fetch "$id" --out "$scratch/fetched" >/dev/null || fail "fetch"
same_result "$scratch/plain-short" "$scratch/fetched" 1
say "passed"
