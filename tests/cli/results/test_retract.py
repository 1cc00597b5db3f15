"""`farm retract`: what it asks for, and what it says of measurements that are retracted already."""

import pytest

from tests.cli.matrices.test_matrix import Measured, measured, original, run

__all__ = ["measured", "original"]


def test_a_retraction_and_its_undoing_say_what_changed(
    measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    retracted = ("retract", "--matrix", 1, "--reason", "hot", "--yes")
    for words, said in (
        (retracted, " retracted."),
        (retracted, "Nothing changed: all of them are retracted already."),
        ((*retracted, "--undo"), " count again."),
        ((*retracted, "--undo"), "Nothing changed: all of them count already."),
    ):
        assert run(*words) == 0
        assert capsys.readouterr().err.strip().endswith(said)


@pytest.mark.parametrize(("option", "why"), [((), "wrong"), (("--undo",), "right after all")])
def test_a_missing_reason_is_asked_for_by_what_was_typed(
    capsys: pytest.CaptureFixture[str], option: tuple[str, ...], why: str
) -> None:
    assert run("retract", "--matrix", 1, *option) == 2
    assert f'hint: --reason "why these numbers are {why}"' in capsys.readouterr().err
