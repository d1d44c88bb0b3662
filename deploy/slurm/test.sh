#!/usr/bin/env bash
# Launches grammaton.sbatch on a real Slurm, with four nodes on this machine, with faults: a worker
# is killed, and the job is requeued, once from outside and once by itself before its time limit. Then service.sbatch: a job is submitted, and
# a worker killed in the middle of it; then `grammaton up slurm` and `srun grammaton run`, each with a killed worker. The results must equal a
# plain run's, bit for bit.
#
#   deploy/slurm/test.sh         as root, with slurm-wlm and munge. Exit code 77: skipped, with the reason.
#
# GRAMMATON_BIN: folder of programs to use instead of compiling them. PRINTED: folder for what `up` and `srun` print.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
rounds=500
requirement=slurm
source "$root/deploy/trial.sh"

[ "$(id -u)" = 0 ] || skip "Slurm's daemons need root here"
for program in munged slurmctld slurmd sbatch; do
  command -v "$program" >/dev/null || skip "no $program; apt-get install slurm-wlm munge"
done
find_programs

scratch=$(mktemp -d)
export SLURM_CONF=$scratch/slurm.conf PATH=$bin:$PATH
host=$(hostname -s)
plain=
no_jobs() { ! squeue --noheader --states=all --format=%T | grep -qvE 'COMPLETED|CANCELLED|FAILED|TIMEOUT'; }
stopped() { ! compgen -G "$scratch/run/*.pid" >/dev/null; }
# Jobs first: without the daemons they could not be ended.
clean_up() {
  kill "$plain" 2>/dev/null || true
  scancel --user=root >/dev/null 2>&1 && { within 30 no_jobs || true; }
  for file in "$scratch"/run/*.pid; do [ ! -f "$file" ] || kill "$(cat "$file")" 2>/dev/null || true; done
  within 20 stopped || true
  rm -rf "$scratch"
}
trap clean_up EXIT
mkdir -p "$scratch"/{state,log,run,spool}

# A free port for each daemon.
free_ports() {
  local port
  for port in $(shuf -i 20000-30000 -n 100); do
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || echo "$port"
  done
}
read -r -d '' controller_port n1 n2 n3 n4 _ <<<"$(free_ports)" || true
cat >"$SLURM_CONF" <<CONF
ClusterName=trial
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$scratch/run/munge.socket,cred_expire=10
CredType=cred/munge
SlurmctldPort=$controller_port
SlurmctldPidFile=$scratch/run/slurmctld.pid
SlurmdPidFile=$scratch/run/slurmd.%n.pid
SlurmdSpoolDir=$scratch/spool/%n
StateSaveLocation=$scratch/state
SlurmctldLogFile=$scratch/log/slurmctld.log
SlurmdLogFile=$scratch/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=5,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmctldTimeout=30
SlurmdTimeout=20
KillWait=5
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$n1 CPUs=1 State=UNKNOWN
NodeName=n2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$n2 CPUs=1 State=UNKNOWN
NodeName=n3 NodeHostname=$host NodeAddr=127.0.0.1 Port=$n3 CPUs=1 State=UNKNOWN
NodeName=n4 NodeHostname=$host NodeAddr=127.0.0.1 Port=$n4 CPUs=1 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
say "starting munged, slurmctld and four slurmd"
(umask 077 && head -c 1024 /dev/urandom >"$scratch/munge.key")
chmod 755 "$scratch" "$scratch/run"
munged --force --key-file "$scratch/munge.key" --socket "$scratch/run/munge.socket" --pid-file "$scratch/run/munged.pid" \
  --log-file "$scratch/log/munged.log" --seed-file "$scratch/state/munged.seed" || skip "munged does not start"
slurmctld -f "$SLURM_CONF"
for node in n1 n2 n3 n4; do slurmd -f "$SLURM_CONF" -N "$node"; done
idle() { [ "$(sinfo -h -N -t idle | wc -l)" = 4 ]; }
within 60 idle || fail "the nodes do not come up: $(tail -3 "$scratch"/log/*.log)"

make_job "$scratch/job"
say "training plainly meanwhile, for comparison"
train_plainly "$scratch/job" "$scratch/plain"

round() { { wc -l <"$scratch/out/metrics.jsonl" || echo 0; } 2>/dev/null; }
reached() { [ "$(round)" -ge "$1" ]; }
job_field() { scontrol show job "$id" | sed -n "s/.* \?$1=\([^ ]*\).*/\1/p"; }
over() { case $(job_field JobState) in COMPLETED | FAILED | CANCELLED | TIMEOUT | NODE_FAIL) true ;; *) false ;; esac; }
restarted() { [ "$(job_field Restarts)" = "$1" ] && [ "$(job_field JobState)" = RUNNING ]; }
tell_log() { tail -5 "$scratch/job.log"; }

"$root/deploy/certs.sh" "$scratch/certs" "$(hostname)" >/dev/null
export GRAMMATON_CERTS=$scratch/certs
id=$(cd "$scratch" && GRAMMATON_REQUEUE=1 sbatch --parsable --ntasks=4 --nodes=4 --cpus-per-task=1 --output="$scratch/job.log" \
  "$here/grammaton.sbatch" "$scratch/job/job.toml" "$scratch/out" --min-workers 2)
say "job $id: 4 tasks on 4 nodes, with mutual TLS"
within 240 reached 50 || fail "no 50 rounds within 240 s: $(tell_log)"
token=$scratch/out/.launch/slurm-$id.0.0/token
[ "$(stat -c %a "$token")" = 600 ] || fail "the token is readable for others"
! scontrol show job "$id" | grep -q "$(cat "$token")" || fail "scontrol show job tells the token"
! pgrep -af -- "$(cat "$token")" || fail "a command line tells the token"

say "round $(round): killing a worker"
kill -KILL "$(pgrep -f -- "^[^ ]*grammaton[- ]worker --coordinator .*$scratch/" | head -1)"
within 240 reached 120 || fail "no progress after a worker was killed"
[ "$(job_field JobState)" = RUNNING ] || fail "the job did not outlive its worker: $(tell_log)"

# The rounds after which it resumed.
went_on() { sed -n 's/^resumed after round \([0-9]*\) of checkpoint .*$/\1/p' "$scratch/job.log"; }
has_gone_on() { [ "$(went_on | wc -l)" = "$1" ]; }
comes_back() {
  within 120 restarted "$1" || fail "the job did not start again: $(tell_log)"
  within 60 has_gone_on "$1" || fail "it did not go on from a checkpoint: $(tell_log)"
  say "started again, resumed after round $(went_on | tail -1)"
}
say "round $(round): scontrol requeue"
scontrol requeue "$id"
comes_back 1
within 240 reached 250 || fail "no progress after it was requeued"
before=$(round)
[ "$before" -lt $((rounds * 9 / 10)) ] || fail "too fast: in round $before of $rounds already"
say "round $before: the signal that comes two minutes before the time limit"
scancel --batch --signal=USR1 "$id"
comes_back 2
within 300 over || fail "the job did not end: $(tell_log)"
[ "$(job_field JobState) $(job_field ExitCode)" = "COMPLETED 0:0" ] ||
  fail "the job is $(job_field JobState), exit code $(job_field ExitCode): $(tell_log)"
say "the job is $(job_field JobState), exit code $(job_field ExitCode)"
same_result "$scratch/plain" "$scratch/out" 2

unset GRAMMATON_CERTS
id=$(cd "$scratch" && sbatch --parsable --ntasks=3 --nodes=3 --cpus-per-task=1 --output="$scratch/job.log" \
  "$here/service.sbatch" "$scratch/store")
say "job $id: a service and 3 workers on 3 nodes"
listens() { [ -s "$scratch/store/address" ]; }
within 180 listens || fail "the service does not say where it is: $(tell_log)"
GRAMMATON_COORDINATOR=$(cat "$scratch/store/address") GRAMMATON_TOKEN=$(cat "$scratch/store/token")
export GRAMMATON_COORDINATOR GRAMMATON_TOKEN
submitted=$(grammaton submit "$scratch/job/job.toml") || fail "submit: $(tell_log)"
told() { grammaton logs "$submitted" >"$scratch/told" && [ "$(grep -c '^round ' "$scratch/told")" -ge "$1" ]; }
within 240 told 50 || fail "no 50 rounds: $(tail -3 "$scratch/told")"
say "submitted as job $submitted, round $(grep -c '^round ' "$scratch/told"): killing a worker"
kill -KILL "$(pgrep -f -- "^[^ ]*grammaton[- ]worker --coordinator .*$scratch/" | head -1)"
ended() { told 0 && grep -qE '^(done|failed):' "$scratch/told"; }
within 400 ended || fail "the job did not end: $(tail -3 "$scratch/told")"
say "$(tail -1 "$scratch/told")"
[ "$(job_field JobState)" = RUNNING ] || fail "the service did not outlive a worker: $(tell_log)"
grammaton fetch "$submitted" --out "$scratch/fetched" >/dev/null || fail "fetch"
same_result "$scratch/plain" "$scratch/fetched" 0
scancel --batch --signal=TERM "$id"
within 120 over || fail "the service does not end: $(tell_log)"
say "the service's job is $(job_field JobState)"

say "grammaton up slurm: 3 tasks on 3 nodes"
grammaton up slurm "$scratch/job/job.toml" -n 3 --out "$scratch/up" --sbatch=--nodes=3 >"$scratch/up.out" 2>"$scratch/up.log" &
up=$!
up_reached() { [ "$( (wc -l <"$scratch/up/metrics.jsonl") 2>/dev/null || echo 0)" -ge "$1" ]; }
within 180 up_reached 50 || fail "no 50 rounds: $(tail -5 "$scratch/up.log")"
say "killing a worker"
kill -KILL "$(pgrep -f -- "^[^ ]*grammaton[- ]worker --coordinator .*$scratch/up/" | head -1)"
wait "$up" || fail "up ended with exit code $?: $(tail -5 "$scratch/up.log")"
say "it ended with exit code 0 and printed $(basename "$(cat "$scratch/up.out")")"
same_result "$scratch/plain" "$scratch/up" 0

say "srun grammaton run: 3 tasks on 3 nodes"
cd "$scratch" || exit
srun --ntasks=3 --nodes=3 grammaton run job/job.toml --out srun >"$scratch/srun.out" 2>"$scratch/srun.log" &
srun=$!
srun_reached() { [ "$( (wc -l <"$scratch/srun/metrics.jsonl") 2>/dev/null || echo 0)" -ge "$1" ]; }
within 180 srun_reached 50 || fail "no 50 rounds: $(tail -5 "$scratch/srun.log")"
say "killing a worker"
kill -KILL "$(pgrep -f -- "^[^ ]*grammaton[- ]worker --coordinator .*srun/" | head -1)"
status=0
wait "$srun" || status=$?
[ "$status" = 137 ] || fail "srun ended with exit code $status, not that of the killed task, 137: $(tail -5 "$scratch/srun.log")"
say "it ended with exit code 137, that of the killed task, and printed $(basename "$(cat "$scratch/srun.out")")"
same_result "$scratch/plain" "$scratch/srun" 0
if [ -n "${PRINTED:-}" ]; then cp "$scratch"/{up,srun}.{out,log} "$PRINTED"; fi
say "passed"
