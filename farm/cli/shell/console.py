"""The consoles of commands: those of rich, which replace control characters in the texts that they show."""

import os
import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from farm.presentation.printable import printable

#: Minimum width of tables; a narrower terminal wraps the lines.
MIN_WIDTH = 80
#: Width of output that is not on a terminal and has no COLUMNS, so that a row stays one line.
PIPED_WIDTH = 200


class PrintableConsole(Console):
    """A console that obeys its own control sequences only, none within a text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Draw as rich does, with control characters in texts replaced."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def console(*, stderr: bool) -> Console:
    """Return the console for stdout or stderr, as wide as its terminal."""
    made = PrintableConsole(stderr=stderr, highlight=False)
    stream = sys.stderr if stderr else sys.stdout
    if not stream.isatty() and not os.environ.get("COLUMNS"):
        made.width = PIPED_WIDTH
    made.width = max(MIN_WIDTH, made.width)
    return made
