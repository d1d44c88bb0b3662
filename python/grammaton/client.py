"""A service of many users, from Python: `Client`, and `AsyncClient` whose calls are awaited."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from . import _lib
from .corpora import Corpus
from .result import Result
from .run import Folder, job_keys

StrPath = str | os.PathLike[str]
#: A job or a fleet, with the fields that `grammaton jobs --json` and `grammaton workers --json` print.
Info = dict[str, Any]


class Client:
    """A service at an address, as `grammaton serve` has one.

    `url` is by default the variable `GRAMMATON_COORDINATOR`; `token` is text, `token_file` its file, by default the variable `GRAMMATON_TOKEN`; `ca`,
    `cert` and `key` are files (PEM). Calls raise `ConnectionError` if there is no answer, `PermissionError` for a wrong token, `LookupError` for an unknown
    job, `RuntimeError` if the state of the job does not allow the call, and `ValueError` for a bad job.

    >>> from grammaton import Cluster
    >>> with Cluster(workers=1, threads=1) as cluster:  # its client is one of these
    ...     job = cluster.client.submit(["ab ba", "ba ab", "ab"], "auto:unigram", max_rounds=3)
    ...     numbers = [line["number"] for line in cluster.client.watch(job)]
    ...     state = cluster.client.job(job)["state"]
    >>> numbers[:3], state
    ([1, 2, 3], 'done')
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        token_file: StrPath | None = None,
        ca: StrPath | None = None,
        cert: StrPath | None = None,
        key: StrPath | None = None,
    ) -> None:
        url = url or os.environ.get("GRAMMATON_COORDINATOR")
        if not url:
            raise ValueError("no service given; give its url, or set GRAMMATON_COORDINATOR")
        self._client = _lib.Client(url, token=token, token_file=token_file, ca=ca, cert=cert, key=key)
        self.url = url

    def submit(
        self,
        corpus: Corpus | None = None,
        grammar: StrPath | None = None,
        method: str | None = None,
        *,
        file: StrPath | None = None,
        name: str | None = None,
        priority: int | None = None,
        max_workers: int | None = None,
        idempotency_key: str | None = None,
        **keys: Any,
    ) -> int:
        """Submits a job, with its files, and returns its id. The job is given as to `grammaton.train`, or as a job `file`."""
        wishes: Any = {"name": name, "priority": priority, "max_workers": max_workers, "idempotency_key": idempotency_key}
        if file is not None:
            if corpus is not None or grammar is not None or method is not None or keys:
                raise TypeError("give a job file or its keys, not both")
            return int(_info(self._client.submit(file, **wishes))["id"])
        if corpus is None:
            raise TypeError("give a corpus or a job file")
        with tempfile.TemporaryDirectory(prefix="grammaton-") as folder:
            found = job_keys(corpus, grammar, {"method": method, **keys}, Path(folder))
            job = Path(folder) / "job.toml"
            job.write_text(_lib.job_file(found), encoding="utf-8")
            wishes["name"] = name or "python"
            return int(_info(self._client.submit(job, **wishes))["id"])

    def jobs(self) -> list[Info]:
        """All jobs that the token may see."""
        found: list[Info] = json.loads(self._client.jobs())
        return found

    def job(self, id: int) -> Info:
        """A job: its state, progress, error and digest."""
        return _info(self._client.job(id))

    def logs(self, id: int) -> list[Info]:
        """The lines of a job's log so far, as of `watch`."""
        found: list[Info] = json.loads(self._client.logs(id))
        return found

    def watch(self, id: int) -> Iterator[Info]:
        """The lines of a job's log, with `number`, `millis` and `text`, as they come, until the job ends; also if the service restarts meanwhile."""
        lines = self._client.watch(id)
        while (line := lines.next()) is not None:
            yield json.loads(line)

    def wait(self, id: int) -> Info:
        """Waits for the end of a job. `RuntimeError` if it failed."""
        for _ in self.watch(id):
            pass
        found = self.job(id)
        if found["state"] == "failed":
            raise RuntimeError(found["error"])
        return found

    def result(self, id: int, dir: StrPath | None = None, *, overwrite: bool = False) -> Result:
        """Waits for the end of a job and downloads its results, to a temporary folder unless `dir` names one."""
        self.wait(id)
        return self.fetch(id, dir, overwrite=overwrite)

    def fetch(self, id: int, dir: StrPath | None = None, *, overwrite: bool = False) -> Result:
        """Downloads the results of a job that is done."""
        folder = Folder(dir)
        self._client.fetch(id, folder.path, overwrite)
        return Result(folder.path, _keep=folder)

    def cancel(self, id: int) -> Info:
        """Stops a job; its checkpoint stays."""
        return _info(self._client.cancel(id))

    def resume(self, id: int) -> Info:
        """Lets a job that failed or was cancelled go on from its newest checkpoint."""
        return _info(self._client.resume(id))

    def delete(self, id: int) -> Info:
        """Deletes a job that has ended, with its results."""
        return _info(self._client.delete(id))

    def workers(self) -> Info:
        """The fleet: its members and accounts."""
        return _info(self._client.workers())


class AsyncClient:
    """The same service, with calls that are awaited; each waits in a thread. Takes the arguments of `Client`."""

    def __init__(self, url: str | None = None, **credentials: Any) -> None:
        self.client = Client(url, **credentials)

    async def submit(self, *arguments: Any, **keys: Any) -> int:
        """As `Client.submit`."""
        return await asyncio.to_thread(self.client.submit, *arguments, **keys)

    async def jobs(self) -> list[Info]:
        """As `Client.jobs`."""
        return await asyncio.to_thread(self.client.jobs)

    async def job(self, id: int) -> Info:
        """As `Client.job`."""
        return await asyncio.to_thread(self.client.job, id)

    async def logs(self, id: int) -> list[Info]:
        """As `Client.logs`."""
        return await asyncio.to_thread(self.client.logs, id)

    async def watch(self, id: int) -> AsyncIterator[Info]:
        """As `Client.watch`, for `async for`."""
        lines = self.client.watch(id)
        while (line := await asyncio.to_thread(next, lines, None)) is not None:
            yield line

    async def wait(self, id: int) -> Info:
        """As `Client.wait`."""
        return await asyncio.to_thread(self.client.wait, id)

    async def result(self, id: int, dir: StrPath | None = None, *, overwrite: bool = False) -> Result:
        """As `Client.result`."""
        return await asyncio.to_thread(self.client.result, id, dir, overwrite=overwrite)

    async def fetch(self, id: int, dir: StrPath | None = None, *, overwrite: bool = False) -> Result:
        """As `Client.fetch`."""
        return await asyncio.to_thread(self.client.fetch, id, dir, overwrite=overwrite)

    async def cancel(self, id: int) -> Info:
        """As `Client.cancel`."""
        return await asyncio.to_thread(self.client.cancel, id)

    async def resume(self, id: int) -> Info:
        """As `Client.resume`."""
        return await asyncio.to_thread(self.client.resume, id)

    async def delete(self, id: int) -> Info:
        """As `Client.delete`."""
        return await asyncio.to_thread(self.client.delete, id)

    async def workers(self) -> Info:
        """As `Client.workers`."""
        return await asyncio.to_thread(self.client.workers)


def _info(text: str) -> Info:
    found: Info = json.loads(text)
    return found
