"""Workers as batch jobs of a real Slurm, with its daemons on this machine. Skipped where they are not installed, or the user is not root.

With a stand-in for the commands of Slurm, the same is in `test_cluster.py`.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import grammaton
import pytest
from grammaton.cluster import Cluster, Slurm

from conftest import program
from test_cluster import JOB, members, until

N_NODES = 3
CONF = """\
ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/slurmd.%n.pid
SlurmdSpoolDir={dir}/spool.%n
StateSaveLocation={dir}/state
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
KillWait=5
SlurmdParameters=config_overrides
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Slurm of `N_NODES` nodes with a core each, and the folder of its files."""
    lacking = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None]
    if lacking or os.geteuid() != 0:
        reason = f"no {lacking[0]}; apt-get install slurm-wlm munge" if lacking else "the daemons of Slurm need root here"
        if "slurm" in os.environ.get("GRAMMATON_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    monkeypatch.setenv("PATH", f"{Path(program('grammaton')).parent}:{os.environ['PATH']}:/usr/sbin:/sbin")
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(N_NODES + 1)]
    ports = [found.getsockname()[1] for found in sockets]
    for found in sockets:
        found.close()
    host = socket.gethostname().split(".")[0]
    text = CONF.format(host=host, dir=tmp_path, ports=ports)
    for at in range(1, N_NODES + 1):
        text += f"NodeName=n{at} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[at]} CPUs=1\n"
    (tmp_path / "slurm.conf").write_text(text + "PartitionName=short Nodes=ALL Default=YES State=UP\n")
    (tmp_path / "state").mkdir()
    (tmp_path / "munge.key").write_bytes(os.urandom(1024))
    (tmp_path / "munge.key").chmod(0o600)
    daemons = [
        ["munged", "--force", *(f"--{what}={tmp_path}/munge.{end}" for what, end in MUNGE.items())],
        ["slurmctld", "-f", str(tmp_path / "slurm.conf")],
        *(["slurmd", "-f", str(tmp_path / "slurm.conf"), "-N", f"n{at}"] for at in range(1, N_NODES + 1)),
    ]
    try:
        for daemon in daemons:
            subprocess.run(daemon, check=True, stdin=subprocess.DEVNULL, capture_output=True)
        until(lambda: printed("sinfo", "--noheader", "--Node", "--states=idle").count("\n") == N_NODES)
        yield tmp_path
    finally:
        subprocess.run(["scancel", "--user=root"], capture_output=True)
        pids = [file for file in tmp_path.glob("*.pid") if file.exists()]
        # The controller first, and munged last, as all need it.
        for file in sorted(pids, key=lambda file: ("munge" in file.name, "slurmd." in file.name)):
            os.kill(int(file.read_text()), signal.SIGTERM)
            until(lambda file=file: not file.exists())  # type: ignore[misc]


MUNGE = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}


def printed(*command: str) -> str:
    """What a command of Slurm prints."""
    return subprocess.run(command, capture_output=True, text=True).stdout


def pid_of(job: str) -> int:
    """The process of a batch job's worker on this machine."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (process / "environ").read_bytes().split(b"\0")
            if f"SLURM_JOB_ID={job}".encode() in environment and (process / "cmdline").read_bytes().split(b"\0")[1:2] == [b"worker"]:
                return int(process.name)
    raise AssertionError(f"batch job {job} has no worker here")


def test_batch_jobs_are_workers(slurm: Path, corpus: Path) -> None:
    # Long enough that it is not over when a worker is lost.
    job_keys = {**JOB, "max_rounds": 200, "tolerance": 0}
    alone = grammaton.train(corpus, **job_keys).result().parameters_sha256
    launcher = Slurm(["--partition=short"], host="127.0.0.1")
    with Cluster(launcher, workers=N_NODES, threads=1) as cluster:
        until(lambda: members(cluster) == N_NODES)
        assert len(printed("squeue", "--noheader", "--states=running").splitlines()) == N_NODES
        job = cluster.client.submit(corpus, **job_keys)
        for line in cluster.client.watch(job):
            if "round" in line["text"]:
                break
        # One is cancelled, which ends it after its task, and one is lost in the middle of a task.
        cancelled, killed, _ = cluster._workers
        printed("scancel", cancelled)
        os.kill(pid_of(killed), signal.SIGKILL)
        assert cluster.client.job(job)["state"] == "running"
        assert cluster.client.result(job).parameters_sha256 == alone
        until(lambda: not launcher.is_alive(cancelled) and not launcher.is_alive(killed))
        assert members(cluster) == 1 and cluster.client.workers()["losses"]["disconnected"] == 1
        # Those that have ended are replaced by as many as the job can use.
        cluster.adapt(1, N_NODES, every=0.2)
        assert cluster.train(corpus, **job_keys).parameters_sha256 == alone
        assert not {cancelled, killed} & set(cluster._workers)
    until(lambda: not printed("squeue", "--noheader").strip())
    with pytest.raises(RuntimeError, match="sbatch: .*partition"):
        Slurm(["--partition=none"], host="127.0.0.1").start("http://127.0.0.1:1", "token", 1)
