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
#: A Cortex-A76, as the kernel of a phone describes it.
_CPU = """processor\t: {number}
BogoMIPS\t: 100.00
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0b
CPU revision\t: 1

"""
_CPUS = 2
#: All that the emulator has except SVE, with which (7.2) XNNPACK's int8 kernels computed other numbers.
_CPU_OPTIONS = ("-cpu", "max,sve=off")


def start_once(recipe: BundleRecipe, folder: Path, system: Path, run: Run) -> None:
    """Start a built program.

    Args:
        recipe: of the program.
        folder: of its files.
        system: a new folder for files of the system that the program sees.
        run: runs a command.

    Raises:
        InvalidInput: it does not start.
    """
    write_system_files(system)
    command = started_command(recipe, folder, system, recipe.start.arguments)
    done = run(["timeout", str(_DEADLINE_S), *command])
    printed = f"{done.stdout}{done.stderr}"
    if done.returncode != recipe.start.exit_code or recipe.start.text not in printed:
        raise InvalidInput(
            f"{recipe.entry} was built, and does not start under {EMULATOR}: {reason(done)}",
            hint="nothing was registered; report this with the versions of `farm harness build`",
        )


def started_command(recipe: BundleRecipe, folder: Path, system: Path, arguments: Sequence[str]) -> list[str]:
    """Return the command that starts a bundle's program under the emulator, as a phone would start it.

    Args:
        recipe: of the program.
        folder: of its files.
        system: written by `write_system_files`.
        arguments: of the program.
    """
    words: list[str] = []
    for word in recipe.command:
        if word == ARGUMENTS_WORD:
            words += arguments
        else:
            program = str(folder / recipe.entry)
            words.append(program if word == PROGRAM_WORD else word.replace("${work}", str(folder)))
    return [EMULATOR, *_CPU_OPTIONS, "-L", str(system), *words]


def write_system_files(system: Path) -> None:
    """Write what a phone's kernel says of its CPUs, for the emulator's option `-L`.

    Without them a program reads about the CPUs of this PC, and libraries that look for those of arm64 crash.
    """
    cpus = system / "sys" / "devices" / "system" / "cpu"
    cpus.mkdir(parents=True)
    (system / "proc").mkdir()
    (system / "proc" / "cpuinfo").write_text("".join(_CPU.format(number=number) for number in range(_CPUS)))
    for name in ("possible", "present"):
        (cpus / name).write_text(f"0-{_CPUS - 1}\n")
