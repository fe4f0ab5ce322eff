"""The scripts of a checkout: what CI passes on to the tests, and paths with spaces in them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packages import CONFIGURED, path_without_uv

ROOT = Path(__file__).parents[1]
PASSED = {
    "HOME": "/home/a user",
    "LANG": "C",
    "PIP_INDEX_URL": "https://example.org/a b",
    "UV_OFFLINE": "1",
    "npm_config_registry": "https://example.org",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "SSL_CERT_FILE": "/certs.pem",
}
HELD_BACK = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "TERM": "xterm", "OPENAI_API_KEY": "x", "PIPX": "x"}


def write_program(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def test_ci_calls_the_test_command_with_a_bare_environment(tmp_path: Path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    write_program(tmp_path / "scripts" / "test", 'echo "$@"; env')
    given = {"PATH": os.environ["PATH"], **PASSED, **HELD_BACK}
    done = subprocess.run([tmp_path / ".ci" / "run"], env=given, capture_output=True, text=True, timeout=60, check=True)
    arguments, *variables = done.stdout.splitlines()
    assert arguments == "--all"
    seen = dict(line.split("=", 1) for line in variables)
    ours = {"PWD", "OLDPWD", "SHLVL", "_", "__CF_USER_TEXT_ENCODING"}  # what a shell or macOS sets for itself
    assert {name: value for name, value in seen.items() if name not in ours} == {"PATH": os.environ["PATH"], **PASSED}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy in a folder with spaces, set up: only the packages are those of the Python that runs this."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    root = tmp_path.resolve() / "my check out"
    shutil.copytree(ROOT / "scripts", root / "scripts")
    for name in ("pyproject.toml", "requirements.lock", "requirements-dev.lock"):
        shutil.copy(ROOT / name, root)
    for kind, locks in (("run", ["requirements.lock"]), ("dev", ["requirements.lock", "requirements-dev.lock"])):
        content = b"".join((root / name).read_bytes() for name in ("pyproject.toml", *locks))
        stamp = subprocess.run(["cksum"], input=f"{root}\n".encode() + content, capture_output=True, check=True).stdout  # noqa: S607
        (root / ".venv").mkdir(exist_ok=True)
        (root / ".venv" / f"stamp-{kind}").write_bytes(stamp)
    for name in ("python", "overspill"):
        write_program(root / ".venv" / "bin" / name, f'exec {shlex.quote(str(Path(sys.executable).with_name(name)))} "$@"')
    return root


@pytest.mark.parametrize(("script", "words"), [("overspill", "overspill 0."), ("test", "pytest ")])
def test_a_script_runs_from_a_path_with_spaces_also_through_a_link(checkout: Path, script: str, words: str):
    link = checkout.parent / "a link"
    link.symlink_to(Path("my check out") / "scripts" / script)
    for called in (checkout / "scripts" / script, link):
        done = subprocess.run([called, "--version"], cwd=checkout.parent, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr, done.stdout[: len(words)]) == (0, "", words)


@pytest.mark.parametrize(
    ("options", "fails", "expected"),
    [([], "no tool", 0), (["--all"], "no tool", 0), ([], "ruff", 1), ([], "basedpyright", 1), ([], "pytest", 1)],
)
def test_every_check_must_pass_and_only_all_measures_coverage(checkout: Path, options: list[str], fails: str, expected: int):
    calls = checkout / "calls"
    record = f'echo "$@" >>{shlex.quote(str(calls))}; echo "ran $2"; [ "$2" != {shlex.quote(fails)} ]'
    write_program(checkout / ".venv" / "bin" / "python", record)
    done = subprocess.run([checkout / "scripts" / "test", *options], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (expected, "")
    if fails != "ruff":
        assert {"ran ruff", "ran pytest", "ran basedpyright"} == set(done.stdout.splitlines())
        assert ("--cov" in calls.read_text()) is (options == ["--all"])


def test_types_are_checked_of_what_has_changed_and_of_what_imports_it(checkout: Path):
    calls, source = checkout / "calls", checkout / "src" / "overspill"
    (checkout / "benchmarks" / "questions").mkdir(parents=True)
    texts = {
        "gate/__init__": "",
        "gate/a": "",
        "gate/b": "from overspill.gate import a",
        "c": "from overspill.gate.a import x",
        "d": "",
    }
    for name, text in texts.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / f"{name}.py").write_text(f"{text}\n")
    write_program(checkout / ".venv" / "bin" / "python", f'echo "$@" >>{shlex.quote(str(calls))}')

    def check(*options: str) -> list[str] | None:
        """The files; None where types are not checked."""
        calls.unlink(missing_ok=True)
        subprocess.run([checkout / "scripts" / "test", *options], capture_output=True, timeout=60, check=True)
        lines = [line.split()[4:] for line in calls.read_text().splitlines() if "basedpyright" in line]
        return next((line[line.index("out/.venv/bin/python") + 1 :] for line in lines), None)

    assert check() == []  # all: they have not passed yet
    assert check() is None
    (source / "gate" / "a.py").write_text("x = 1\n")
    assert check() == ["src/overspill/c.py", "src/overspill/gate/a.py", "src/overspill/gate/b.py"]
    os.utime(source / "d.py", (0, 0))
    assert check() is None
    (source / "gate" / "a.py").unlink()
    assert check() == ["src/overspill/c.py", "src/overspill/gate/b.py"]
    assert check("--all") == []


@pytest.mark.slow
def test_a_new_clone_sets_itself_up_without_uv(tmp_path: Path):
    """To be used; CI sets itself up for tests in the same way."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True, timeout=120)  # noqa: S607
    passed = {name: value for name, value in os.environ.items() if name.startswith((*CONFIGURED, "XDG_CACHE_HOME"))}
    env = {**passed, "PATH": path_without_uv(tmp_path / "bin"), "HOME": str(Path.home()), "LANG": "C.UTF-8"}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=clone, env=env, capture_output=True, text=True, timeout=900, check=False)

    reached = run("python3", "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(tmp_path), "iniconfig")
    if reached.returncode and not os.environ.get("CI"):
        pytest.skip(f"packages cannot be had: {reached.stderr.strip().splitlines()[-1]}")
    first = run("scripts/overspill", "--version")
    assert (first.returncode, first.stdout.startswith("overspill 0.")) == (0, True), first.stderr
    assert not (clone / ".venv" / "unfinished").exists()
