"""The harness of a file: the one that is named for its format, or the only one that runs it."""

from collections.abc import Sequence
from pathlib import Path

from farm.blobs.inspection import check_model_file
from farm.cli.run.model_file import named_variant
from farm.client.farm_client import FarmClient
from farm.core.errors import InvalidInput
from farm.core.models.variant import Format
from farm.wire.documents.files.programs import HarnessView


class HarnessChoice:
    """Chooses harnesses for files of one command."""

    def __init__(self, farm: FarmClient, names: Sequence[str]) -> None:
        """Prepare the choice.

        Args:
            farm: the farm that has them.
            names: those that the user names; empty: those of the farm that have a program.

        Raises:
            NotFound: there is no such harness.
        """
        self._farm = farm
        self._named = [farm.harness(name) for name in names]

    def harness_of(self, word: str) -> HarnessView:
        """Return the harness of a file or variant; nothing is registered.

        Raises:
            NotFound: there is no such file or variant.
            InvalidInput: it is not a model file, no harness runs it, or several do.
        """
        if len(self._named) == 1:
            return self._named[0]
        format = self._format_of(word)
        fitting = {harness.name: harness for harness in self._named if format in harness.formats}
        names = list(fitting) if self._named else self._registered(format)
        if len(names) == 1:
            return fitting[names[0]] if self._named else self._farm.harness(names[0])
        if names:
            hint = f"--harness {' or --harness '.join(names)}"
            raise InvalidInput(f"several harnesses run {word}, a file of format {format}", hint=hint)
        hint = "--harness NAME; `farm harness list` has the names, `farm harness add` registers programs"
        raise InvalidInput(f"no harness for {word}: no program is registered that runs {format}", hint=hint)

    def _format_of(self, word: str) -> Format:
        path = Path(word)
        if path.is_file():
            return check_model_file(path)
        return named_variant(self._farm.variants(), word).manifest.recipe.format

    def _registered(self, format: Format) -> list[str]:
        return [own.name for own in self._farm.adapters() if own.abis and format in own.formats]


def joined_harness(harnesses: Sequence[HarnessView]) -> HarnessView:
    """Return the flags of several harnesses as those of one; of flags of one name, those of the first."""
    flags = {flag.name: flag for harness in reversed(harnesses) for flag in harness.flags}
    names = ", ".join(harness.name for harness in harnesses)
    return harnesses[0].model_copy(update={"name": names, "flags": tuple(flags.values())})
