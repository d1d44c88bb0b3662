"""Clusters and clients: the digest of one process, from workers of all launchers, some of them killed."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grammaton
import pytest
from grammaton import cluster as clusters
from grammaton.cluster import Cluster, Launcher, Processes, Slurm

from conftest import program

JOB: dict[str, Any] = {"grammar": "auto:colloc", "method": "vb", "max_rounds": 4, "shard_symbols": 512}


@pytest.fixture(scope="module", autouse=True)
def programs() -> Iterator[None]:
    """The programs that the launchers look for."""
    before = os.environ["PATH"]
    os.environ["PATH"] = os.path.dirname(program("grammaton")) + os.pathsep + before
    yield
    os.environ["PATH"] = before


@pytest.fixture(scope="module")
def alone(corpus: Path) -> str:
    """The digest of `JOB` in one process."""
    return grammaton.train(corpus, **JOB).result().parameters_sha256


def members(cluster: Cluster) -> int:
    """Number of workers that are connected."""
    return sum(member["state"] != "gone" for member in cluster.client.workers()["members"])


def until(holds: Callable[[], bool]) -> None:
    """Waits for an event, however long it takes."""
    while not holds():
        time.sleep(0.05)


def check(launcher: Launcher, corpus: Path, alone: str, kill: Callable[[Cluster], None], *, workers: int = 2) -> None:
    """Trains with a launcher's workers, one of which is killed on the way."""
    with Cluster(launcher, workers=workers, threads=1) as cluster:
        until(lambda: members(cluster) == workers)
        assert all(launcher.is_alive(worker) for worker in cluster._workers)
        job = cluster.client.submit(corpus, **JOB)
        for line in cluster.client.watch(job):
            if "round" in line["text"]:
                break
        kill(cluster)
        assert cluster.client.result(job).parameters_sha256 == alone
        assert cluster.client.workers()["losses"]["disconnected"] == 1


def test_processes(corpus: Path, alone: str) -> None:
    def kill(cluster: Cluster) -> None:
        cluster._workers[0].kill()

    check(Processes(), corpus, alone, kill)


def test_scale_and_adapt(corpus: Path) -> None:
    with Cluster(workers=2, threads=1) as cluster:
        until(lambda: members(cluster) == 2)
        cluster.scale(1)
        until(lambda: members(cluster) == 1)
        with pytest.raises(ValueError, match="bounds"):
            cluster.adapt(3, 2)
        cluster.adapt(1, 3, every=0.05, keep=2)
        first = cluster._workers[0]
        first.kill()
        # A worker that has ended is replaced; without a job there is one.
        until(lambda: first.poll() is not None and members(cluster) == 1 and first not in cluster._workers)
        job = cluster.client.submit(corpus, **{**JOB, "max_rounds": 100_000, "tolerance": 0})
        # The corpus has more than three shards.
        until(lambda: members(cluster) == 3)
        cluster.client.cancel(job)
        until(lambda: members(cluster) == 1)
        cluster.scale(2)
        until(lambda: members(cluster) == 2)
        assert cluster._adapting is None
        worker = cluster._workers[0]
    assert worker.poll() is not None and cluster._coordinator.poll() is not None


def test_a_scheduler_that_refuses_is_asked_again(corpus: Path, alone: str, caplog: pytest.LogCaptureFixture) -> None:
    class Refusing(Processes):
        refusals = 3

        def start(self, url: str, token: str, threads: int | None) -> Any:
            self.refusals -= 1
            if self.refusals >= 0:
                raise RuntimeError("the queue is full")
            return super().start(url, token, threads)

    with Cluster(Refusing(), threads=1) as cluster:
        cluster.adapt(0, 1, every=0.05)
        assert cluster.train(corpus, **JOB).parameters_sha256 == alone
    assert sum("the queue is full" in record.getMessage() for record in caplog.records) == 3


def test_a_job_without_workers_ends(corpus: Path) -> None:
    class Ending(Processes):
        def start(self, url: str, token: str, threads: int | None) -> subprocess.Popen[bytes]:
            return subprocess.Popen(["false"])

    with Cluster() as cluster, pytest.raises(RuntimeError, match="the job has no workers: none were asked for"):
        cluster.train(corpus, **JOB)
    with Cluster(Ending(), workers=2) as cluster:
        with pytest.raises(RuntimeError, match="or all have ended"):
            cluster.train(corpus, **JOB)
        [job] = cluster.client.jobs()
        assert cluster.client.wait(job["id"])["state"] == "cancelled"
        with pytest.raises(ValueError, match="workers must be 0 or more, found -1"):
            cluster.scale(-1)
    with pytest.raises(ValueError, match="threads must be 1 or more, found 0"):
        Cluster(threads=0)


def test_a_cluster_that_is_not_closed_ends_with_the_interpreter() -> None:
    code = """
        import os, grammaton
        cluster = grammaton.Cluster(workers=1, threads=1)
        cluster.adapt(1, 2)
        child = os.fork()
        if child == 0:
            raise SystemExit
        os.waitpid(child, 0)
        assert cluster.client.jobs() == []
        print(cluster.url, flush=True)
    """
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    with pytest.raises(ConnectionError):
        grammaton.Client(done.stdout.strip(), token="none").jobs()


def test_client(corpus: Path, tmp_path: Path, alone: str) -> None:
    with Cluster(workers=1) as cluster:
        client = cluster.client
        job = client.submit(corpus, **JOB, name="colloc", priority=20)
        info = client.wait(job)
        assert (info["name"], info["priority"], info["state"], info["parameters_sha256"]) == ("colloc", 20, "done", alone)
        assert [found["id"] for found in client.jobs()] == [job]
        lines = list(client.watch(job))
        assert [line["number"] for line in lines] == list(range(1, len(lines) + 1)) and client.logs(job) == lines
        assert client.fetch(job, tmp_path / "out").parameters_sha256 == alone
        with pytest.raises(ValueError, match="overwrite=True"):
            client.fetch(job, tmp_path / "out")
        again = client.submit(file=tmp_path / "out" / "job.toml", idempotency_key="one")
        assert client.submit(file=tmp_path / "out" / "job.toml", idempotency_key="one") == again
        assert client.result(again).parameters_sha256 == alone
        damaged = cluster._store / "work" / str(again) / "out" / "model" / "model.bin"
        damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
        with pytest.raises(ValueError, match="model/model.bin: damaged"):
            client.fetch(again, tmp_path / "damaged")
        assert not (tmp_path / "damaged" / "summary.json").exists()
        long = client.submit(corpus, "auto:unigram", max_rounds=100_000)
        assert client.cancel(long)["id"] == long
        assert client.wait(long)["state"] == "cancelled"
        assert client.delete(long)["id"] == long
        with pytest.raises(LookupError):
            client.job(long)
        with pytest.raises(ValueError, match="no terminal"):
            client.submit(["abc"], "1 1 S --> Word\nWord --> a", max_rounds=1)
        with pytest.raises(TypeError, match="not both"):
            client.submit(corpus, file="job.toml")
        with pytest.raises(PermissionError):
            grammaton.Client(cluster.url, token="wrong").jobs()
        url = cluster.url

        async def calls() -> None:
            other = grammaton.AsyncClient(url, token=cluster._token)
            jobs, workers = await asyncio.gather(other.jobs(), other.workers())
            assert len(jobs) >= 2 and len(workers["members"]) == 1
            found = await other.submit(corpus, **JOB)
            assert [line["number"] async for line in other.watch(found)][:2] == [1, 2]
            assert (await other.result(found)).parameters_sha256 == alone

        asyncio.run(calls())
    with pytest.raises(ConnectionError):
        grammaton.Client(url, token="none").jobs()
    with pytest.raises(ValueError, match="GRAMMATON_COORDINATOR"):
        grammaton.Client()


def test_slurm(corpus: Path, alone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for sbatch and scancel, which run the batch script here."""
    scripts = {
        "sbatch": '#!/bin/sh\necho "$@" >>DIR/calls\nfor last; do :; done\nsetsid sh -c "${last#--wrap=}" >/dev/null 2>&1 &\necho "$!;here"\n',
        "scancel": '#!/bin/sh\nkill "$1"\n',
        "squeue": '#!/bin/sh\nfor last; do :; done\nid=${last#--jobs=}\nkill -0 "$id" 2>/dev/null && echo "$id" || { echo "Invalid job id specified" >&2; exit 1; }\n',
    }
    for name, text in scripts.items():
        file = tmp_path / name
        file.write_text(text.replace("DIR", str(tmp_path)))
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def kill(cluster: Cluster) -> None:
        subprocess.run(["kill", "-9", cluster._workers[0]], check=True)

    def stop(cluster: Cluster) -> None:
        kill(cluster)
        cluster._workers.pop(0)  # scancel knows a job that has ended; kill does not

    check(Slurm(["--partition=short"], host="127.0.0.1"), corpus, alone, stop)
    with Cluster(Slurm(host="127.0.0.1"), workers=1, threads=1) as cluster:
        [first] = cluster._workers
        stop(cluster)
        until(lambda: not cluster.launcher.is_alive(first))
        cluster._workers.append(first)
        cluster.scale(1)
        [second] = cluster._workers
        assert second != first and cluster.launcher.is_alive(second)
    calls = (tmp_path / "calls").read_text()
    assert "--partition=short" in calls and "--cpus-per-task=1" in calls
    assert calls.count("grammaton worker --coordinator http://127.0.0.1:") == 4


def test_dask(corpus: Path, alone: str) -> None:
    distributed = pytest.importorskip("distributed")
    from grammaton.cluster import Dask

    with distributed.LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as dask, distributed.Client(dask) as client:

        def kill(cluster: Cluster) -> None:
            # The process of Dask, which starts it and its task again, and the worker that is its child.
            [at, *_] = [at for at, keys in client.processing().items() if keys]
            threads = Path(f"/proc/{pids[at]}/task").iterdir()
            workers = [int(pid) for thread in threads for pid in (thread / "children").read_text().split()]
            assert workers
            for pid in (pids[at], *workers):
                os.kill(pid, signal.SIGKILL)

        pids = client.run(os.getpid)

        check(Dask(client, host="127.0.0.1"), corpus, alone, kill, workers=4)


def test_ray(corpus: Path, alone: str) -> None:
    ray = pytest.importorskip("ray")
    from grammaton.cluster import Ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:

        def kill(cluster: Cluster) -> None:
            ray.cancel(cluster._workers.pop(0), force=True)

        check(Ray(host="127.0.0.1"), corpus, alone, kill)
    finally:
        ray.shutdown()


def test_programs_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match="nothing-like-it: not beside"):
        clusters.program("nothing-like-it")
