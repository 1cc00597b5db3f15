"""How well changes are found in histories of a second simulator, which knows the columns of points alone.

    .venv/bin/python -m benchmarks.independent_histories [COUNT] [SEED] [-v] [--jobs N]

Each history is one farm (`independent_farm.py`) with none or some changes (`independent_changes.py`), as the
CSV (`independent_points.py`) that `farm history detect` reads, and is scored by `independent_score.py`, which
says what counts as right. History k has the seed SEED + k; `--keep FOLDER` keeps its points and what was told
of them. With `-v`, each change that is missed and each that is wrong is printed. Of the first histories
(`--ahead N`), the points up to each day on which a change was told are read again: what is told by then must
be the same. The first one is also read by the command itself.
"""

import argparse
import io
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

from benchmarks.independent_changes import SIZES, ChangeKind
from benchmarks.independent_points import SimulatedHistory, history
from benchmarks.independent_score import HistoryScore, Judgement, ShownChange, Told, score
from benchmarks.version_search import wilson_interval
from farm.cli.results.history_detect import change_document
from farm.core.results.history.changes.detect import detect
from farm.core.results.history.points_from_csv import point_table

Documents = Sequence[Mapping[str, object]]


def told_of(points: str) -> Documents:
    """Return what `farm history detect --json` prints for a file, by the same functions."""
    table = point_table(io.StringIO(points))
    return [change_document(change, table.day_labels) for change in detect(table.points)]


def told_by_command(points: str) -> Documents:
    """Return what the command prints."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "points.csv"
        file.write_text(points, encoding="utf-8")
        command = [str(Path(sys.executable).parent / "farm"), "history", "detect", str(file), "--json"]
        printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    documents: Documents = json.loads(printed)
    return documents


def looks_ahead(simulated: SimulatedHistory, told: Documents) -> Iterator[str]:
    """Yield the days up to which the points tell other changes than all points tell of these days."""
    for day in sorted({str(document["told"]) for document in told}):
        if told_of(simulated.csv(until=day)) != [each for each in told if str(each["told"]) <= day]:
            yield day


def play(seed: int) -> tuple[SimulatedHistory, Documents, HistoryScore]:
    """Simulate a history, find its changes, and score them."""
    simulated = history(seed)
    told = told_of(simulated.csv())
    return simulated, told, score(simulated, told)


def share_text(hits: int, count: int) -> str:
    """Return a share with its interval and its numbers."""
    if not count:
        return "-"
    low, high = wilson_interval(hits, count)
    return f"{hits / count:6.1%}  [{low:.1%}, {high:.1%}]  {hits} of {count}"


def report(scores: Sequence[HistoryScore]) -> Iterator[str]:
    """Yield the lines of the table."""
    found = [pair for each in scores for pair in each.right]
    missed = [true for each in scores for true in each.missed]
    worths = Counter(worth for each in scores for _, worth, _ in each.told)
    yield f"{'precision':34}{share_text(worths[Judgement.RIGHT], worths.total())}"
    for worth in list(Judgement)[1:]:
        yield f"{'  ' + worth.value:34}{worths[worth]:4}"
    yield f"{'right cause':34}{_causes(found)}"
    yield from _recalls(found, missed)
    steps = [true.sessions_until(told.told) for told, true in found if not _is_drift(true)]
    drifts = [true.sessions_until(told.told) for told, true in found if _is_drift(true)]
    yield f"{'sessions until told, steps':34}{_median(steps)}"
    yield f"{'sessions until told, drifts':34}{_median(drifts)}"
    quiet = [each for each in scores if each.is_quiet]
    months, alarms = sum(each.series_months for each in quiet), sum(len(each.told) for each in quiet)
    yield (
        f"{'false alarms / 1000 series-months':34}{1000 * alarms / months if months else 0:6.2f}  "
        f"{alarms} in {months:.0f} series-months of {len(quiet)} histories without a change"
    )


def _recalls(found: Sequence[tuple[Told, ShownChange]], missed: Sequence[ShownChange]) -> Iterator[str]:
    """Yield recall by size, by size of steps alone, and by kind with the share of right causes."""

    def recall(name: str, found: Sequence[ShownChange], missed: Sequence[ShownChange]) -> str:
        return f"{name:34}{share_text(len(found), len(found) + len(missed))}"

    are_found = [true for _, true in found]
    for title, sizes in (("3 %", SIZES[:1]), ("5 %", SIZES[1:2]), ("10 % and more", SIZES[2:])):
        sized = [[true for true in each if true.change.size in sizes] for each in (are_found, missed)]
        yield recall(f"recall, {title}", *sized)
        yield recall(f"  steps, {title}", *([true for true in each if not _is_drift(true)] for each in sized))
    for kind in ChangeKind:
        of_kind = [[true for true in each if true.change.kind is kind] for each in (are_found, missed)]
        causes = _causes([pair for pair in found if pair[1].change.kind is kind])
        yield f"{recall(kind.value, *of_kind)}; cause {causes}"


def _causes(found: Sequence[tuple[Told, ShownChange]]) -> str:
    return share_text(sum(told.cause == true.change.kind.cause for told, true in found), len(found))


def _is_drift(true: ShownChange) -> bool:
    return true.change.kind.cause == "drift"


def _median(sessions: Sequence[int]) -> str:
    return f"{median(sessions):6.1f}  (median of {len(sessions)})" if sessions else "-"


def details(result: HistoryScore) -> Iterator[str]:
    """Yield a line for each change that was missed or told wrongly, and for right ones of another cause."""
    for missed in result.missed:
        yield f"  seed {result.seed} missed: {missed}"
    for told, worth, true in result.told:
        if worth is not Judgement.RIGHT:
            yield f"  seed {result.seed} {worth}: {told}" + ("" if true is None else f" | true: {true}")
        elif true is not None and told.cause != true.change.kind.cause:
            yield f"  seed {result.seed} other cause: {told} | true: {true}"


def _played(seeds: Sequence[int], jobs: int) -> Iterable[tuple[SimulatedHistory, Documents, HistoryScore]]:
    if jobs == 1:
        yield from map(play, seeds)
        return
    with ProcessPoolExecutor(jobs) as processes:
        yield from processes.map(play, seeds)


def main() -> None:
    """Play histories, and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("count", nargs="?", type=int, default=5)
    parser.add_argument("seed", nargs="?", type=int, default=1)
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="list what was missed and what was wrong"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--ahead", type=int, default=3, metavar="N", help="histories whose promises are checked"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="for points and what was told of them")
    arguments = parser.parse_args()
    scores = []
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    for number, (simulated, told, result) in enumerate(_played(seeds, arguments.jobs)):
        scores.append(result)
        worths = Counter(worth is Judgement.RIGHT for _, worth, _ in result.told)
        print(
            f"seed {result.seed}: {simulated.farm.days} days, {len(simulated.farm.phones)} phones,"
            f" {len(simulated.farm.noise_by_series)} series, {len(simulated.rows)} points,"
            f" {len(simulated.changes)} changes: {worths[True]} right, {worths[False]} wrong,"
            f" {len(result.missed)} missed",
            flush=True,
        )
        if arguments.verbose:
            print("".join(f"{line}\n" for line in details(result)), end="", flush=True)
        if arguments.keep is not None:
            arguments.keep.mkdir(parents=True, exist_ok=True)
            (arguments.keep / f"{result.seed}.csv").write_text(simulated.csv(), encoding="utf-8")
            (arguments.keep / f"{result.seed}.json").write_text(json.dumps(told), encoding="utf-8")
        if number == 0:
            agrees = told_by_command(simulated.csv()) == told
            print(f"  the command prints {'the same' if agrees else 'SOMETHING ELSE'}")
        if number < arguments.ahead:
            days = list(looks_ahead(simulated, told))
            print(f"  looks ahead: {', '.join(days) or 'never'}, by {len(told)} changes")
    print("\n".join(report(scores)))


if __name__ == "__main__":
    main()
