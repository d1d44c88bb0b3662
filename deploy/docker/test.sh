#!/usr/bin/env bash
# Launches compose.yaml on a real Docker engine with faults: a worker is killed, two are added, the
# coordinator is killed and restarts by itself. Then service.yaml: a job is submitted, and the service killed in the middle of it. The
# results must equal a plain run's, bit for bit.
#
#   deploy/docker/test.sh        as root. Exit code 77: skipped, with the reason.
#
# GRAMMATON_BIN: folder of programs to put into the image instead of compiling them again; RUST_IMAGE, DEBIAN_IMAGE:
# base images for the Dockerfile. Unless they are given, the toolchain's is a stand-in that hands those programs over,
# and Debian's is made by debootstrap where it cannot be pulled. ROUNDS: rounds of the first job (1000); faults have to come before its end,
# so optimised programs need more.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
rounds=${ROUNDS:-1000}
requirement=docker
source "$root/deploy/trial.sh"

[ "$(id -u)" = 0 ] || skip "killing a container's process from outside needs root"
docker info >/dev/null 2>&1 || skip "no Docker engine answers"
if docker compose version >/dev/null 2>&1; then compose=(docker compose); else compose=(docker-compose); fi
"${compose[@]}" version >/dev/null 2>&1 || skip "neither docker compose nor docker-compose is installed"
# Newer clients need a plug-in for BuildKit, which Debian's package includes.
builder=
for client in docker /usr/bin/docker; do
  if probe=$(printf 'FROM scratch\nLABEL probe=1\n' | DOCKER_BUILDKIT=1 "$client" build --quiet - 2>/dev/null); then
    builder=$client
    docker image rm "$probe" >/dev/null
    break
  fi
done
[ -n "$builder" ] || skip "this Docker client has no BuildKit"
find_programs

scratch=$(mktemp -d)
chmod 755 "$scratch"
project=grammaton-test-$$
# METRICS: any free port.
export IMAGE=$project JOB=$scratch/job TOKEN=$scratch/secrets/token MIN_WORKERS=2 METRICS=127.0.0.1:
compose+=(-p "$project" -f "$here/compose.yaml")
made=("$project")
plain=
clean_up() {
  kill "$plain" 2>/dev/null || true
  "${compose[@]}" down --volumes --timeout 5 >/dev/null 2>&1 || true
  docker image rm --force "${made[@]}" >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
trap clean_up EXIT

make_job "$JOB"
mkdir -m 700 "$scratch/secrets"
head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$TOKEN"
say "training plainly meanwhile, for comparison"
train_plainly "$JOB" "$scratch/plain"

if [ -z "${DEBIAN_IMAGE:-}" ]; then
  DEBIAN_IMAGE=debian:bookworm-slim
  if ! timeout 120 docker pull --quiet "$DEBIAN_IMAGE" >/dev/null 2>&1; then
    command -v debootstrap >/dev/null || skip "debian:bookworm-slim cannot be pulled, and there is no debootstrap to make it"
    say "debian:bookworm-slim cannot be pulled: making one with debootstrap"
    debootstrap --variant=minbase --include=ca-certificates bookworm "$scratch/debian" >"$scratch/debootstrap.log" 2>&1 ||
      skip "debootstrap: $(tail -1 "$scratch/debootstrap.log")"
    DEBIAN_IMAGE=$project-debian
    made+=("$DEBIAN_IMAGE")
    tar -C "$scratch/debian" -c . | docker import - "$DEBIAN_IMAGE" >/dev/null
    rm -rf "$scratch/debian"
  fi
fi
if [ -z "${RUST_IMAGE:-}" ]; then
  RUST_IMAGE=$project-toolchain
  made+=("$RUST_IMAGE")
  install -d "$scratch/toolchain"
  for program in grammaton grammaton-worker; do strip -o "$scratch/toolchain/$program" "$bin/$program"; done
  cat >"$scratch/toolchain/Dockerfile" <<TOOLCHAIN
FROM $DEBIAN_IMAGE
COPY grammaton grammaton-worker /programs/
RUN printf '#!/bin/sh\ninstall -D -t target/release /programs/*\n' >/usr/local/bin/cargo && chmod 755 /usr/local/bin/cargo
TOOLCHAIN
  DOCKER_BUILDKIT=1 "$builder" build --quiet -t "$RUST_IMAGE" "$scratch/toolchain" >/dev/null
fi
# If containers cannot reach other machines, uses the network of this machine.
docker run --rm --network host "$DEBIAN_IMAGE" apt-get update >/dev/null 2>&1 || skip "containers cannot reach Debian's packages"
say "building the image"
DOCKER_BUILDKIT=1 "$builder" build --quiet --network host -t "$IMAGE" -f "$here/Dockerfile" \
  --build-arg "RUST_IMAGE=$RUST_IMAGE" --build-arg "DEBIAN_IMAGE=$DEBIAN_IMAGE" "$root" >/dev/null
say "$(docker run --rm --read-only --cap-drop ALL "$IMAGE" grammaton --version), $(
  docker image inspect -f '{{.Size}}' "$IMAGE" | numfmt --to=si)B, as user $(docker run --rm "$IMAGE" id -u)"

container() { "${compose[@]}" ps -q coordinator; }
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
mapfile -t workers < <("${compose[@]}" ps -q worker)
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
for worker in $("${compose[@]}" ps -q worker); do
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
# LISTEN, PAGE: any free port.
export LISTEN=127.0.0.1: PAGE=127.0.0.1:
compose[-1]=$here/service.yaml
say "starting a service and 2 workers"
"${compose[@]}" up -d --no-build --scale worker=2 >/dev/null 2>"$scratch/up.log" || fail "up: $(tail -3 "$scratch/up.log")"
container() { "${compose[@]}" ps -q service; }
# The port changes when the container restarts.
service() { "$bin/grammaton" "$@" --coordinator "http://$(docker port "$(container)" 7600/tcp)" --token-file "$TOKEN"; }
answers() { service jobs >/dev/null 2>&1; }
within 60 answers || fail "the service does not answer: $(docker logs "$(container)" 2>&1 | tail -5)"
id=$(service submit "$job/job.toml") || fail "submit: $(docker logs "$(container)" 2>&1 | tail -5)"
told() { service logs "$id" >"$scratch/told" 2>/dev/null && [ "$(grep -c '^round ' "$scratch/told")" -ge "$1" ]; }
within 240 told 50 || fail "no 50 rounds within 240 s: $(docker logs "$(container)" 2>&1 | tail -5)"
say "job $id, round $(grep -c '^round ' "$scratch/told"): killing the service"
kill_container "$(container)"
within 60 restarted "$(container)" || fail "the service did not come back"
over() { told 0 && grep -qE '^(done|failed):' "$scratch/told"; }
within 400 over || fail "the job did not end: $(tail -3 "$scratch/told")"
resumed=$(grep '^resumed after round' "$scratch/told") || fail "the job was not resumed: $(tail -3 "$scratch/told")"
say "$resumed; $(tail -1 "$scratch/told")"
service fetch "$id" --out "$scratch/fetched" >/dev/null || fail "fetch"
same_result "$scratch/plain-short" "$scratch/fetched" 1
say "passed"
