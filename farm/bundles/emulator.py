"""Start a program for arm64 once, under qemu's user emulation: that it runs, never how fast."""

from collections.abc import Sequence
from pathlib import Path

from farm.bundles.commands import Run, reason
from farm.bundles.workshop import BundleRecipe
from farm.core.errors import InvalidInput
from farm.core.programs.bundle import ARGUMENTS_WORD, PROGRAM_WORD

EMULATOR = "qemu-aarch64-static"
EMULATOR_HINT = "a built program is started once before it is registered: `apt install qemu-user-static`"
_DEADLINE_S = 300


def started_command(recipe: BundleRecipe, folder: Path, arguments: Sequence[str]) -> list[str]:
    """Return the command that starts a bundle's program under the emulator, as a phone would start it."""
    words: list[str] = []
    for word in recipe.command:
        if word == ARGUMENTS_WORD:
            words += arguments
        else:
            program = str(folder / recipe.entry)
            words.append(program if word == PROGRAM_WORD else word.replace("${work}", str(folder)))
    return [EMULATOR, *words]


def start_once(recipe: BundleRecipe, folder: Path, run: Run) -> None:
    """Start a built program.

    Raises:
        InvalidInput: it does not start.
    """
    command = started_command(recipe, folder, recipe.start_arguments)
    done = run(["timeout", str(_DEADLINE_S), *command])
    printed = f"{done.stdout}{done.stderr}"
    if done.returncode != recipe.start_exit_code or recipe.start_text not in printed:
        raise InvalidInput(
            f"{recipe.entry} was built, and does not start under {EMULATOR}: {reason(done)}",
            hint="nothing was registered; report this with the versions of `farm harness build`",
        )
