"""A bundle's files at their places in a run's folder: links into the phone's cache.

Links, not copies: a run writes nothing large, and files that bundles share are on the phone once. Hard links
would let a program find itself in the folder (/proc/self/exe, $ORIGIN), but Android's policy gives adb's
shell none: AOSP's `create_file_perms` has no `link`.
"""

from collections.abc import Sequence
from shlex import quote

from agents.device.paths import cache_folder
from farm.core.runs.plan import PlanFile


def linked_files(files: Sequence[PlanFile]) -> list[PlanFile]:
    """The files of a plan that the run's folder shows."""
    return [file for file in files if file.path]


def link_lines(files: Sequence[PlanFile]) -> str:
    """What `link_command` reads: a digest and a path a line, and an empty one at their end."""
    return "".join(f"{file.digest} {file.path}\n" for file in linked_files(files)) + "\n"


def link_command(work_root: str) -> str:
    """Makes, in the current folder, the links that its input names; those that are there stay as they are.

    It leaves the rest of its input to the next command: `read` of a shell takes no byte too many from a pipe.
    """
    return (
        'while read -r digest path && [ -n "$digest" ]; do '
        'case $path in */*) [ -d "./${path%/*}" ] || mkdir -p "./${path%/*}" || exit ;; esac; '
        f'[ -L "./$path" ] || ln -s {quote(cache_folder(work_root))}/"$digest" "./$path" || exit; done'
    )
