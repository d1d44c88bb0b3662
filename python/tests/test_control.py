"""Control of runs: pauses, stops, signals, threads, processes, callbacks. Time decides nothing: every wait is for an event."""

import contextlib
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import grammaton
import pytest

JOB: dict[str, Any] = {"grammar": "auto:unigram", "method": "vb", "max_rounds": 12, "workers": 1}
#: More rounds than any test waits for.
LONG: dict[str, Any] = {**JOB, "max_rounds": 100_000, "tolerance": None}


@pytest.fixture(scope="module")
def undisturbed(corpus: Path) -> str:
    """The digest of `JOB`."""
    return grammaton.train(corpus, **JOB).result().parameters_sha256


def test_pause_and_resume(corpus: Path, undisturbed: str) -> None:
    run = grammaton.train(corpus, **JOB)
    for round in run:
        if round["round"] == 1:
            run.pause()
    assert run.state == "paused"
    before = run.metrics
    assert len(before) < 12
    with pytest.raises(RuntimeError, match=r"the run is paused; call resume\(\) first"):
        run.result()
    run.resume()
    seen = [round["round"] for round in run]
    assert seen == list(range(len(before) + 1, 13))
    assert run.result().parameters_sha256 == undisturbed


def test_a_paused_run_can_be_stopped(corpus: Path) -> None:
    run = grammaton.train(corpus, **LONG)
    run.pause()
    list(run)
    run.stop()
    assert run.state == "stopped"


def test_stop_and_resume(corpus: Path, tmp_path: Path, undisturbed: str) -> None:
    run = grammaton.train(corpus, **JOB, dir=tmp_path)
    next(iter(run))
    run.stop()
    assert run.state == "stopped"
    with pytest.raises(grammaton.Stopped, match=r"stopped after round \d+; resume with resume\(\)"):
        run.result()
    assert any((tmp_path / "checkpoints").iterdir())
    run.resume()
    assert run.result().parameters_sha256 == undisturbed
    run.stop()
    assert run.state == "finished"


def test_another_run_goes_on_from_the_checkpoint(corpus: Path, tmp_path: Path, undisturbed: str) -> None:
    with grammaton.train(corpus, **JOB, dir=tmp_path) as run:
        next(iter(run))
    assert grammaton.train(corpus, **JOB, dir=tmp_path, resume=True).result().parameters_sha256 == undisturbed


def python(code: str, *arguments: object, **more: Any) -> subprocess.Popen[str]:
    """Another interpreter that runs `code`."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, preexec_fn=hear_interrupts, **more)


def hear_interrupts() -> None:
    """Restores the default action of SIGINT, which background jobs of a shell inherit as ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


BEGUN = """
    import sys, threading, grammaton
    run = grammaton.train(sys.argv[1], "auto:unigram", method="vb", max_rounds=100000, dir=sys.argv[2])
    next(iter(run))
"""
INTERRUPTED = (
    BEGUN
    + """
    try:
        # Once the main thread waits for the result.
        threading.Timer(0.05, print, ["begun"], {"flush": True}).start()
        run.result()
    except KeyboardInterrupt:
        print(run.state, flush=True)
        raise
"""
)


def test_ctrl_c_leaves_a_checkpoint(corpus: Path, tmp_path: Path) -> None:
    with python(INTERRUPTED, corpus, tmp_path) as other:
        assert other.stdout and other.stdout.readline() == "begun\n"
        other.send_signal(signal.SIGINT)
        out, err = other.communicate(timeout=120)
    assert out == "stopped\n" and err.rstrip().endswith("KeyboardInterrupt") and other.returncode == -signal.SIGINT
    # Only rounds after the checkpoint are trained again.
    heard: list[int] = []
    job: dict[str, Any] = {"grammar": "auto:unigram", "method": "vb", "max_rounds": 100000, "dir": tmp_path}
    with grammaton.train(corpus, **job, resume=True, callback=lambda round: heard.append(round["round"])) as run:
        while not heard:
            next(iter(run))
    assert heard[0] > 1 and [round["round"] for round in run.metrics] == list(range(1, heard[-1] + 1))


def test_ctrl_c_ends_parsing(corpus: Path) -> None:
    code = """
        import itertools, sys, grammaton
        model = grammaton.train(sys.argv[1], "auto:unigram", method="vb", max_rounds=1).result().model
        texts = open(sys.argv[1], encoding="utf-8").read().replace(" ", "").splitlines()
        for at, _ in enumerate(model.parse(itertools.cycle(texts))):
            if at == 0:
                print("begun", flush=True)
    """
    with python(code, corpus) as other:
        assert other.stdout and other.stdout.readline() == "begun\n"
        other.send_signal(signal.SIGINT)
        _, err = other.communicate(timeout=120)
    assert err.rstrip().endswith("KeyboardInterrupt") and other.returncode == -signal.SIGINT


def test_ctrl_c_while_a_corpus_is_read_leaves_nothing(tmp_path: Path) -> None:
    code = """
        import itertools, sys, grammaton
        def sentences():
            print("begun", flush=True)
            yield from itertools.repeat("ab ba")
        grammaton.train(sentences(), "auto:unigram", dir=sys.argv[1])
    """
    with python(code, tmp_path) as other:
        assert other.stdout and other.stdout.readline() == "begun\n"
        other.send_signal(signal.SIGINT)
        _, err = other.communicate(timeout=120)
    assert err.rstrip().endswith("KeyboardInterrupt") and other.returncode == -signal.SIGINT
    assert list(tmp_path.iterdir()) == []


def test_the_end_of_the_interpreter_leaves_a_checkpoint(corpus: Path, tmp_path: Path) -> None:
    code = BEGUN + '    print("begun", flush=True)\n'
    with python(code, corpus, tmp_path) as other:
        out, err = other.communicate(timeout=120)
    assert (out, err, other.returncode) == ("begun\n", "", 0)
    assert any((tmp_path / "checkpoints").iterdir())


@pytest.mark.parametrize(
    "call",
    [
        "run.result()",
        "[round for round in run]",
        "[parse for parse in model.parse(itertools.cycle(texts))]",
        "[model.parameters_sha256 for _ in itertools.repeat(0)]",
    ],
)
def test_daemon_threads_in_calls_do_not_crash_the_end(call: str, corpus: Path) -> None:
    code = f"""
        import itertools, sys, threading, grammaton
        texts = open(sys.argv[1], encoding="utf-8").read().replace(" ", "").splitlines()
        model = grammaton.train(sys.argv[1], "auto:unigram", method="vb", max_rounds=1).result().model
        run = grammaton.train(sys.argv[1], "auto:unigram", method="vb", max_rounds=100000)
        begun = threading.Barrier(3)
        def work():
            begun.wait()
            {call}
        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        begun.wait()
        threading.Event().wait(0.2)  # most threads are in the call then
    """
    with python(code, corpus) as other:
        _, err = other.communicate(timeout=120)
    assert (err, other.returncode) == ("", 0)


def test_no_signal_handler_is_installed(corpus: Path) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    grammaton.train(corpus, **JOB).result()
    assert before == {number: signal.getsignal(number) for number in before}
    with python("import os, signal; import grammaton; os.kill(os.getpid(), signal.SIGTERM)") as other:
        other.communicate(timeout=60)
    assert other.returncode == -signal.SIGTERM


def test_two_runs_in_two_threads(corpus: Path, undisturbed: str) -> None:
    found: list[str] = []

    def train() -> None:
        found.append(grammaton.train(corpus, **JOB).result().parameters_sha256)

    threads = [threading.Thread(target=train) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [undisturbed] * 2


def test_two_runs_in_one_folder_are_refused(corpus: Path, tmp_path: Path) -> None:
    with grammaton.train(corpus, **LONG, dir=tmp_path) as run:
        with pytest.raises(ValueError, match="another run writes to this folder"):
            grammaton.train(corpus, **LONG, dir=tmp_path, overwrite=True)
        assert run.state == "training"


def test_other_threads_run_while_a_run_is_awaited(corpus: Path) -> None:
    run = grammaton.train(corpus, **LONG)
    # Only a thread that runs during `result` can end it.
    stopper = threading.Timer(0.01, run.stop)
    stopper.start()
    with pytest.raises(grammaton.Stopped):
        run.result()


def test_a_callback_that_raises_stops_the_run(corpus: Path, tmp_path: Path) -> None:
    def callback(round: dict[str, Any]) -> None:
        if round["round"] == 2:
            raise ZeroDivisionError("of the callback")

    run = grammaton.train(corpus, **LONG, dir=tmp_path, callback=callback)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="of the callback"):
            run.result()
    assert run.state == "failed" and any((tmp_path / "checkpoints").iterdir())


def test_a_callback_that_raises_stops_a_run_that_is_to_be_paused(corpus: Path) -> None:
    runs: list[grammaton.Run] = []
    begun = threading.Event()

    def callback(round: dict[str, Any]) -> None:
        begun.wait()
        runs[0].pause()
        raise KeyboardInterrupt

    runs.append(grammaton.train(corpus, **LONG, callback=callback))
    begun.set()
    with pytest.raises(KeyboardInterrupt):
        runs[0].result()


def test_a_callback_may_stop_its_run_but_not_wait_for_it(corpus: Path, undisturbed: str) -> None:
    runs: list[grammaton.Run] = []
    errors: list[str] = []
    begun = threading.Event()

    def callback(round: dict[str, Any]) -> None:
        begun.wait()
        for call in (runs[0].result, lambda: [*runs[0]], runs[0].progress):
            try:
                call()
            except RuntimeError as error:
                errors.append(str(error))
        runs[0].stop()

    runs.append(grammaton.train(corpus, **JOB, callback=callback))
    begun.set()
    with pytest.raises(grammaton.Stopped):
        runs[0].result()
    assert len(errors) == 3 and all("a callback cannot wait for its own run" in text for text in errors)
    while True:
        # Each start ends after a round.
        runs[0].resume()
        with contextlib.suppress(grammaton.Stopped):
            found = runs[0].result().parameters_sha256
            break
    assert found == undisturbed


def test_a_callback_hears_all_rounds(corpus: Path) -> None:
    heard: list[int] = []
    grammaton.train(corpus, **JOB, callback=lambda round: heard.append(round["round"])).result()
    assert heard == list(range(1, 13))


def test_a_dropped_run_ends(corpus: Path, tmp_path: Path) -> None:
    run = grammaton.train(corpus, **LONG, dir=tmp_path)
    next(iter(run))
    del run
    # The folder is locked until the run has ended.
    while True:
        try:
            grammaton.train(corpus, **{**LONG, "max_rounds": 1}, dir=tmp_path, overwrite=True).result()
            break
        except ValueError as error:
            assert "another run writes to this folder" in str(error)


def test_a_dropped_run_leaves_no_temporary_folder(corpus: Path, tmp_path: Path) -> None:
    code = """
        import sys, grammaton
        for _ in range(5):
            run = grammaton.train(sys.argv[1], "auto:unigram", method="vb", max_rounds=100000)
            next(iter(run))
            del run
    """
    with python(code, corpus, env={**os.environ, "TMPDIR": str(tmp_path)}) as other:
        _, err = other.communicate(timeout=120)
    assert (err, other.returncode, list(tmp_path.iterdir())) == ("", 0, [])


def _in_child(run: grammaton.Run, model: grammaton.Model, parses: Any, corpus: Path, answers: Any) -> None:
    errors: list[str] = []
    calls = (lambda: run.state, run.stop, run.result, lambda: next(iter(run)), lambda: grammaton.train(corpus, **JOB), lambda: next(parses))
    for call in calls:
        try:
            call()
            errors.append("nothing")
        except RuntimeError as error:
            errors.append(str(error))
    assert model.inspect()["sticks"] and model.strings("Word")
    errors.append(next(model.parse(["ab"])).status)
    answers.put(errors)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_after_a_fork(corpus: Path, undisturbed: str) -> None:
    model = grammaton.train(["ab ba", "ab"], "auto:unigram", max_rounds=1).result().model
    run = grammaton.train(corpus, **JOB)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_in_child, args=(run, model, model.parse(["ab"]), corpus, answers))
    child.start()
    *errors, status = answers.get(timeout=120)
    child.join(120)
    assert child.exitcode == 0 and status == "ok"
    assert all("belongs to the process from which this one was forked" in text for text in errors[:4])
    assert 'multiprocessing.get_context("spawn")' in errors[4] and "call parse() here" in errors[5]
    assert run.result().parameters_sha256 == undisturbed and run.dir.exists()


def _train(corpus: str) -> str:
    return grammaton.train(corpus, **JOB).result().parameters_sha256


def test_spawned_processes_train(corpus: Path, undisturbed: str) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_train, [str(corpus)] * 2) == [undisturbed] * 2


def test_a_fork_before_any_training_trains(corpus: Path, undisturbed: str) -> None:
    code = """
        import os, sys, grammaton
        child = os.fork()
        if child == 0:
            print(grammaton.train(sys.argv[1], "auto:unigram", method="vb", max_rounds=12, workers=1).result().parameters_sha256, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    """
    with python(code, corpus) as other:
        assert other.communicate(timeout=120)[0].strip() == undisturbed


def test_logs_go_to_logging(corpus: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "grammaton"):
        run = grammaton.train(corpus, **JOB)
        run.result()
    names = {record.name for record in caplog.records}
    assert "grammaton.run" in names and all(name.startswith("grammaton") for name in names)
    messages = [record.getMessage() for record in caplog.records]
    assert all(notice in messages for notice in run.notices)


def test_import_is_light() -> None:
    code = "import sys, grammaton; print(sorted({'asyncio', 'pandas', 'numpy', 'IPython'} & set(sys.modules)))"
    with python(code, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as other:
        assert other.communicate(timeout=60)[0] == "[]\n"
