"""A child process after a fork, multiprocessing's default on Linux for long: it works, or says at once what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# Real forks of a program of its own, so that a child that hangs ends with it and not with the tests.
PROGRAM = '''
import json, os, signal, sys, warnings
warnings.simplefilter("ignore")  # newer Pythons warn of every fork in a process with threads
import numpy as np
import windrow as wr

def child(act):
    """What an act gives in a forked child; ten seconds are a hang."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reading)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)
        try:
            said = str(act())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(process, 0)
    return said or "hangs"

path = sys.argv[1]
db = wr.connect(path, engine="local", progress=False)
D = db.create("D", "<a: float64> [i=1:20:10, j=1:10:5]")
S = db.create("S", "<v: float64> [x=1:100:10]", sparse=True)
D.write(np.ones((20, 10)))
S.insert({"x": [1, 2, 3], "v": [1.0, 2.0, 3.0]})
D.read(), S.read()
lazy = D.to_xarray()
window = "aggr D sum(a) by window(2,2)"
cells = "aggr S sum(v) by window(2)"
db.query(window).compute(), db.query(cells).compute()
acts = {
    "sparse read": lambda: S.read().num_rows,
    "sparse window": lambda: db.query(cells).compute().num_rows,
    "names": lambda: [array.name for array in db.arrays()],
    "another connection": lambda: wr.connect(path, engine="local", progress=False).array("S").read().num_rows,
    "dense read": lambda: D.read(),
    "dense window": lambda: db.query(window).compute(),
    "lazy": lambda: float(lazy.a.sum()),
    "dense write": lambda: D.write(np.zeros((20, 10))),
    "sparse write": lambda: S.insert({"x": [7], "v": [7.0]}),
    "create": lambda: db.create("E", "<a: float64> [i=1:20:10]"),
}
said = {name: child(act) for name, act in acts.items()}
with db.catalog.reading() as connection:
    connection.exec_driver_sql("select 1")
    said["in a transaction"] = child(lambda: db.arrays())
D.write(np.zeros((20, 10)))
said["parent"] = [float(D.read().a.sum()), S.read().num_rows, len(db.arrays())]
print(json.dumps(said))
'''
FRESH = """
import multiprocessing, sys
import numpy as np
import windrow as wr

def work(path):
    with wr.connect(path, engine="local", progress=False) as db:
        made = db.create("A", "<a: float64> [i=1:20:10]")
        made.write(np.ones(20))
        print(float(made.read().a.sum()))

if __name__ == "__main__":
    connection = wr.connect(sys.argv[1], engine="local", progress=False)  # which the child does not use
    if sys.argv[2] == "spawn":
        db = connection.create("D", "<a: float64> [i=1:20:10]").write(np.ones(20))
    process = multiprocessing.get_context(sys.argv[2]).Process(target=work, args=(sys.argv[1],))
    process.start()
    process.join(60)
    print(process.exitcode, [array.name for array in connection.arrays()])
"""


def run(program: str, *arguments: str, folder: Path) -> str:
    script = folder / "program.py"
    script.write_text(program)
    command = [sys.executable, str(script), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("forks")
    found: dict[str, object] = json.loads(run(PROGRAM, str(folder / "warehouse"), folder=folder))
    return found


@pytest.mark.parametrize(
    ("act", "result"),
    [("sparse read", "3"), ("sparse window", "3"), ("names", "['D', 'S']"), ("another connection", "3")],
)
def test_what_a_forked_child_can_do(said: dict[str, object], act: str, result: str) -> None:
    assert said[act] == result


@pytest.mark.parametrize(
    "act", ["dense read", "dense window", "lazy", "dense write", "sparse write", "create", "in a transaction"]
)
def test_what_a_forked_child_cannot_do_it_is_told_at_once(said: dict[str, object], act: str) -> None:
    assert str(said[act]).startswith("MachineError: ")
    assert "spawn" in str(said[act])


def test_the_parent_goes_on_as_before(said: dict[str, object]) -> None:
    assert said["parent"] == [0.0, 3, 2]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_of_a_parent_that_only_connected_or_that_is_no_fork_works(method: str, tmp_path: Path) -> None:
    lines = run(FRESH, str(tmp_path / "warehouse"), method, folder=tmp_path).split("\n")
    assert lines[:2] == ["20.0", "0 ['A', 'D']" if method == "spawn" else "0 ['A']"]
