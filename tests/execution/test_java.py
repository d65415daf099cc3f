"""The search for a Java, over made-up machines: shell scripts that answer as a JVM would."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import MachineError
from windrow.execution import java
from windrow.execution.java import JavaHome, find_java, major_version

SOURCE = Path(__file__).parents[2] / "src"
FULL = ("java.base", "java.sql", "jdk.incubator.vector")
REDUCED = ("java.base", "java.sql")


def make_java(home: Path, *, release: str | None = None, script: str = "echo started >> $0.started; exit 9") -> Path:
    """A Java home whose ``bin/java`` is a shell script; by default one that records being started, and fails."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    if release is not None:
        (home / "release").write_text(release)
    return home


def release_text(version: str, modules: tuple[str, ...] | None = FULL) -> str:
    listed = "" if modules is None else f'MODULES="{" ".join(modules)}"\n'
    return f'IMPLEMENTOR="Somebody"\nJAVA_VERSION="{version}"\n{listed}OS_NAME="Linux"\n'


def speaking_script(version: str, modules: tuple[str, ...], home: str = "") -> str:
    settings = f"echo '    java.home = {home}' >&2\n" if home else ""
    return f"echo $* >> $0.started\n{settings}" + "\n".join(f"echo {name}@{version}" for name in modules)


def starts(home: Path) -> int:
    record = home / "bin" / "java.started"
    return len(record.read_text().splitlines()) if record.exists() else 0


def search(tmp_path: Path, *, java_home: Path | str | None = None, path: Path | str = "") -> JavaHome:
    environment = {"PATH": str(path)} | ({} if java_home is None else {"JAVA_HOME": str(java_home)})
    return find_java(environment, installed=(f"{tmp_path}/jvm/*",))


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ("17.0.15", 17),
        ("21", 21),
        ("1.8.0_292", 8),
        ("1.7", 7),
        ("9", 9),
        ("11.0.2+9-LTS", 11),
        ("22-ea", 22),
        (" 25 ", 25),
    ],
)
def test_major_version_of_known_spellings(text: str, major: int) -> None:
    assert major_version(text) == major


@given(st.integers(9, 999), st.lists(st.integers(0, 99), max_size=3))
def test_major_version_is_the_first_number_since_java_9(major: int, rest: list[int]) -> None:
    assert major_version(".".join(map(str, [major, *rest]))) == major


@pytest.mark.parametrize("text", ["", "seventeen", "-17", ".17"])
def test_major_version_refuses_what_is_none(text: str) -> None:
    with pytest.raises(MachineError, match="starts with a number"):
        major_version(text)


def test_release_file_is_believed_without_starting_java(tmp_path: Path) -> None:
    home = make_java(tmp_path / "mine", release=release_text("17.0.15"))
    found = search(tmp_path, java_home=home)
    assert found == JavaHome(home, "17.0.15")
    assert found.major == 17
    assert found.executable == home / "bin" / "java"
    assert starts(home) == 0


@pytest.mark.parametrize("release", [None, release_text("21.0.1", modules=None), "nonsense"])
def test_java_without_a_telling_release_file_is_asked_once(tmp_path: Path, release: str | None) -> None:
    home = make_java(tmp_path / "mine", release=release, script=speaking_script("21.0.1", FULL))
    assert search(tmp_path, java_home=home) == JavaHome(home, "21.0.1")
    assert starts(home) == 1


def test_modules_without_versions_are_understood_but_java_base_must_have_one(tmp_path: Path) -> None:
    home = make_java(tmp_path / "mine", script="echo java.base; echo jdk.incubator.vector")
    with pytest.raises(MachineError, match="calls itself version ''"):
        search(tmp_path, java_home=home)


def test_java_home_goes_before_path_before_the_usual_folders(tmp_path: Path) -> None:
    mine = make_java(tmp_path / "mine", release=release_text("25"))
    on_path = make_java(tmp_path / "other", release=release_text("21"))
    usual = make_java(tmp_path / "jvm" / "java-17", release=release_text("17"))
    assert search(tmp_path, java_home=mine, path=on_path / "bin").path == mine
    assert search(tmp_path, path=on_path / "bin").path == on_path
    assert search(tmp_path).path == usual
    assert search(tmp_path, java_home="").path == usual


def test_of_the_usual_folders_the_oldest_that_will_do_is_taken(tmp_path: Path) -> None:
    for version in ("100.0.1", "21.0.2", "17.0.9", "11.0.2", "1.8.0_292"):
        make_java(tmp_path / "jvm" / f"java-{version}", release=release_text(version))
    unknown = make_java(tmp_path / "jvm" / "a-java-of-unknown-version", script=speaking_script("19", FULL))
    (tmp_path / "jvm" / "openjdk-17").mkdir()
    assert search(tmp_path).version == "17.0.9"
    assert starts(unknown) == 0


def test_symbolic_links_are_followed_to_the_home(tmp_path: Path) -> None:
    home = make_java(tmp_path / "jvm" / "java-17", release=release_text("17.0.1"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert search(tmp_path, path=tmp_path / "bin").path == home


def test_a_shim_is_asked_for_the_true_home(tmp_path: Path) -> None:
    shim = make_java(tmp_path / "manager", script=speaking_script("17.0.3", FULL, home="/opt/true java"))
    assert search(tmp_path, path=shim / "bin") == JavaHome(Path("/opt/true java"), "17.0.3")


def test_an_unusable_java_home_is_passed_over_and_mentioned(tmp_path: Path) -> None:
    usual = make_java(tmp_path / "jvm" / "java-17", release=release_text("17"))
    found = search(tmp_path, java_home=tmp_path / "nothing")
    assert found.path == usual
    assert found.passed_over == (f"JAVA_HOME={tmp_path}/nothing has no bin/java",)


def test_one_java_reached_twice_is_looked_at_once(tmp_path: Path) -> None:
    old = make_java(tmp_path / "jvm" / "java-11", release=release_text("11.0.2"))
    with pytest.raises(MachineError) as caught:
        search(tmp_path, java_home=old, path=old / "bin")
    assert caught.value.got == f"JAVA_HOME={old} is version 11.0.2"


@pytest.mark.parametrize(
    ("release", "script", "reason"),
    [
        (release_text("1.8.0_292", modules=None), "exit 1", "is version 1.8.0_292"),
        (release_text("16.0.2"), "exit 1", "is version 16.0.2"),
        (release_text("17.0.2", REDUCED), "exit 1", "is version 17.0.2 without jdk.incubator.vector"),
        (None, speaking_script("17.0.2", REDUCED), "is version 17.0.2 without jdk.incubator.vector"),
        (None, speaking_script("11", FULL), "is version 11"),
        (
            None,
            "echo 'Unrecognized option: --list-modules' >&2; exit 1",
            "cannot list its modules: Unrecognized option",
        ),
        (None, "exit 7", "cannot list its modules: exit code 7"),
        (None, "exit 0", "calls itself version ''"),
    ],
)
def test_what_will_not_do_is_said(tmp_path: Path, release: str | None, script: str, reason: str) -> None:
    home = make_java(tmp_path / "mine", release=release, script=script)
    with pytest.raises(MachineError) as caught:
        search(tmp_path, java_home=home)
    assert caught.value.got is not None
    assert caught.value.got.startswith(f"JAVA_HOME={home} {reason}")


def test_a_java_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "ANSWER_SECONDS", 0.2)
    home = make_java(tmp_path / "mine", script="exec sleep 30")
    with pytest.raises(MachineError, match=r"gave no answer within 0\.2 s"):
        search(tmp_path, java_home=home)


def test_a_java_for_another_machine_is_passed_over(tmp_path: Path) -> None:
    home = make_java(tmp_path / "mine")
    (home / "bin" / "java").write_bytes(b"\x7fELF of some other processor")
    with pytest.raises(MachineError, match="cannot be started: Exec format error"):
        search(tmp_path, java_home=home)


def test_a_java_that_may_not_be_executed_is_passed_over(tmp_path: Path) -> None:
    home = make_java(tmp_path / "mine", release=release_text("17"))
    (home / "bin" / "java").chmod(0o644)
    with pytest.raises(MachineError, match="may not be executed"):
        search(tmp_path, java_home=home)


def test_no_java_at_all(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="got no Java at all") as caught:
        search(tmp_path)
    assert caught.value.exit_code == 3
    assert "openjdk-17-jre-headless" in str(caught.value)
    assert "JAVA_HOME" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def run_as_script(java_home: Path) -> subprocess.CompletedProcess[str]:
    # -I -S leave only the standard library, as on a machine where nothing was installed yet.
    code = f"import runpy, sys; sys.path.insert(0, {str(SOURCE)!r}); runpy.run_path(sys.argv[1], run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(SOURCE / "windrow" / "execution" / "java.py")],
        env={"PATH": os.defpath, "JAVA_HOME": str(java_home)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_as_a_script_it_needs_the_standard_library_only(tmp_path: Path) -> None:
    home = make_java(tmp_path / "mine", release=release_text("17.0.15"))
    answer = run_as_script(home)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"{home}\n", "")


def test_main_says_why_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing() -> JavaHome:
        return search(tmp_path, java_home=tmp_path / "nothing")

    monkeypatch.setattr(java, "find_java", nothing)
    assert java.main() == 3
    assert "nothing has no bin/java" in capsys.readouterr().err


def test_main_mentions_what_was_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(java, "find_java", lambda: JavaHome(tmp_path, "17", ("JAVA_HOME=/nowhere has no bin/java",)))
    assert java.main() == 0
    said = capsys.readouterr()
    assert said.out == f"{tmp_path}\n"
    assert said.err == "passed over: JAVA_HOME=/nowhere has no bin/java\n"
