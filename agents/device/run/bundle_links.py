"""Links from a run's folder to the files of its bundle in the device's cache.

Links, not copies: a run writes nothing large, and shared files exist once on the device. Hard links would let
a program find itself in the folder (/proc/self/exe, $ORIGIN), but Android's policy gives adb's shell none:
AOSP's `create_file_perms` has no `link`.
"""

from collections.abc import Sequence
from shlex import quote

from agents.device.paths import cache_folder
from farm.core.runs.plan import PlanFile


def linked_files(files: Sequence[PlanFile]) -> list[PlanFile]:
    """Return the files of a plan that the run's folder links."""
    return [file for file in files if file.path]


def link_lines(files: Sequence[PlanFile]) -> str:
    """Return the input of `link_command`: a digest and a path a line, and an empty line at the end."""
    return "".join(f"{file.digest} {file.path}\n" for file in linked_files(files)) + "\n"


def link_command(work_root: str) -> str:
    """Return a command that creates the links its input names; existing ones are kept.

    It leaves the rest of its input to the next command: a shell's `read` reads no byte beyond the line from a
    pipe.
    """
    return (
        'while read -r digest path && [ -n "$digest" ]; do '
        'case $path in */*) [ -d "./${path%/*}" ] || mkdir -p "./${path%/*}" || exit ;; esac; '
        f'[ -L "./$path" ] || ln -s {quote(cache_folder(work_root))}/"$digest" "./$path" || exit; done'
    )
