"""A fleet of one's own: a coordinator here, and workers where there is a scheduler already.

`Cluster` starts `grammaton serve` on this machine and asks a *launcher* for workers: `Processes` of this machine, `Slurm` jobs, tasks in a `Dask` or
`Ray` cluster. `Cluster.adapt` keeps their number to what the jobs can use. Workers may come, go and be killed at any time; the results stay the same bits.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import logging
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from .client import Client, StrPath
from .corpora import Corpus
from .result import Result


class Launcher(Protocol):
    """Starts and stops workers. A worker is one process `grammaton worker`."""

    #: Address of this machine on which workers reach the coordinator.
    host: str

    def start(self, url: str, token: str, threads: int | None) -> Any:
        """Asks for a worker, which computes with `threads` threads, and returns a handle of it."""
        ...

    def stop(self, worker: Any) -> None:
        """Ends a worker, or takes back the request for it."""
        ...

    def is_alive(self, worker: Any) -> bool:
        """Whether a worker runs, or may still start to run."""
        ...


#: Seconds between two looks at a job at most.
_LONGEST_PAUSE = 2.0
_LOG = logging.getLogger("grammaton.cluster")
#: Clusters of this process, which end with the interpreter at the latest.
_CLUSTERS: weakref.WeakSet[Cluster] = weakref.WeakSet()


class Cluster:
    """A coordinator and its workers, which end with the block, with `close`, or with the interpreter.

    >>> with Cluster(workers=2, threads=1) as cluster:
    ...     result = cluster.train(["ab ba", "ba ab", "ab"], "auto:unigram", max_rounds=3)
    >>> result.summary["rounds"]
    3
    """

    def __init__(self, launcher: Launcher | None = None, *, workers: int = 0, threads: int | None = None, dir: StrPath | None = None) -> None:
        """Starts the coordinator, and asks for `workers` with `threads` each. `dir` keeps the jobs; by default they end with the cluster."""
        if threads is not None and threads < 1:
            raise ValueError(f"threads must be 1 or more, found {threads}")
        self.launcher = launcher or Processes()
        self.threads = threads
        self._temporary = tempfile.mkdtemp(prefix="grammaton-cluster-")
        self._store = Path(dir or self._temporary) / "jobs"
        self._workers: list[Any] = []
        self._pid = os.getpid()
        self._changing = threading.Lock()
        self._adapting: threading.Event | None = None
        self._token = secrets.token_hex(16)
        address = Path(self._temporary) / "address"
        log = open(Path(self._temporary) / "coordinator.log", "wb")  # noqa: SIM115
        command = [program("grammaton"), "serve", "--store", str(self._store), "--listen", f"{_address(self.launcher.host)}:0"]
        command += ["--address-file", str(address), "--quiet", "--no-workers-grace", "31536000"]
        self._coordinator = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, "GRAMMATON_TOKEN": self._token}, start_new_session=True
        )
        log.close()
        _CLUSTERS.add(self)
        try:
            while not address.exists():
                if self._coordinator.poll() is not None:
                    raise RuntimeError("the coordinator has ended: " + Path(log.name).read_text(encoding="utf-8", errors="replace").strip())
                time.sleep(0.02)
            port = address.read_text(encoding="utf-8").strip().rsplit(":", 1)[1]
            #: The URL for workers.
            self.url = f"http://{self.launcher.host}:{port}"
            #: A client of the coordinator.
            self.client = Client(self.url, token=self._token)
            self.scale(workers)
        except BaseException:
            self.close()
            raise

    def scale(self, workers: int) -> None:
        """Asks for as many workers as are missing, or ends those that are too many, the last ones first. Ends adapting."""
        if workers < 0:
            raise ValueError(f"workers must be 0 or more, found {workers}")
        self._end_adapting()
        self._set_number(workers)

    def adapt(self, minimum: int, maximum: int, *, every: float = 2.0, keep: float = 10.0) -> None:
        """Keeps from now on as many workers as the jobs can use, within the bounds, until `scale` or `close`.

        Every so many seconds it replaces workers that have ended, and asks for one worker for each job, or so many that all tasks of the present stage
        are computed at a time if that is more. Without jobs there are `minimum` workers. A worker without work is kept for `keep` seconds, as the next
        stage may need it. What a scheduler refuses is logged, and tried again.

        >>> with Cluster(threads=1) as cluster:
        ...     cluster.adapt(0, 2, every=0.1)
        ...     result = cluster.train(["ab ba", "ba ab", "ab"], "auto:unigram", max_rounds=3)
        >>> result.summary["rounds"]
        3
        """
        if not 0 <= minimum <= maximum or maximum < 1:
            raise ValueError(f"the bounds must be 0 <= minimum <= maximum and 1 <= maximum, found {minimum} and {maximum}")
        self._end_adapting()
        self._adapting = stop = threading.Event()
        wanted: collections.deque[int] = collections.deque(maxlen=max(round(keep / every), 1))
        threading.Thread(target=self._adapt, args=(minimum, maximum, every, wanted, stop), name="grammaton-adapt", daemon=True).start()

    def _adapt(self, minimum: int, maximum: int, every: float, wanted: collections.deque[int], stop: threading.Event) -> None:
        while True:
            try:
                wanted.append(self._useful())
                self._set_number(min(max(*wanted, minimum), maximum), stop)
            except Exception as error:
                if not stop.is_set():
                    _LOG.warning("the number of workers could not be adapted: %s", error)
            if stop.wait(every):
                return

    def _useful(self) -> int:
        """The number of workers that the jobs can use."""
        busy = sum(job["state"] in ("queued", "running", "pausing") for job in self.client.jobs())
        fleet = self.client.workers()
        tasks = fleet["free"] + fleet["assigned"] + fleet["done"] if busy else 0
        slots = max((member["slots"] for member in fleet["members"]), default=self.threads or 1)
        return max(busy, -(-int(tasks) // max(int(slots), 1)))

    def _set_number(self, workers: int, stop: threading.Event | None = None) -> None:
        """Replaces workers that have ended, and starts or stops others, unless `stop` is set."""
        with self._changing:
            if stop is not None and stop.is_set():
                return
            self._workers = [worker for worker in self._workers if self.launcher.is_alive(worker)]
            while len(self._workers) < workers:
                self._workers.append(self.launcher.start(self.url, self._token, self.threads))
            while len(self._workers) > workers:
                self.launcher.stop(self._workers.pop())

    def _end_adapting(self) -> None:
        if self._adapting is not None:
            self._adapting.set()
            self._adapting = None

    def train(self, corpus: Corpus, grammar: StrPath | None = None, method: str | None = None, *, dir: StrPath | None = None, **keys: Any) -> Result:
        """Trains on the workers as `grammaton.train` does here, and returns the result. Ctrl-C cancels the job.

        `RuntimeError` if the job fails, or if it has no workers: none were asked for, or all have ended, and the cluster does not adapt.
        """
        job = self.client.submit(corpus, grammar, method, **keys)
        pause = 0.05
        try:
            while self.client.job(job)["state"] in ("queued", "running", "pausing"):
                if self._adapting is None and not self._has_workers():
                    raise RuntimeError("the job has no workers: none were asked for, or all have ended; call scale or adapt")
                time.sleep(pause)
                pause = min(1.2 * pause, _LONGEST_PAUSE)
            return self.client.result(job, dir)
        except BaseException:
            with contextlib.suppress(Exception):
                self.client.cancel(job)
            raise

    def _has_workers(self) -> bool:
        with self._changing:
            return any(self.launcher.is_alive(worker) for worker in self._workers)

    def close(self) -> None:
        """Ends workers and coordinator. Does nothing in a process that was forked from the one that started them."""
        if os.getpid() != self._pid:
            return
        self._end_adapting()
        with self._changing:
            for worker in self._workers:
                with contextlib.suppress(Exception):
                    self.launcher.stop(worker)
            self._workers = []
        _end(self._coordinator)
        shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


@atexit.register
def _close_all() -> None:
    for cluster in list(_CLUSTERS):
        cluster.close()


class Processes:
    """Workers as processes of this machine."""

    def __init__(self) -> None:
        self.host = "127.0.0.1"

    def start(self, url: str, token: str, threads: int | None) -> subprocess.Popen[bytes]:
        """Starts a process."""
        return start_worker(url, token, threads)

    def stop(self, worker: subprocess.Popen[bytes]) -> None:
        """Ends the process, after the tasks that it has begun."""
        _end(worker)

    def is_alive(self, worker: subprocess.Popen[bytes]) -> bool:
        """Whether the process runs."""
        return worker.poll() is None


class Slurm:
    """Workers as batch jobs of Slurm; `options` are those of sbatch, as in `["--partition=short", "--time=60"]`."""

    def __init__(self, options: list[str] | None = None, *, host: str | None = None) -> None:
        self.options = options or []
        self.host = host or socket.gethostname()

    def start(self, url: str, token: str, threads: int | None) -> str:
        """Submits a batch job, and returns its id. The token reaches it in its environment, not in its command line."""
        cores = [f"--cpus-per-task={threads}"] if threads else []
        command = ["sbatch", "--parsable", "--job-name=grammaton-worker", "--output=/dev/null", "--export=ALL", *cores, *self.options]
        command.append("--wrap=exec " + " ".join(worker_command(url, threads)))
        return _slurm(command, {**os.environ, "GRAMMATON_TOKEN": token}).split(";")[0]

    def stop(self, worker: str) -> None:
        """Cancels the batch job."""
        _slurm(["scancel", worker])

    def is_alive(self, worker: str) -> bool:
        """Whether the batch job is pending or running."""
        # Without --states, squeue shows jobs that have not ended; of a job that it has forgotten it reports an error.
        found = subprocess.run(["squeue", "--noheader", "--format=%i", f"--jobs={worker}"], capture_output=True, text=True)
        if found.returncode != 0 and "Invalid job id" not in found.stderr:
            raise RuntimeError(f"squeue: {found.stderr.strip()}")
        return bool(found.stdout.strip())


def _slurm(command: list[str], env: dict[str, str] | None = None) -> str:
    """What a command of Slurm prints. `RuntimeError` with its message if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


class Dask:
    """Workers as tasks of a Dask cluster. If the Dask worker of a task dies, Dask starts the task elsewhere."""

    def __init__(self, client: Any, *, host: str | None = None) -> None:
        self.client = client
        self.host = host or _host_towards(client.scheduler.address)
        self._n = 0

    def start(self, url: str, token: str, threads: int | None) -> Any:
        """Submits a task, and returns its future and the event that ends it."""
        from distributed import Event

        self._n += 1
        name = f"grammaton-worker-{os.getpid()}-{id(self)}-{self._n}"
        stop = Event(name, client=self.client)
        future = self.client.submit(_work_in_dask, url, token, threads, name, key=name, pure=False, retries=1000)
        return future, stop

    def stop(self, worker: Any) -> None:
        """Ends the task."""
        future, stop = worker
        stop.set()
        future.cancel()

    def is_alive(self, worker: Any) -> bool:
        """Whether the task is pending or running."""
        return str(worker[0].status) == "pending"


class Ray:
    """Workers as tasks of a Ray cluster, to which this process is connected (`ray.init`). Ray starts tasks of lost nodes elsewhere."""

    def __init__(self, *, host: str | None = None) -> None:
        import ray

        self.host = host or str(ray.util.get_node_ip_address())

    def start(self, url: str, token: str, threads: int | None) -> Any:
        """Starts a task."""
        import ray

        task = ray.remote(num_cpus=threads or 1, max_retries=-1)(_work)
        return task.remote(url, token, threads)

    def stop(self, worker: Any) -> None:
        """Cancels the task."""
        import ray

        ray.cancel(worker, force=False)

    def is_alive(self, worker: Any) -> bool:
        """Whether the task is pending or running."""
        import ray

        return not ray.wait([worker], timeout=0)[0]


def program(name: str) -> str:
    """A program of this package: beside the interpreter, else on the path. `FileNotFoundError` if it is not there."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"{name}: not beside {sys.executable} and not on PATH; install the wheel, which brings it")
    return found


def worker_command(url: str, threads: int | None) -> list[str]:
    """The command of a worker."""
    # The token proves both sides; the network is that of the cluster, so the connection is not encrypted.
    # One whose task was killed computes on, and ends soon after the coordinator.
    command = [program("grammaton"), "worker", "--coordinator", url, "--insecure", "--give-up-after", "30"]
    return command if threads is None else [*command, "--threads", str(threads)]


def start_worker(url: str, token: str, threads: int | None) -> subprocess.Popen[bytes]:
    """Starts a worker on this machine, in a session of its own, so that Ctrl-C does not end it."""
    return subprocess.Popen(
        worker_command(url, threads),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "GRAMMATON_TOKEN": token},
        start_new_session=True,
    )


def _work(url: str, token: str, threads: int | None) -> None:
    """Runs a worker until it ends, or this task is cancelled."""
    worker = start_worker(url, token, threads)
    try:
        while worker.poll() is None:
            time.sleep(0.2)
    finally:
        _end(worker)


def _work_in_dask(url: str, token: str, threads: int | None, stop: str) -> None:
    """Runs a worker until it ends, or the event `stop` is set."""
    from distributed import Event, secede, worker_client

    worker = start_worker(url, token, threads)
    # Leaves the place in Dask's pool of threads to others.
    secede()
    try:
        with worker_client(separate_thread=False) as client:
            event = Event(stop, client=client)
            while worker.poll() is None and not event.wait(timeout=1):
                pass
    finally:
        _end(worker)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process: by SIGTERM, and if it does not end within ten seconds, by SIGKILL."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _host_towards(address: str) -> str:
    """The address of this machine that a host sees."""
    host = address.split("://")[-1].rsplit(":", 1)[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))  # sends nothing
        return str(probe.getsockname()[0])


def _address(host: str) -> str:
    """The address to listen on: loopback for loopback, else all."""
    return host if host.startswith("127.") else "0.0.0.0"
