"""Watching a matrix: what is said, when, and what happens when the farm goes away."""

import io
from collections.abc import Callable, Iterator

import pytest
from rich.console import Console

from farm.cli.matrices.report import jobs_line, progress_line
from farm.cli.matrices.watch import progress_bars, status_line, watch_changes, watch_matrix
from farm.core.errors import FarmUnreachable, NotFound
from farm.wire.documents.matrices.matrices import MatrixView
from tests.support.sample_views import NOON, matrix_view, progress

RUNNING = matrix_view(progress=(progress(),))
LATER = matrix_view(progress=(progress(finished=13),), eta_s=60.0)
FINISHED = matrix_view(
    progress=(progress(finished=20, current=None),), state="finished", finished_at=NOON.replace(minute=2)
)


def answers(*script: MatrixView | Exception) -> Callable[[], MatrixView]:
    """A farm that gives these answers, one a look."""
    left: Iterator[MatrixView | Exception] = iter(script)

    def look() -> MatrixView:
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return look


def watched(
    look: Callable[[], MatrixView], *, terminal: bool = False, **options: float
) -> tuple[MatrixView, str]:
    stream = io.StringIO()
    console = Console(file=stream, width=120, force_terminal=terminal, color_system=None, highlight=False)
    view = watch_matrix(look, console, **{"poll_s": 0.0, "line_every_s": 0.0, **options})
    return view, stream.getvalue()


def test_without_a_terminal_a_line_is_written_when_something_changed() -> None:
    view, text = watched(answers(RUNNING, RUNNING, LATER, FINISHED))
    assert view == FINISHED
    assert text.splitlines() == [
        "matrix 3: 12 of 20 jobs, about 2 min 5 s left | phone-1: 12 of 20, running float32 lite",
        "matrix 3: 13 of 20 jobs, about 1 min 0 s left | phone-1: 13 of 20, running float32 lite",
        "matrix 3: 20 of 20 jobs, finished after 2 min 0 s",
    ]


def test_without_a_terminal_phones_that_only_take_turns_add_no_lines() -> None:
    waits = progress(finished=12, current=None, waiting_for=("another device on the same CPU is busy",))
    _, text = watched(answers(RUNNING, matrix_view(progress=(waits,)), RUNNING, FINISHED))
    assert [line.split(" jobs")[0] for line in text.splitlines()] == [
        "matrix 3: 12 of 20",
        "matrix 3: 20 of 20",
    ]


def test_without_a_terminal_lines_are_kept_apart_but_the_end_is_said_at_once() -> None:
    _, text = watched(answers(RUNNING, LATER, FINISHED), line_every_s=3600.0)
    assert [line.split(" jobs")[0] for line in text.splitlines()] == [
        "matrix 3: 12 of 20",
        "matrix 3: 20 of 20",
    ]


def test_a_farm_that_goes_away_is_tried_again_without_a_traceback() -> None:
    view, text = watched(answers(RUNNING, FarmUnreachable("gone"), FarmUnreachable("gone"), FINISHED))
    assert view == FINISHED
    assert text.count("the farm does not answer, retrying") == 1


def test_a_farm_that_stays_away_ends_the_watch_with_its_error() -> None:
    with pytest.raises(FarmUnreachable):
        watched(answers(RUNNING, FarmUnreachable("gone")), timeout_s=-1.0)


def test_a_farm_that_was_never_there_is_not_waited_for() -> None:
    with pytest.raises(FarmUnreachable):
        watched(answers(FarmUnreachable("no farm")))


def test_a_matrix_that_does_not_exist_is_not_waited_for() -> None:
    with pytest.raises(NotFound):
        watched(answers(NotFound("no matrix 3")))


def test_on_a_terminal_there_is_a_bar_for_each_device() -> None:
    view, text = watched(answers(RUNNING, FINISHED), terminal=True)
    assert view == FINISHED
    assert "12/20" in text
    assert "20/20" in text


def test_bars_say_what_runs_and_why_nothing_does() -> None:
    stream = io.StringIO()
    Console(file=stream, width=120).print(progress_bars(matrix_view()))
    text = stream.getvalue()
    assert "12/20 running float32 lite" in text
    assert "12/20 waiting: another device on the same CPU is busy" in text
    assert "matrix 3: 24 of 40 jobs, about 2 min 5 s left" in text


def test_before_jobs_have_ended_no_one_knows_how_long_it_takes() -> None:
    assert status_line(matrix_view(eta_s=None)).endswith("time left unknown")


def test_a_total_that_grew_is_explained() -> None:
    devices = (progress(total=14), progress(device_id="phone-2", total=12))
    view = matrix_view(rounds=5, cells=4, jobs=26, repeated_blocks=3, progress=devices)
    assert status_line(view).startswith("matrix 3: 24 of 26 jobs (3 blocks repeated), about")
    assert jobs_line(view).startswith("26 jobs (3 blocks repeated): 24 succeeded")
    assert "again" not in status_line(RUNNING)


def test_a_matrix_that_grows_says_how_much_there_may_be() -> None:
    devices = (progress(total=20, finished=20, max_total=160), progress(device_id="phone-2", finished=4))
    view = matrix_view(rounds=5, max_rounds=40, progress=devices, max_eta_s=999.0)
    assert status_line(view) == "matrix 3: 24 of 40 to 180 jobs, about 2 min 5 s to 16 min 39 s left"
    assert progress_line(devices[0]) == "phone-1: 20 of 20 to 160, looking at its rounds"


def test_cancelled_jobs_are_not_counted_as_done() -> None:
    devices = (progress(finished=20, cancelled=14), progress(device_id="phone-2", finished=20, cancelled=16))
    view = matrix_view(progress=devices, state="cancelled", finished_at=NOON.replace(minute=2))
    assert status_line(view) == "matrix 3: 10 of 40 jobs, 30 cancelled, cancelled after 2 min 0 s"


def test_each_change_is_told_once_and_how_long_it_takes_is_none() -> None:
    told: list[MatrixView] = []
    slower = RUNNING.model_copy(update={"eta_s": 999.0})
    gone = FarmUnreachable("gone")
    script = answers(RUNNING, RUNNING, slower, gone, LATER, FINISHED)
    assert watch_changes(script, told.append, poll_s=0.0) == FINISHED
    assert told == [RUNNING, LATER, FINISHED]


def test_when_nothing_moves_for_a_while_it_is_said_how_to_learn_why() -> None:
    assert "why" not in status_line(RUNNING, idle_s=60.0)
    line = status_line(RUNNING, idle_s=125.0)
    assert "; no job began or ended for 2 min 5 s: " in line
    assert line.endswith("farm matrix why 3")
