"""Plays the `console` blocks of a page: types what it says to type, and compares what it says comes.

In a block, `$ ` begins a command and `> ` goes on with it; other lines are what it prints, stderr too. A
command that ends with ` &` stays running until the page is over. A line `...` stands for any lines, `...`
within one for any text. Numbers, digests, units of durations and the width of gaps are not compared: they
differ from run to run.
Of a block that is marked `sample` only the first words of lines are, in their order.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```console( sample)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: A digest, or a number; of a duration with its unit, of a difference with its sign.
_NUMBER = re.compile(r"\b[0-9a-f]{12,64}\b|(?<!\w)[+-]?\d+(?:[.,:]\d+)*(?: (?:[nµm]s|s)\b)?|\d+(?:[.,:]\d+)*")
_COMMAND_S = 300.0
_READY_S = 240.0
_STOP_S = 20.0
_LOOK_S = 1.0
_TAIL_CHARS = 2000


@dataclass(frozen=True, kw_only=True)
class Step:
    """One command with what it prints."""

    command: str
    expected: str
    is_sample: bool = False

    @property
    def stays(self) -> bool:
        return self.command.endswith(" &")


def steps(page: str) -> list[Step]:
    """What a page has its reader type, in order."""
    return [step for mark, block in _BLOCK.findall(page) for step in _steps(block, is_sample=bool(mark))]


def _steps(block: str, *, is_sample: bool) -> Iterator[Step]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        count = next((n for n, line in enumerate(lines) if n and not line.startswith("> ")), len(lines))
        command = "\n".join([lines[0], *(line.removeprefix("> ") for line in lines[1:count])])
        yield Step(command=command, expected="\n".join(lines[count:]), is_sample=is_sample)


def comes_as_said(expected: str, printed: str, *, is_sample: bool = False) -> bool:
    """Whether the output is what the page says."""
    if is_sample:
        printed_words = iter(_first_words(printed))
        return all(word in printed_words for word in _first_words(expected) if word != "...")
    lines = [_plain(line) for line in expected.splitlines() if line.strip()]
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
        for line in lines
    )
    said = "".join(f"{_plain(line)}\n" for line in printed.splitlines() if line.strip())
    return re.fullmatch(pattern, said) is not None


def _first_words(text: str) -> list[str]:
    return [_plain(line).split()[0] for line in text.splitlines() if line.strip()]


def _plain(line: str) -> str:
    return " ".join(_NUMBER.sub("#", line).split())


class Console:
    """A reader's terminal: one folder, one environment, and what was left running."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        here_by_said: Mapping[str, str],
        command_s: float = _COMMAND_S,
    ) -> None:
        self._folder = folder
        self._command_s = command_s
        self._here_by_said = here_by_said
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("FARM_")},
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "COLUMNS": "160",
            "NO_COLOR": "1",
            **environment,
        }
        self._running: list[subprocess.Popen[bytes]] = []

    def play(self, step: Step) -> None:
        """Type a command and compare what comes, addresses, folders and names being this machine's own."""
        command = step.command
        for said, here in self._here_by_said.items():
            command = command.replace(said, here)
        if step.stays:
            self._leave_running(command.removesuffix(" &"), step)
        else:
            self._run(command, step)

    def _run(self, command: str, step: Step) -> None:
        typed = subprocess.Popen(
            ["bash", "-c", command],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        printed = self._printed_by(typed, command)
        said = f"$ {command}\n{printed}[exit code {typed.returncode}]"
        assert typed.returncode == 0, said
        as_said = comes_as_said(step.expected, self._as_elsewhere(printed), is_sample=step.is_sample)
        assert as_said, f"{said}\nthe page says:\n{step.expected}"

    def _printed_by(self, typed: "subprocess.Popen[str]", command: str) -> str:
        """What a command prints; it is not waited for any more when what it needs has ended."""
        deadline_s = time.monotonic() + self._command_s
        while True:
            try:
                return typed.communicate(timeout=_LOOK_S)[0]
            except subprocess.TimeoutExpired:
                has_ended = any(child.poll() is not None for child in self._running)
                if has_ended or time.monotonic() > deadline_s:
                    os.killpg(typed.pid, signal.SIGKILL)
                    printed = typed.communicate()[0]
                    why = "what it needs has ended" if has_ended else f"no end within {self._command_s:.0f} s"
                    raise AssertionError(f"$ {command}\n{printed}[{why}]\n{self._tails()}") from None

    def _tails(self) -> str:
        logs = sorted(self._folder.glob("running-*.log"))
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-_TAIL_CHARS:]}" for log in logs)

    def _leave_running(self, command: str, step: Step) -> None:
        log = self._folder / f"running-{len(self._running)}.log"
        with log.open("wb") as sink:
            child = subprocess.Popen(
                shlex.split(command),
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        self._running.append(child)
        deadline_s = time.monotonic() + _READY_S
        while not comes_as_said(step.expected, self._as_elsewhere(log.read_text(errors="replace"))):
            said = f"$ {command}\n{log.read_text(errors='replace')}"
            assert child.poll() is None, f"{said}[exit code {child.returncode}]"
            assert time.monotonic() < deadline_s, f"{said}\nthe page says:\n{step.expected}"
            time.sleep(0.1)

    def _as_elsewhere(self, printed: str) -> str:
        for said, here in self._here_by_said.items():
            printed = printed.replace(here, said)
        return printed

    def close(self) -> None:
        """End what was left running, last first."""
        for child in reversed(self._running):
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


@contextmanager
def console(
    folder: Path,
    *,
    environment: Mapping[str, str] | None = None,
    here_by_said: Mapping[str, str] | None = None,
    command_s: float = _COMMAND_S,
) -> Iterator[Console]:
    """A terminal in a folder; whatever a page leaves running ends with it.

    Args:
        folder: where its reader is.
        environment: on top of this process's own.
        here_by_said: what the page calls things, and what they are on this machine.
        command_s: how long one command may take.
    """
    opened = Console(folder, environment or {}, here_by_said or {}, command_s)
    try:
        yield opened
    finally:
        opened.close()
