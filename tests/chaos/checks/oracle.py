"""A benchmark program that leaves proof on the phone: what it said, under a token that nobody else has."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_STARTS, _SAID = "data/starts", "data/said"
#: Every so many of a phone's runs the program fails, or leaves a sample out.
FAILS_EVERY, SHORT_EVERY = 17, 13
_SAMPLE = re.compile(r'"value": "(\d+)"')
_TOKEN = re.compile(r"^witness (\S+)$", re.MULTILINE)

# Noted before it runs, printed when it has run: a start without output was killed.
_PROGRAM = r"""#!/bin/sh
# {nonce}
token=$(cat /proc/sys/kernel/random/uuid)
echo "$BENCHFARM_RUN $token" >>"$HOME/starts"
for word; do
  case $word in
  --iter=*) iter=${word#*=} ;;
  esac
done
sleep {run_s}
[ $((BENCHFARM_RUN % {fails_every})) -ne 0 ] || exit 3
spread=0.02
[ $((BENCHFARM_RUN % {short_every})) -ne 0 ] || iter=$((iter - 1))
mkdir -p "$HOME/said"
{
  echo "witness $token"
  echo "Starting benchmark."
  echo "Running warmup runs."
  echo "Main runs."
  awk -v iter="$iter" -v spread="$spread" -v seed="$$$BENCHFARM_RUN" 'BEGIN {
    srand(seed)
    for (i = 0; i < iter; i++) {
      us = int(5000 * (1 + spread * (2 * rand() - 1)))
      total += us
      printf "PyTorchObserver {\"type\": \"NET\", \"unit\": \"us\", "
      printf "\"metric\": \"latency\", \"value\": \"%d\"}\n", us
    }
    printf "Main run finished. Microseconds per iter: %g. ", total / iter
    printf "Iters per second: %g\n", iter * 1e6 / total
  }'
} | tee "$HOME/said/$BENCHFARM_RUN.$token"
"""


def witness_program(*, run_s: float, nonce: int) -> bytes:
    """Takes its time, and prints samples of its own; another nonce makes it another file."""
    filled = {"nonce": nonce, "run_s": f"{run_s:.2f}", "fails_every": FAILS_EVERY, "short_every": SHORT_EVERY}
    text = _PROGRAM
    for name, value in filled.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What one run printed, as its phone has it."""

    fence: int
    token: str
    text: str

    @property
    def samples_ns(self) -> tuple[int, ...]:
        return samples_ns(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """That a run began."""

    fence: int
    token: str


def starts(phone: Path) -> list[Start]:
    """Every run that began on the phone in that folder, in order."""
    noted = phone / _STARTS
    lines = noted.read_text().splitlines() if noted.exists() else []
    return [Start(fence=int(fence), token=token) for fence, token in map(str.split, lines)]


def said(phone: Path) -> Iterator[Said]:
    """What runs on it printed, whole or cut off."""
    for path in sorted((phone / _SAID).glob("*.*")):
        fence, _, token = path.name.partition(".")
        yield Said(fence=int(fence), token=token, text=path.read_text())


def find_token(text: str) -> str | None:
    """The token in an output."""
    found = _TOKEN.search(text)
    return found[1] if found else None


def samples_ns(text: str) -> Sequence[int]:
    """The samples in an output, in nanoseconds."""
    return tuple(int(value) * 1000 for value in _SAMPLE.findall(text))
