"""Cells of matrices that set what needs root, on phones that have none."""

from dataclasses import replace

import pytest

from farm.core.devices.controls import Controls
from farm.core.devices.selector import KnownDevice
from farm.core.matrices.matrix import RejectionKind
from tests.core.matrices.expansion.test_expansion import device, expanded, refusal


def rooted(device_id: str, root: bool | None) -> KnownDevice:
    known = device(device_id)
    return replace(known, facts=replace(known.facts, root=root))


@pytest.mark.parametrize(
    ("controls", "named"),
    [
        (Controls(governor="performance"), "governor"),
        (Controls(max_hz=10**9, online="0-3"), "max_hz, online"),
    ],
)
def test_phones_known_to_lack_root_are_left_out_with_the_reason(controls: Controls, named: str) -> None:
    phones = [rooted("without", False), rooted("with", True), rooted("silent", None)]
    answer = expanded(devices=phones, controls=controls)
    assert {cell.device_id for cell in answer.cells} == {"with", "silent"}
    assert {(cell.device_id, cell.rejection, cell.reason) for cell in answer.rejected} == {
        ("without", RejectionKind.UNSUPPORTED, f"the phone has no root, without which nothing sets {named}")
    }
    assert "root: true" in answer.rejected[0].hint


def test_a_matrix_that_only_phones_without_root_would_run_is_refused_with_their_names() -> None:
    phones = [rooted(f"phone-{number}", False) for number in range(12)]
    answer = refusal(devices=phones, controls=Controls(governor="performance"))
    assert answer.message.startswith(
        "matrix: none of its cells can run: the phone has no root, without which nothing sets governor"
        " (phone-0, phone-1,"
    )
    assert answer.message.endswith("phone-9 and 2 more)")
    assert "`devices: {root: true}`" in answer.hint


def test_what_needs_no_root_runs_on_phones_without_it() -> None:
    answer = expanded(devices=[rooted("without", False)], controls=Controls(cores="0-1", stay_awake=False))
    assert answer.rejected == ()
