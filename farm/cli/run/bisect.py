"""`farm bisect`: find the version that changed a time, by few comparisons on devices."""

from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer

from farm.cli.run.bisect_search import BisectOptions, BisectSearch
from farm.cli.run.matrix import RunOptions, flag_values, listed_backends, run_backends
from farm.cli.run.versions import listed_versions, registered_versions
from farm.cli.shell.address import connect
from farm.cli.shell.options import DeviceNames, Json, ProcessTimeout
from farm.cli.shell.output import print_data, print_json, print_notice
from farm.client.farm_client import FarmClient
from farm.core.base.units import share_of_percent
from farm.core.errors import EXIT_CODES, InvalidInput
from farm.core.matrices.matrix import MAX_ROUNDS
from farm.core.models.variant import DIGEST_SHOWN, Variant
from farm.core.results.history.bisect import VersionResult, most_comparisons
from farm.core.runs.measurement import DEFAULT_MARGIN
from farm.presentation.labels import device_name
from farm.presentation.text import EMPTY_CELL, local_time_text, plural, seconds, speedup_text
from farm.wire.documents.results.bisect import BisectComparison, BisectSpeedup, BisectVersion, BisectView

#: The least number of rounds that a matrix may grow to, and the usual one.
_LEAST_ROUNDS, _USUAL_ROUNDS = 6, 40
_REASON_WIDTH = 64
#: Of a matrix.
_MOST_MARGIN = 0.5
_EXIT_CODES = {"undecided": EXIT_CODES["undecided"], "not_measured": EXIT_CODES["not_measured"]}


def bisect(
    context: typer.Context,
    good: Annotated[str, typer.Option(metavar="V1", help="The older version: a name, a digest or a file.")],
    bad: Annotated[str, typer.Option(metavar="V2", help="The newer version, whose time is another one.")],
    versions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A name, digest or file on each line, oldest first. Default: all files of the name of both.",
        ),
    ] = None,
    harness: Annotated[
        str | None, typer.Option(metavar="NAME", help="Harness that runs them; see `farm harness list`.")
    ] = None,
    device: DeviceNames = None,
    backend: Annotated[
        str | None, typer.Option(metavar="NAME", help="Default: cpu, or what the harness has.")
    ] = None,
    margin: Annotated[
        str, typer.Option(metavar="SHARE", help="A smaller difference of V1 and V2 is none.")
    ] = f"{DEFAULT_MARGIN:.0%}",
    rounds: Annotated[
        int,
        typer.Option(min=_LEAST_ROUNDS, max=MAX_ROUNDS, metavar="N", help="At most, of each comparison."),
    ] = _USUAL_ROUNDS,
    timeout: ProcessTimeout = "2m",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the versions.")] = False,
    as_json: Json = False,
) -> None:
    """Find the version of a model file that changed its time, by comparisons on devices.

    Each comparison measures one version beside both ends, until it is decided: 7 for 64 versions.
    The same command goes on with a search that was interrupted. Flags of the harness follow `--`.

    Example: farm bisect --good 30b87477 --bad 9c1b07de --harness speed_benchmark_torch
    """
    if harness is None:
        hint = "add --harness NAME; `farm harness list` has the names"
        raise InvalidInput("no harness to run them", hint=hint)
    with connect() as farm:
        views = farm.variants()
        own = (
            registered_versions(views, good, bad)
            if versions is None
            else listed_versions(views, versions, good, bad)
        )
        _check_ends(own)
        options = BisectOptions(
            harness=harness,
            settings=flag_values(context.obj, farm.harness(harness)),
            backend=_backend(farm, harness, backend, own[0]),
            devices=tuple(device or ()),
            margin=_margin(margin),
            rounds=rounds,
            timeout_s=float(seconds(timeout)),
        )

        def tell(comparison: BisectComparison) -> None:
            if not as_json:
                print_data(comparison_line(comparison))

        search = BisectSearch(farm, own, options, tell)
        print_notice(_announcement(search))
        if dry_run:
            print_data("\n".join(_listed_line(place, version) for place, version in enumerate(own, start=1)))
            return
        try:
            view = search.run()
        except KeyboardInterrupt:
            print_notice("Detached: the matrix continues, and the same command goes on with the search.")
            raise typer.Exit(130) from None
    if as_json:
        print_json(view)
    else:
        print_data(conclusion(view))
    raise typer.Exit(_EXIT_CODES.get(view.outcome, 0))


def _margin(text: str) -> float:
    """Parse `2%`.

    Raises:
        InvalidInput: it is not a percentage up to 50 %.
    """
    margin = share_of_percent(text.strip())
    if margin is None or margin > _MOST_MARGIN:
        raise InvalidInput(f"--margin: {text!r} is no margin", hint="write it like 2%, at most 50%")
    return margin


def _check_ends(versions: list[Variant]) -> None:
    for option, end in (("--good", versions[0]), ("--bad", versions[-1])):
        if end.expired_at is not None:
            hint = "send the same file again: `farm variant add FILE`; or search between other versions"
            raise InvalidInput(
                f"the file of {option}, {end.name}, was deleted on {local_time_text(end.expired_at)}",
                hint=hint,
            )


def _backend(farm: FarmClient, name: str, text: str | None, version: Variant) -> str:
    harness = farm.harness(name)
    if not harness.needs_model:
        raise InvalidInput(f"{name} runs no model: it has no versions of a file", hint="`farm harness list`")
    backends = run_backends(harness, RunOptions(backends=listed_backends(text)), version)
    if len(backends) > 1:
        raise InvalidInput("--backend names several", hint="search on one at a time")
    return backends[0]


def _announcement(search: BisectSearch) -> str:
    count = len(search.versions)
    most = plural(most_comparisons(count), "comparison")
    return f"{search.name}: {count} versions of {search.versions[-1].name}, {most} if all of them can run"


def _listed_line(place: int, version: Variant) -> str:
    expired = "" if version.expired_at is None else "  (its file was deleted)"
    digest = version.manifest.digest[:DIGEST_SHOWN]
    return f"{place:>4}  {digest}  {local_time_text(version.created_at)}  {version.name}{expired}"


_RESULT_TEXTS = {
    VersionResult.GOOD: "like the good one",
    VersionResult.BAD: "like the bad one",
    VersionResult.UNDECIDED: "undecided",
    VersionResult.NOT_RUN: "cannot run",
}


def comparison_line(comparison: BisectComparison) -> str:
    """Return a comparison as one line; of several devices each has a line, and so has the reason."""
    version = comparison.version
    rows = [_speedup_text(row) for row in comparison.devices] or [EMPTY_CELL]
    if len(rows) > 1:
        names = map(device_name, comparison.devices)
        rows = [f"{row} on {name}" for row, name in zip(rows, names, strict=True)]
    matrix = "" if comparison.matrix_id is None else f", matrix {comparison.matrix_id}"
    text = _RESULT_TEXTS[comparison.result]
    lines = [f"{version.place:>4}  {version.digest[:DIGEST_SHOWN]}  {text:17}  {rows[0]}{matrix}"]
    lines += [f"{'':35}{row}" for row in rows[1:]]
    lines += [f"{'':16}{line}" for line in wrap(comparison.reason or "", _REASON_WIDTH)]
    return "\n".join(lines)


def _speedup_text(row: BisectSpeedup) -> str:
    return EMPTY_CELL if row.speedup is None else speedup_text(row.speedup, row.ci_low, row.ci_high)


def conclusion(view: BisectView) -> str:
    """Return what a search found."""
    match view.outcome:
        case "not_measured":
            return "Nothing was measured of the good and the bad version: the search cannot begin."
        case "same":
            return "The good and the bad version do not differ: there is nothing to find."
        case "undecided":
            return "Whether the good and the bad version differ is undecided: --rounds allows more rounds."
        case "found":
            lines = [f"First bad version: {_version_text(view.first_bad)}"]
        case "range":
            lines = [
                f"The first bad version is one of {view.last_good.place + 1} to {view.first_bad.place}: "
                "no other comparison decides between them.",
                f"  last good   {_version_text(view.last_good)}",
                f"  first bad   {_version_text(view.first_bad)}",
            ]
    if view.change is not None:
        lines.append(f"  against the good one: {_speedup_text(view.change)} on {device_name(view.change)}")
    differing, measured = len(view.differing_devices), len(view.measured_devices)
    lines.append(
        f"  good and bad differ on {differing} of {plural(measured, 'device')}: {_devices_text(view)}"
    )
    numbers = [str(row.matrix_id) for row in view.comparisons if row.matrix_id is not None]
    lines.append(f"  matrices {', '.join(numbers)}: {view.name}")
    return "\n".join(lines)


def _version_text(version: BisectVersion) -> str:
    created = local_time_text(version.created_at)
    return f"{version.place}, {version.digest[:DIGEST_SHOWN]}, {version.name}, {created}"


def _devices_text(view: BisectView) -> str:
    names = {row.device_id: device_name(row) for each in view.comparisons for row in each.devices}
    return ", ".join(names.get(device, device) for device in view.differing_devices)
