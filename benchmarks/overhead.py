"""The overhead of the farm: the same jobs in a hand-written loop of `adb shell` and through the farm.

Both arms run the same program with the same arguments on the same virtual phone, through the same adb server,
after one run of each that is not counted. They take turns, a few jobs at a time, so that other load of the
machine falls on both. The manual arm runs while the farm's queue is empty and the phone is clean.

    .venv/bin/python benchmarks/overhead.py [--quick]
"""

import argparse
import shlex
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from compare import ratio
from machine import machine_facts
from program import register_model, samples_us, submit, working_program
from rig import Rig, rig, talk

from agents.adb.server import bundled_adb
from farm.wire.documents.matrices.jobs import AttemptView

AIM = 1.05
#: The medians of the two arms may differ by this much and still count as the same.
MARGIN = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A few jobs of one arm in a row."""

    wall_s: float
    #: The median of each job's iterations, by the program's own clock.
    medians_us: list[float]


@dataclass(slots=True, kw_only=True)
class Arms:
    """The blocks of both arms, in pairs that were run next to each other."""

    hand: list[Block] = field(default_factory=list)
    farm: list[Block] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """The manual arm: push once, then call `adb shell` repeatedly."""

    adb: tuple[str, ...]
    argv: tuple[str, ...]

    def run(self, jobs: int) -> Block:
        """Start the program so many times in a row."""
        began_s = time.monotonic()
        outputs = [self._run_once() for _ in range(jobs)]
        return _block(time.monotonic() - began_s, outputs)

    def _run_once(self) -> str:
        done = subprocess.run(
            [*self.adb, "shell", shlex.join(self.argv)], capture_output=True, text=True, check=True
        )
        return done.stdout


def measure(bench: Rig, *, pairs: int, jobs: int, seconds: float) -> Arms:
    """Run both arms in turn, `jobs` at a time, each of them first in half of the pairs."""
    program = working_program(seconds)
    bench.put_program(program)
    register_model(bench)
    (warm,) = bench.await_jobs(submit(bench, rounds=1), within_s=60)
    hand, arms = _hand(bench, program, warm), Arms()
    bench.await_idle()
    hand.run(1)
    for pair in range(pairs):
        for is_farm in (False, True) if pair % 2 == 0 else (True, False):
            if is_farm:
                arms.farm.append(_through_the_farm(bench, jobs))
            else:
                arms.hand.append(hand.run(jobs))
            bench.await_idle()
        talk(f"pair {pair + 1} of {pairs}: {arms.hand[-1].wall_s:.2f} s, {arms.farm[-1].wall_s:.2f} s")
    return arms


def _through_the_farm(bench: Rig, jobs: int) -> Block:
    """Submit so many jobs; the clock runs from before the submission until the farm has settled the last."""
    began_s = time.monotonic()
    matrix_id = submit(bench, rounds=jobs)
    ended_s = bench.await_end(matrix_id, within_s=60 + 10 * jobs)
    return _block(ended_s - began_s, [_output(attempt) for attempt in bench.attempts(matrix_id)])


def _hand(bench: Rig, program: bytes, run: AttemptView) -> Hand:
    """Push the program, and return the farm's command line with that program in it."""
    (phone,) = bench.phones
    adb = (str(bundled_adb()), "-L", bench.adb_address, "-s", phone.address)
    assert run.evidence is not None
    argv = run.evidence["argv"]
    assert isinstance(argv, list)
    remote = f"{Path(argv[0]).parents[2]}/by-hand"
    with tempfile.TemporaryDirectory() as folder:
        local = Path(folder) / "program"
        local.write_bytes(program)
        local.chmod(0o755)
        subprocess.run([*adb, "push", str(local), remote], capture_output=True, check=True)
    return Hand(adb=adb, argv=(remote, *argv[1:]))


def _output(run: AttemptView) -> str:
    assert run.evidence is not None, run.message
    return str(run.evidence["stdout"])


def _block(wall_s: float, outputs: Sequence[str]) -> Block:
    return Block(wall_s=wall_s, medians_us=[median(samples_us(output)) for output in outputs])


def report(arms: Arms, *, jobs: int) -> str:
    """Return the table and its summary."""
    walls = ratio([block.wall_s for block in arms.farm], [block.wall_s for block in arms.hand])
    own = ratio(
        [median(block.medians_us) for block in arms.farm], [median(block.medians_us) for block in arms.hand]
    )
    lines = [f"{'arm':<22}{'jobs':>5}{'wall':>10}{'a job':>10}{'own median':>13}{'own spread':>12}"]
    lines += [_row("adb shell by hand", arms.hand, jobs), _row("through the farm", arms.farm, jobs)]
    per_job_ms = 1000 * (_wall_s(arms.farm) - _wall_s(arms.hand)) / (jobs * len(arms.farm))
    same = "the same" if own.low < 1 + MARGIN and own.high > 1 / (1 + MARGIN) else "NOT the same"
    return "\n".join(
        [
            *lines,
            "",
            f"wall time   farm / hand  {walls}  aim <= {AIM}  ({per_job_ms:+.1f} ms a job)",
            f"own medians farm / hand  {own}  {same} within {MARGIN:.0%} and the noise of the pairs",
        ]
    )


def _row(name: str, blocks: Sequence[Block], jobs: int) -> str:
    medians = [median_us for block in blocks for median_us in block.medians_us]
    count = jobs * len(blocks)
    spread = (max(medians) - min(medians)) / median(medians)
    return (
        f"{name:<22}{count:>5}{_wall_s(blocks):>8.2f} s{_wall_s(blocks) / count:>8.3f} s"
        f"{median(medians) / 1000:>10.3f} ms{spread:>12.1%}"
    )


def _wall_s(blocks: Sequence[Block]) -> float:
    return sum(block.wall_s for block in blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two pairs of two short jobs: does it work?")
    quick = parser.parse_args().quick
    pairs, jobs, seconds = (2, 2, 0.2) if quick else (6, 5, 1.0)
    print(machine_facts())
    print(f"\n{pairs} pairs of blocks of {jobs} jobs, each about {seconds:g} s\n", flush=True)
    with rig(1) as bench:
        arms = measure(bench, pairs=pairs, jobs=jobs, seconds=seconds)
    print(report(arms, jobs=jobs))


if __name__ == "__main__":
    main()
