"""Questions about a farm, each with the ways in which it is asked and the answer is read."""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from benchfarm import Farm
from benchfarm.frames.frame import Frame
from farm.core.base.units import duration_text, ratio_text
from farm.core.results.statistics.verdict import verdict_text
from farm.core.runs.measurement import Verdict
from farm.presentation.cell_state import CellOutcome, cell_state, refusal_text
from farm.presentation.text import interval_text
from farm.wire.documents.files.programs import ProgramView
from farm.wire.documents.matrices.matrices import CellView
from farm.wire.documents.matrices.pending import MatrixPendingView
from tests.web.questions.reading import Page


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question: the command that answers it, and the page that does."""

    text: str
    #: Without `farm` and `--json`.
    command: str
    #: The answer as text, from the JSON document of the command.
    in_json: Callable[[Any], str]
    #: Whether the command's table has the same text.
    in_table: bool = True
    #: The answer of the Python client.
    in_python: Callable[[Farm], str]
    path: str
    on_page: Callable[[Page], str]


def cell(view: Any, place: int) -> CellView:
    """Return a cell of a matrix, by its place."""
    return CellView.model_validate(view["cell_list"][place])


def grid_cell(page: Page, name: str, device: str) -> str:
    """Return the text of a cell of a matrix's page."""
    return page.row(name)[device]


def refusal_of(text: str) -> str:
    """Return why a cell does not count: behind its state and runs, without the links to attempts."""
    return re.sub(r"(^|; )attempt \d+ ", r"\1", re.sub(r"^(\w+) \1 \d+ runs?(, \d+ cancelled)? ", "", text))


def why_refused(own: CellOutcome) -> str:
    """Return why a cell does not count, as a page shows it: its commands are code, not in quotes."""
    return refusal_text(own).replace("`", "")


def cause(view: Any, device: str) -> str:
    """Return why the jobs of a device wait: the reason that a person gave."""
    waiting = MatrixPendingView.model_validate(view)
    (found,) = (each for each in waiting.devices if each.device_id == device)
    return str(found.reasons[0].cause)


def ten_years_ago() -> datetime:
    return datetime.now(UTC) - timedelta(days=3650)


def starting(texts: Sequence[str], start: str) -> str:
    """Return the rest of the one text that begins so."""
    (found,) = (text for text in texts if text.startswith(start))
    return found.removeprefix(start)


def row(frame: Frame[Any], place: int = 0) -> dict[str, Any]:
    """Return a row of a frame by the names of its columns."""
    return frame.to_dicts()[place]


def counted(frame: Frame[Any]) -> int:
    """Return how many rounds of the first row do not count."""
    return int(row(frame)["of"] - row(frame)["n"])


def milliseconds_text(value: float) -> str:
    return duration_text(value * 1e6)


def reading(farm: Farm) -> Any:
    """Return what was read of attempt 9."""
    return farm.matrix(1).attempt(9).reading


def evidence(farm: Farm) -> Any:
    return farm.matrix(1).attempt(9).evidence


def programs(farm: Farm) -> Sequence[ProgramView]:
    """Return the programs of the harness that new matrices run."""
    return [each for each in farm.harnesses.get("speed_benchmark_torch").programs if each.in_use]


QUESTIONS = (
    Question(
        text="How many devices are free?",
        command="device list",
        in_json=lambda devices: str(sum(not device["blocked_by"] for device in devices)),
        in_python=lambda farm: str(sum(not device.blocked_by for device in farm.devices())),
        path="/",
        on_page=lambda page: next(chip.split()[0] for chip in page.chips if chip.endswith(" free")),
    ),
    Question(
        text="How many times as fast is int8-core on virtual-1, in matrix 1?",
        command="speedups 1",
        in_json=lambda views: ratio_text(views[0]["speedup"]),
        in_python=lambda farm: ratio_text(row(farm.speedups(matrix=1))["speedup"]),
        path="/speedups?matrix=1",
        on_page=lambda page: page.row("int8-core")["speedup"],
    ),
    Question(
        text="Within which interval?",
        command="speedups 1",
        in_json=lambda views: interval_text(views[0]["ci_low"], views[0]["ci_high"]),
        in_python=lambda farm: interval_text(
            *(row(farm.speedups(matrix=1))[name] for name in ("ci_low", "ci_high"))
        ),
        path="/speedups?matrix=1",
        on_page=lambda page: page.row("int8-core")["95 % interval"],
    ),
    Question(
        text="How many times as fast is int8-core over all devices?",
        command="speedups --by all --candidate int8-core",
        in_json=lambda views: ratio_text(views[0]["speedup"]),
        in_python=lambda farm: ratio_text(farm.group_speedups("all", candidate="int8-core")[0].speedup),
        path="/speedups?by=device&candidate=int8-core",
        on_page=lambda page: page.row("all devices (virtual)")["speedup"].split()[-1],
    ),
    Question(
        text="And on virtual-2 alone?",
        command="speedups --by device --candidate int8-core",
        in_json=lambda views: ratio_text(views[1]["speedup"]),
        in_python=lambda farm: ratio_text(farm.group_speedups("device", candidate="int8-core")[1].speedup),
        path="/speedups?by=device&candidate=int8-core",
        on_page=lambda page: page.row("virtual-2 (virtual)")["speedup"].split()[-1],
    ),
    Question(
        text="What did others measure of mobilenet_v2?",
        command="import results --model mobilenet_v2",
        in_json=lambda views: f"{views[0]['value']:.6g}",
        in_python=lambda farm: f"{farm.imports.results(model='mobilenet_v2').to_dicts()[0]['value']:.6g}",
        path="/imports/results?model=mobilenet_v2",
        on_page=lambda page: page.column("value")[0].split()[0],
    ),
    Question(
        text="Who imported it?",
        command="import list",
        in_json=lambda imports: str(imports[1]["imported_by"]),
        in_python=lambda farm: farm.imports.list()[-2].imported_by,
        path="/imports/2",
        on_page=lambda page: page.facts["imported"].rsplit(" by ")[-1],
    ),
    Question(
        text="What is the verdict?",
        command="speedups 1",
        in_json=lambda views: verdict_text(Verdict(views[0]["verdict"]), margin=views[0]["margin"]),
        in_python=lambda farm: verdict_text(
            farm.speedups(matrix=1)[0].verdict, margin=row(farm.speedups(matrix=1))["margin"]
        ),
        path="/speedups?matrix=1",
        on_page=lambda page: page.row("int8-core")["verdict"].removesuffix("*"),
    ),
    Question(
        text="How many rounds are left out on virtual-2?",
        command="speedups 1 --device virtual-2",
        in_json=lambda views: str(views[0]["excluded"]),
        in_python=lambda farm: str(counted(farm.speedups(matrix=1, device="virtual-2"))),
        path="/speedups?matrix=1&device=virtual-2",
        on_page=lambda page: page.row("int8-core")["left out"],
    ),
    Question(
        text="What is the median of int8-core on virtual-1?",
        command="matrix show 1",
        in_json=lambda view: duration_text(cell(view, 1).value_ns or 0),
        in_python=lambda farm: milliseconds_text(row(farm.results(1), 1)["time_ms"]),
        path="/matrices/1",
        on_page=lambda page: (
            grid_cell(page, "int8-core", "virtual-1").removeprefix("valid ").removesuffix(" 5 runs")
        ),
    ),
    Question(
        text="What came of int8-core on virtual-1 in matrix 2?",
        command="matrix show 2",
        in_json=lambda view: cell_state(cell(view, 1)),
        in_table=False,
        in_python=lambda farm: cell_state(farm.matrix(2).cells()[1]),
        path="/matrices/2",
        on_page=lambda page: grid_cell(page, "int8-core", "virtual-1").split()[0],
    ),
    Question(
        text="Of which quality are its measurements?",
        command="matrix show 2",
        in_json=lambda view: why_refused(cell(view, 1)),
        in_table=False,
        in_python=lambda farm: why_refused(farm.matrix(2).cells()[1]),
        path="/matrices/2",
        on_page=lambda page: refusal_of(grid_cell(page, "int8-core", "virtual-1")),
    ),
    Question(
        text="Why did it fail on virtual-2?",
        command="matrix show 2",
        in_json=lambda view: why_refused(cell(view, 3)),
        in_table=False,
        in_python=lambda farm: why_refused(farm.matrix(2).cells()[3]),
        path="/matrices/2",
        on_page=lambda page: refusal_of(grid_cell(page, "int8-core", "virtual-2")),
    ),
    Question(
        text="Why does matrix 3 wait on virtual-2?",
        command="matrix why 3",
        in_json=lambda view: cause(view, "virtual-2"),
        in_python=lambda farm: cause(farm.matrix(3).why(), "virtual-2"),
        path="/matrices/3",
        on_page=lambda page: page.lines[1].split(" hint: ")[0].rsplit(": ", 1)[1],
    ),
    Question(
        text="What is the newest matrix called?",
        command="matrix list",
        in_json=lambda matrices: str(matrices[0]["name"]),
        in_python=lambda farm: farm.matrices()[0].name,
        path="/matrices",
        on_page=lambda page: page.column("name")[0],
    ),
    Question(
        text="Who submitted matrix 1?",
        command="matrix show 1",
        in_json=lambda view: str(view["submitted_by"]),
        in_python=lambda farm: str(farm.matrix(1).view.submitted_by),
        path="/matrices/1",
        on_page=lambda page: page.facts["submitted"].rsplit(" by ")[-1],
    ),
    Question(
        text="How many jobs are queued?",
        command="matrix list",
        in_json=lambda matrices: str(sum(each["jobs_by_outcome"].get("queued", 0) for each in matrices)),
        in_python=lambda farm: str(sum(each.jobs_by_outcome.get("queued", 0) for each in farm.matrices())),
        path="/",
        on_page=lambda page: starting(page.headings, "Matrices ").split()[-2],
    ),
    Question(
        text="How many samples has attempt 9?",
        command="attempt show 9",
        in_json=lambda attempt: str(len(attempt["reading"]["samples_ns"])),
        in_python=lambda farm: str(len(reading(farm).samples_ns)),
        path="/attempts/9",
        on_page=lambda page: page.facts["time"].split(" samples")[0].split()[-1],
    ),
    Question(
        text="Within which time were 90 % of them?",
        command="attempt show 9",
        in_json=lambda attempt: duration_text(attempt["reading"]["p90_ns"]),
        in_python=lambda farm: duration_text(reading(farm).p90_ns or 0),
        path="/attempts/9",
        on_page=lambda page: page.facts["samples"].split("90 % within ")[1].split(",")[0],
    ),
    Question(
        text="Which accelerator ran it?",
        command="attempt show 9",
        in_json=lambda attempt: "{actual_backend}, {accelerator}".format(**attempt["reading"]),
        in_python=lambda farm: f"{reading(farm).actual_backend}, {reading(farm).accelerator}",
        path="/attempts/9",
        on_page=lambda page: page.facts["actual"].split(":")[0],
    ),
    Question(
        text="Which command was it?",
        command="attempt show 9",
        in_json=lambda attempt: shlex.join(attempt["evidence"]["argv"]),
        in_python=lambda farm: shlex.join(evidence(farm)["argv"]),
        path="/attempts/9",
        on_page=lambda page: page.code_below["Command"],
    ),
    Question(
        text="Which alarm is open?",
        command="alarms",
        in_json=lambda alarms: str(alarms[0]["message"]),
        in_python=lambda farm: farm.client.alarms()[0].message,
        path="/alarms",
        on_page=lambda page: starting(page.items, "regression: change 1 ").split(" farm ")[0],
    ),
    Question(
        text="Which Android has virtual-1?",
        command="device show virtual-1",
        in_json=lambda device: f"{device['android']} (API {device['api_level']})",
        in_table=False,
        in_python=lambda farm: "{0.android} (API {0.api_level})".format(farm.devices("virtual-1")[0]),
        path="/devices/virtual-1",
        on_page=lambda page: page.facts["Android"],
    ),
    Question(
        text="Which hosts are there?",
        command="host list",
        in_json=lambda hosts: " ".join(host["host_id"] for host in hosts),
        in_python=lambda farm: " ".join(host.host_id for host in farm.client.hosts()),
        path="/hosts",
        on_page=lambda page: " ".join(page.column("host")),
    ),
    Question(
        text="Which file is int8-core?",
        command="variant list",
        in_json=lambda variants: str(variants[1]["manifest"]["digest"])[:12],
        in_python=lambda farm: farm.variants.get("mobilenet_v2/int8-core/torchscript").manifest.digest[:12],
        path="/variants",
        on_page=lambda page: page.row("mobilenet_v2/int8-core/torchscript")["digest"],
    ),
    Question(
        text="What was the last speedup of int8-core on virtual-1?",
        command="history show mobilenet_v2 --device virtual-1 --variant int8-core",
        in_json=lambda series: ratio_text(series[0]["points"][-1]["speedup"]),
        in_python=lambda farm: ratio_text(
            row(farm.history(device="virtual-1", variant="int8-core"), -1)["speedup"]
        ),
        path="/history?model=mobilenet_v2&device=virtual-1&variant=int8-core",
        on_page=lambda page: page.column("speedup")[0],
    ),
    Question(
        text="How many regressions were found?",
        command="regressions",
        in_json=lambda changes: str(len(changes)),
        in_python=lambda farm: str(len(farm.regressions())),
        path="/changes",
        on_page=lambda page: str(len(page.column("change"))),
    ),
    Question(
        text="Which of them has the file as its cause?",
        command="regressions --cause file --state new",
        in_json=lambda changes: str(changes[0]["change_id"]),
        in_python=lambda farm: str(row(farm.regressions(cause="file", state="new"))["change_id"]),
        path="/changes?cause=file&state=new",
        on_page=lambda page: page.column("change")[0],
    ),
    Question(
        text="Which alarm was raised in the last ten years?",
        command="alarms --since 10y --limit 1",
        in_json=lambda alarms: str(alarms[0]["message"]),
        in_python=lambda farm: farm.client.alarms(since=ten_years_ago(), limit=1)[0].message,
        path="/alarms?since=10y",
        on_page=lambda page: starting(page.items, "regression: change 1 ").split(" farm ")[0],
    ),
    Question(
        text="How many times as fast is float32 as int8-core, which no matrix planned?",
        command="speedups 1 --baseline int8-core --candidate float32 --limit 1",
        in_json=lambda views: ratio_text(views[0]["speedup"]),
        in_python=lambda farm: ratio_text(
            row(farm.speedups(matrix=1, baseline="int8-core", candidate="float32", limit=1))["speedup"]
        ),
        path="/speedups?matrix=1&baseline=int8-core&candidate=float32",
        on_page=lambda page: page.row("float32")["speedup"],
    ),
    Question(
        text="Which program of the harness is in use?",
        command="harness list",
        in_json=lambda programs: next(each["digest"] for each in programs if each["in_use"])[:12],
        in_python=lambda farm: programs(farm)[0].digest[:12],
        path="/harnesses",
        on_page=lambda page: page.row("speed_benchmark_torch")["program"].split()[-1],
    ),
)
