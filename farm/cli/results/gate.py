"""`--gate`: what every comparison must show, for scripts that ask for a yes or no."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import typer

from farm.cli.matrices.labels import device_name
from farm.cli.shell.output import print_notice
from farm.core.base.units import ratio_text
from farm.core.errors import InvalidInput
from farm.wire.documents.matrices.matrices import SpeedupView

#: Beside those of `farm.core.errors.Blame`: everything ran, and the answer is no.
GATE_EXIT_CODE = 7


class Gate(StrEnum):
    """What every candidate must show."""

    #: The lower end of its interval is above 1 / (1 + margin).
    NOT_SLOWER = "not-slower"


GateOption = Annotated[
    Gate | None,
    typer.Option(
        "--gate",
        help="Exit with 7 unless every candidate is shown to be `not-slower` than the margin allows.",
    ),
]


def check_gate_is_watched(gate: Gate | None, *, watch: bool) -> None:
    """Refuse a gate for numbers that are not waited for.

    Raises:
        InvalidInput: there is a gate, and no watching.
    """
    if gate is not None and not watch:
        raise InvalidInput("--gate asks for numbers that are not there yet", hint="add --watch")


def check_gate(gate: Gate | None, views: Iterable[SpeedupView]) -> int:
    """Say which rows do not pass, and return the exit code; A/A pairs are not asked."""
    if gate is None:
        return 0
    asked = [view for view in views if not view.aa]
    failed = [view for view in asked if not view.not_slower]
    for view in failed:
        low = (
            "there is no interval"
            if view.ci_low is None
            else f"the interval begins at {ratio_text(view.ci_low)}"
        )
        needed = ratio_text(1 / (1 + view.margin))
        where = f"{view.candidate} on {device_name(view)}"
        print_notice(f"gate {gate}: {where} does not pass: {low}, above {needed} is needed")
    if not asked:
        print_notice(f"gate {gate}: nothing is compared")
    return GATE_EXIT_CODE if failed or not asked else 0
