"""Everything of `make security`, a line each: rules, holes, roles, hostile texts, fuzzers, fuzzed calls.

python -m tests.security [--calls N] [--within SECONDS] [--fuzz SECONDS] [--seed N]
"""

import argparse
import json
import multiprocessing
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import SystemRandom

from tests.security.attack.attack import attack
from tests.security.fuzzers import FUZZERS, fuzz

_ROOT = Path(__file__).parents[2]
_LOCKS = ("deploy/requirements-farm.lock", "deploy/requirements-client.lock")
#: Who may call what, on both listeners; and what comes in from phones, programs and people.
_TESTS = (
    "tests/api/http/test_authorization.py",
    "tests/api/http/test_openapi_roles.py",
    "tests/api/routes/test_names_of_others.py",
    "tests/security/test_roles_by_route.py",
)
#: Texts whose parsing could take quadratic time.
_HOSTILE_TEXTS = ("tests/security/test_parsing_time.py",)


def main() -> int:
    """Run all, whatever one of them shows; return 0 where nothing was found."""
    options = _options()
    steps = {
        "ruff S": check_rules,
        "pip-audit": audit_locks,
        "roles": lambda: run_tests(_TESTS),
        "hostile texts": lambda: run_tests(_HOSTILE_TEXTS),
        "fuzzers": lambda: _fuzz(options),
        "fuzzed calls": lambda: _attack(options),
    }
    found = False
    for name, step in steps.items():
        is_clean, text = step()
        found = found or not is_clean
        _say(f"{name}: {'clean' if is_clean else 'FOUND SOMETHING'}: {text}")
    return int(found)


def check_rules() -> tuple[bool, str]:
    """Look for what ruff's rules of security name, without those that the project does without."""
    # A choice on the command line would bring them back.
    ignored = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]["ignore"]
    words = ("--select", "S", "--ignore", ",".join(ignored), "--output-format", "concise")
    done = _run(sys.executable, "-m", "ruff", "check", *words)
    return done.returncode == 0, done.stdout.strip()


def audit_locks() -> tuple[bool, str]:
    """Ask the package index which versions of the locks have known holes; say of how many it knows."""
    packages: dict[str, bool] = {}
    holes: list[str] = []
    for lock in _LOCKS:
        words = ("--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json")
        done = _run(sys.executable, "-m", "pip_audit", *words, "--requirement", lock)
        try:
            listed = json.loads(done.stdout)["dependencies"]
        except (ValueError, KeyError):
            lines = done.stderr.strip().splitlines() or ["no output"]
            return True, f"NOT AUDITED, its data cannot be had here: {lines[-1][:200]}"
        for package in listed:
            packages[package["name"]] = "skip_reason" not in package
            holes += [f"{package['name']} {hole['id']}" for hole in package.get("vulns", ())]
    known = sum(packages.values())
    if known == 0:
        return True, f"NOT AUDITED: the index has no advisories for any of the {len(packages)} packages"
    return (
        not holes,
        f"{known} of {len(packages)} packages looked up; {', '.join(sorted(set(holes))) or 'none known'}",
    )


def run_tests(tests: Sequence[str]) -> tuple[bool, str]:
    """Run tests, also those that take long; return their last line, or that of their error."""
    done = _run(sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not on_postgresql", *tests)
    return done.returncode == 0, (done.stdout or done.stderr).strip().splitlines()[-1]


def _fuzz(options: argparse.Namespace) -> tuple[bool, str]:
    """Run each fuzzer for its time, two at once."""
    seeds = {name: f"{options.seed}-{name}" for name in FUZZERS}
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as processes:
        started = [
            processes.submit(fuzz, name, seed=seed, seconds=options.fuzz) for name, seed in seeds.items()
        ]
        done = [fuzzing.result() for fuzzing in started]
    return not any(fuzzing.found for fuzzing in done), "\n".join(("", *map(str, done)))


def _attack(options: argparse.Namespace) -> tuple[bool, str]:
    findings = attack(options.calls, seed=options.seed, within_s=options.within)
    text = "\n".join((f"seed {options.seed}, {findings}", *findings.failures[:20]))
    return not findings.failures, text


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.security")
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--within", type=float, default=3600.0, help="seconds for the fuzzed calls")
    parser.add_argument("--fuzz", type=float, default=60.0, help="seconds for each of the fuzzers")
    parser.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    return parser.parse_args()


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
