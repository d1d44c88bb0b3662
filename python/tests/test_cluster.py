"""Clusters and clients: the digest of one process, from workers of all launchers, some of them killed."""

import asyncio
import os
import signal
import stat
import subprocess
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
    os.environ["PATH"] = os.path.dirname(program("grammaton-worker")) + os.pathsep + before
    yield
    os.environ["PATH"] = before


@pytest.fixture(scope="module")
def alone(corpus: Path) -> str:
    """The digest of `JOB` in one process."""
    return grammaton.train(corpus, **JOB).result().parameters_sha256


def members(cluster: Cluster) -> int:
    return len(cluster.client.workers()["members"])


def until(holds: Callable[[], bool]) -> None:
    """Waits for an event, however long it takes."""
    while not holds():
        time.sleep(0.05)


def check(launcher: Launcher, corpus: Path, alone: str, kill: Callable[[Cluster], None]) -> None:
    """Trains with a launcher's workers, one of which is killed on the way."""
    with Cluster(launcher, workers=2, threads=1) as cluster:
        until(lambda: members(cluster) == 2)
        job = cluster.client.submit(corpus, **JOB)
        for line in cluster.client.watch(job):
            if "round" in line["text"]:
                break
        kill(cluster)
        assert cluster.client.result(job).parameters_sha256 == alone


def test_processes(corpus: Path, alone: str) -> None:
    def kill(cluster: Cluster) -> None:
        cluster._workers[0].kill()

    check(Processes(), corpus, alone, kill)


def test_scale_and_adapt() -> None:
    with Cluster(workers=2, threads=1) as cluster:
        until(lambda: members(cluster) == 2)
        cluster.scale(1)
        until(lambda: members(cluster) == 1)
        assert cluster.adapt(0, 4) == 0
        job = cluster.client.submit(["ab ba", "ab"] * 10, "auto:unigram", max_rounds=2)
        assert cluster.adapt(0, 4) == 1
        assert cluster.client.wait(job)["state"] == "done"
        worker = cluster._workers[0]
    assert worker.poll() is not None and cluster._coordinator.poll() is not None


def test_client(corpus: Path, tmp_path: Path, alone: str) -> None:
    with Cluster(workers=1) as cluster:
        client = cluster.client
        job = client.submit(corpus, **JOB, name="colloc", priority=20)
        info = client.wait(job)
        assert (info["name"], info["priority"], info["state"], info["parameters_sha256"]) == ("colloc", 20, "done", alone)
        assert [found["id"] for found in client.jobs()] == [job]
        lines = list(client.watch(job))
        assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
        assert client.fetch(job, tmp_path / "out").parameters_sha256 == alone
        with pytest.raises(ValueError, match="overwrite=True"):
            client.fetch(job, tmp_path / "out")
        again = client.submit(file=tmp_path / "out" / "job.toml", idempotency_key="one")
        assert client.submit(file=tmp_path / "out" / "job.toml", idempotency_key="one") == again
        assert client.result(again).parameters_sha256 == alone
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
    calls = (tmp_path / "calls").read_text()
    assert "--partition=short" in calls and "--cpus-per-task=1" in calls
    assert calls.count("grammaton-worker --coordinator http://127.0.0.1:") == 2


def test_dask(corpus: Path, alone: str) -> None:
    distributed = pytest.importorskip("distributed")
    from grammaton.cluster import Dask

    with distributed.LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as dask, distributed.Client(dask) as client:

        def kill(cluster: Cluster) -> None:
            # Dask starts the process and its task again.
            [at, *_] = [at for at, keys in client.processing().items() if keys]
            os.kill(pids[at], signal.SIGKILL)

        pids = client.run(os.getpid)

        check(Dask(client, host="127.0.0.1"), corpus, alone, kill)


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
