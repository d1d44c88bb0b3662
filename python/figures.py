"""Figures of docs/results/python.md: `python figures.py CORPUS [NAME…]`, with the wheel installed. CORPUS has gold words between spaces.

Both sides run as processes of their own, in turn. Times are CPU time of user and system, memory is the largest that was resident.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

PAIRS = 5
HERE = Path(sys.executable).parent
TRAIN = """
import sys, grammaton
grammaton.train(sys.argv[1], "auto:unigram", method="vb", max_rounds=40, tolerance=0, workers=2, dir=sys.argv[2], overwrite=True).result(progress=False)
"""
PARSE = """
import sys, grammaton
texts = (line.replace(" ", "") for line in open(sys.argv[2], encoding="utf-8"))
with open(sys.argv[3], "w", encoding="utf-8") as out:
    for parse in grammaton.Model.load(sys.argv[1]).parse(texts, threads=2):
        out.write(parse.text + "\\n")
"""
MILLION = """
import sys, grammaton
def utterances():
    with open(sys.argv[1], encoding="utf-8") as lines:
        yield from lines
grammaton.train(utterances(), "auto:unigram", method="vb", max_rounds=2, workers=2, dir=sys.argv[2], memory=int(sys.argv[3])).result(progress=False)
"""
ENDLESS = """
import sys, grammaton
run = grammaton.train(sys.argv[1], "auto:colloc", method="vb", max_rounds=100000, tolerance=0, dir=sys.argv[2])
next(iter(run))
print("begun", flush=True)
run.result()
"""


def language() -> str:
    """A grammar of 20,000 words of one to three syllables by Zipf's law, as in docs/results/speed.md."""
    chance = random.Random(1)
    syllables = [consonant + vowel for consonant in "bdfghjklmnprstvwz" for vowel in "aeiou"]
    words: dict[str, None] = {}
    while len(words) < 20_000:
        words["".join(chance.choices(syllables, k=chance.randint(1, 3)))] = None
    rules = [f"{1000 / (rank + 1.7)} 1 Word --> {' '.join(word)}" for rank, word in enumerate(words, 1)]
    return "\n".join(["0.65 1 Words --> Word Words", "0.35 1 Words --> Word", *rules, ""])


def measured(*command: object, out: Path | None = None) -> tuple[float, float]:
    """CPU seconds and peak megabytes of a command."""
    with open(out or os.devnull, "wb") as file:
        # In another folder, as this one has a folder `grammaton` without the part in Rust.
        process = subprocess.Popen([str(word) for word in command], stdout=file, cwd="/")
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def python(code: str, *arguments: object) -> tuple[float, float]:
    """The same of a program of Python."""
    return measured(sys.executable, "-c", code, *arguments)


def beside(name: str, ours: Callable[[], tuple[float, float]], theirs: Callable[[], tuple[float, float]]) -> None:
    """Prints the CPU time of both sides and their ratio: medians of pairs."""
    pairs = [(ours()[0], theirs()[0]) for _ in range(PAIRS)]
    ratio = median(one / other for one, other in pairs)
    print(f"{name}: {median(one for one, _ in pairs):.2f} s, command line {median(other for _, other in pairs):.2f} s, ratio {ratio:.3f}", flush=True)


def main(corpus: str, *names: str) -> None:
    """Prints all figures, or those that are named."""
    corpus = str(Path(corpus).resolve())
    wanted = names or ("import", "train", "parse", "interrupt", "million")
    with tempfile.TemporaryDirectory() as folder:
        dir = Path(folder)
        grammaton = HERE / "grammaton"
        if "import" in wanted:
            empty = [python("pass")[0] for _ in range(PAIRS)]
            print(f"import: {median(python('import grammaton')[0] for _ in range(PAIRS)) - median(empty):.3f} s")
        job = dir / "job.toml"
        text = f'[model]\ngrammar = "auto:unigram"\n[corpus]\npath = "{corpus}"\n[inference]\nmethod = "vb"\nmax_rounds = 40\ntolerance = 0\n'
        job.write_text(text, encoding="utf-8")
        train = (grammaton, "train", job, "--out", dir / "theirs", "--workers", 2, "--overwrite", "--quiet")
        if "train" in wanted:
            beside("train", lambda: python(TRAIN, corpus, dir / "ours"), lambda: measured(*train))
            digests = {(dir / side / "summary.json").read_text().split('parameters_sha256": "')[1][:8] for side in ("ours", "theirs")}
            print(f"digests: {digests}")
        if "parse" in wanted:
            measured(*train)
            texts = dir / "texts"
            lines = [line for line in Path(corpus).read_text(encoding="utf-8").splitlines() if line.strip()]
            texts.write_text("".join(f"{line}\n" for line in lines * 10), encoding="utf-8")
            parse = (grammaton, "parse", dir / "theirs", texts, "--threads", 2)
            beside(f"parse of {10 * len(lines)}", lambda: python(PARSE, dir / "theirs", texts, dir / "parsed"), lambda: measured(*parse, out=dir / "also"))
            print(f"the same: {(dir / 'parsed').read_bytes() == (dir / 'also').read_bytes()}")
        if "interrupt" in wanted:
            waits = []
            for at in range(PAIRS):
                process = subprocess.Popen([sys.executable, "-c", ENDLESS, corpus, str(dir / f"run{at}")], cwd="/", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                assert process.stdout and process.stdout.readline() == b"begun\n"
                begun = time.monotonic()
                process.send_signal(signal.SIGINT)
                process.wait()
                waits.append(time.monotonic() - begun)
                assert any((dir / f"run{at}" / "checkpoints").iterdir())
            print(f"interrupt: median {median(waits):.2f} s, longest {max(waits):.2f} s until the process has ended")
        if "million" in wanted:
            (dir / "lex.gr").write_text(language(), encoding="utf-8")
            lines = dir / "million.txt"
            measured(grammaton, "sample", dir / "lex.gr", "-n", 1_000_000, "--segments", "Word", out=lines)
            million = dir / "million.toml"
            million.write_text(text.replace(corpus, str(lines)).replace("max_rounds = 40\ntolerance = 0", "max_rounds = 2"), encoding="utf-8")
            for memory in (4096, 64):
                seconds, megabytes = python(MILLION, lines, dir / f"ours{memory}", memory)
                also = measured(grammaton, "train", million, "--out", dir / f"theirs{memory}", "--workers", 2, "--memory", memory, "--quiet")
                print(f"million, memory {memory}: {seconds:.0f} s, {megabytes:.0f} MB; command line {also[0]:.0f} s, {also[1]:.0f} MB", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
