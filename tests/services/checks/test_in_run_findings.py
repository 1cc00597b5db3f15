"""What happened during a run decides about its measurement, repeats its block, and is kept narrowly."""

import json
from dataclasses import replace

import pytest

from farm.cli.devices.report import ceiling_text
from farm.cli.results.explain import cell_report, number_report
from farm.core.runs.evidence import Evidence
from farm.services.checks.device_detail import device_detail
from farm.services.results.explanations.attempts import attempt_view
from farm.services.results.explanations.cells import explain_cell
from farm.services.results.explanations.jobs import explain_job
from farm.services.results.placements import list_placements
from farm.wire.agents.protocol import Assignment
from tests.services.results.settle.test_settle_batch import hosted
from tests.support.farm.service_fixture import FarmRig, good_evidence

_HEAD = "trace 1\nstart 100.00\npause 0.5\npolicy policy4 300000 2367000 4 5 6 7\ngpu kgsl 800000000\n"
_COLUMNS = "columns limit:policy4 clock:policy4 cores swap utime stime core\n"


def trace_of(*limits_khz: int, swaps_kb: tuple[int, ...] = ()) -> str:
    """The trace of a busy process, a sample each 10 ms, of which all is measured."""
    swaps = swaps_kb or (0,) * len(limits_khz)
    samples = (
        f"s {100 + (place + 1) / 100:.2f} {khz} {khz} 4-7 {swap} {place + 1} 0 5 .\n"
        for place, (khz, swap) in enumerate(zip(limits_khz, swaps, strict=True))
    )
    end = f"end {100 + (len(limits_khz) + 1) / 100:.2f}\n"
    return _HEAD + _COLUMNS + "".join(samples) + end


FULL, LOW = 2_367_000, 1_418_000


@pytest.mark.fault(46)
@pytest.mark.parametrize(
    ("quality", "text"),
    [
        ("capped", trace_of(FULL, LOW, LOW, LOW, FULL)),
        ("swapped", trace_of(FULL, FULL, FULL, FULL, FULL, swaps_kb=(0, 0, 0, 9000, 9000))),
    ],
)
def test_it_repeats_the_block_once_it_is_over(farm: FarmRig, quality: str, text: str) -> None:
    host, disturbed = hosted(farm, 1), [text]

    def disturbed_once(assignment: Assignment) -> Evidence:
        trace = disturbed.pop() if disturbed else trace_of(FULL, FULL, FULL, FULL, FULL)
        return replace(good_evidence(assignment, sample_us=10_000.0), trace=trace)

    host.run(disturbed_once)
    rows = farm.rows("SELECT attempt_id, quality, repeat, ceilings FROM measurements ORDER BY measurement_id")
    assert (rows[0]["quality"], rows[0]["repeat"]) == (quality, 0)
    assert {row["quality"] for row in rows[1:]} == {"valid"}
    assert max(row["repeat"] for row in rows) == 1
    view = farm.read(attempt_view, rows[0]["attempt_id"])
    assert view.trace is not None
    assert len(view.trace.samples) == 5
    kept = [
        json.loads(row["ceilings"]) if isinstance(row["ceilings"], str) else row["ceilings"] for row in rows
    ]
    assert [ceiling["name"] for ceiling in kept[0]] == (["policy4"] if quality == "capped" else [])
    assert kept[-1] == []
    count = sum(view.capped for view in farm.read(list_placements))
    limits = farm.read(device_detail, "phone-0").ceilings
    if quality == "swapped":
        assert (count, limits) == (0, ())
        return
    assert count == 1
    (limit,) = limits
    assert (limit.name, limit.lowest_hz, limit.limited_runs) == ("policy4", LOW * 1000, 1)
    assert limit.runs == len(rows)
    said = "policy4 down to 1.42 of 2.37 GHz in 1 of "
    assert said in ceiling_text(limit)


def test_the_explanations_of_a_capped_run_and_of_its_cell_draw_what_happened(farm: FarmRig) -> None:
    host, capped = hosted(farm, 1), [trace_of(FULL, LOW, LOW, LOW, FULL)]

    def capped_once(assignment: Assignment) -> Evidence:
        trace = capped.pop() if capped else trace_of(FULL, FULL, FULL, FULL, FULL)
        return replace(good_evidence(assignment, sample_us=10_000.0), trace=trace)

    host.run(capped_once)
    first, last = farm.rows(
        "SELECT job_id, cell_id, attempt_id FROM measurements WHERE measurement_id = 1"
        " OR measurement_id = (SELECT max(measurement_id) FROM measurements) ORDER BY measurement_id"
    )
    cell = cell_report(farm.read(explain_cell, first["cell_id"])).plain
    number = number_report(farm.read(explain_job, first["job_id"])).plain
    assert f"attempt {first['attempt_id']}, capped: " in cell
    for text in (cell, number):
        (strip,) = [line for line in text.splitlines() if "policy4 limit" in line]
        assert strip.endswith("1.42 to 2.37 of 2.37 GHz")
        assert "▅" in strip
        assert len(strip) <= 80
    assert "policy4 limit" not in number_report(farm.read(explain_job, last["job_id"])).plain


def test_a_reference_run_that_was_capped_is_not_assessed(farm: FarmRig) -> None:
    host = farm.host()
    host.plug_in("phone-0")

    def capped(assignment: Assignment) -> Evidence:
        evidence = good_evidence(assignment)
        timed = "reference 16 0 16000000\n" * 5
        return replace(evidence, stdout=evidence.stdout + timed, trace=trace_of(FULL, LOW, LOW, LOW, FULL))

    host.run(capped)
    (row,) = farm.rows("SELECT verdict, unfit_reasons FROM reference_runs")
    assert row["verdict"] == "unfit"
    assert "during: policy4 was limited to 1.42 of 2.37 GHz" in row["unfit_reasons"]


def test_a_run_of_an_agent_that_samples_nothing_is_as_before(farm: FarmRig) -> None:
    host = hosted(farm, 1)
    host.run(good_evidence)
    rows = farm.rows("SELECT quality, ceilings FROM measurements")
    assert {(row["quality"], row["ceilings"]) for row in rows} == {("valid", None)}
