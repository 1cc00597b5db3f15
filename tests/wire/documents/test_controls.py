"""Controls as users write them."""

from typing import Any

import pytest

from farm.core.devices.controls import Controls, Screen
from farm.core.errors import MatrixInvalid
from farm.wire.documents.matrices.matrix import matrix_spec
from tests.support.farm.matrix_text import matrix_from_text

SMALLEST = {"name": "small", "harness": "speed_benchmark_torch", "devices": "all"}
TEXT = "name: small\nharness: speed_benchmark_torch\ndevices: all\n"


def controls_of(written: dict[str, Any]) -> Controls:
    return matrix_spec({**SMALLEST, "controls": written}).controls


def test_a_matrix_without_controls_has_those_of_every_run() -> None:
    assert matrix_spec(SMALLEST).controls == Controls()


def test_what_is_written_is_what_plans_carry() -> None:
    written = {"stay_awake": False, "screen": "off", "cores": "big", "governor": "performance"}
    more = {"min_hz": 10**9, "max_hz": 2 * 10**9, "online": "0-3"}
    assert controls_of({**written, **more}) == Controls(
        stay_awake=False,
        screen=Screen.OFF,
        cores="big",
        governor="performance",
        min_hz=10**9,
        max_hz=2 * 10**9,
        online="0-3",
    )


def test_the_same_cores_are_the_same_text_however_they_are_listed() -> None:
    assert controls_of({"cores": "7,4,5-6", "online": "4-7"}).cores == "4-7"


@pytest.mark.parametrize(
    ("word", "screen"), [("on", Screen.ON), ("off", Screen.OFF), ("leave", Screen.LEAVE)]
)
def test_yamls_words_for_true_and_false_are_those_of_a_screen(word: str, screen: Screen) -> None:
    spec = matrix_from_text(f"{TEXT}controls:\n  screen: {word}\n")
    assert spec.controls.screen is screen


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"cores": "huge"}, "one of any, little, big, prime"),
        ({"cores": "7-4"}, "or a list such as 4-7"),
        ({"cores": 4}, "controls.cores"),
        ({"online": "none"}, "no list of cores"),
        ({"governor": "Performance; rm -rf /"}, "controls.governor"),
        ({"min_hz": 2 * 10**9, "max_hz": 10**9}, "min_hz is above max_hz"),
        ({"max_hz": 1800}, "controls.max_hz"),
        ({"cores": "4-7", "online": "0-3"}, "cores that are not to be online"),
        ({"core": "big"}, "cores"),
        ({"screen": "dim"}, "'on', 'off' or 'leave'"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(written: dict[str, Any], said: str) -> None:
    with pytest.raises(MatrixInvalid) as refused:
        matrix_spec({**SMALLEST, "controls": written})
    assert said in f"{refused.value.message} {refused.value.hint}"
