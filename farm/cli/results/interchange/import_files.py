"""`farm import`: results that others measured, file by file; lists of them, and their withdrawal."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from farm.cli.results.interchange.external_tables import import_table, result_tables
from farm.cli.shell.address import connect
from farm.cli.shell.options import Json, Limit, Mine, NamePart, ShortYes, Since
from farm.cli.shell.output import (
    confirm,
    print_data,
    print_done,
    print_json,
    print_json_list,
    print_notice,
    show,
)
from farm.client.farm_client import FarmClient
from farm.core.errors import InvalidInput
from farm.harness.external.results import MAX_IMPORT_BYTES
from farm.presentation.text import past_moment, plural
from farm.wire.documents.results.imports import ImportAnswer, ImportOutcome

_DEFAULT = "add"
_MAX_FILES = 10_000
#: Results of one screen.
_SCREEN = 100


class _AddsByDefault(TyperGroup):
    """A group whose arguments are those of `add` where they do not begin with a command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_AddsByDefault, no_args_is_help=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """How files are imported, and what they may not tell themselves."""

    harness: str | None
    device: str | None
    model: str | None
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _FileOutcome:
    """What became of a file; `refused` for a reason that is no outcome of the farm."""

    path: str
    outcome: str
    import_id: int | None = None
    format: str | None = None
    results: int = 0
    reason: str | None = None
    hint: str | None = None
    notes: list[str] | None = None

    def text(self, *, with_hint: bool) -> str:
        """Return one line, and a line for each note and for the hint."""
        number = "" if self.import_id is None else f" as import {self.import_id}"
        match self.outcome:
            case "refused":
                hint = f"\n  hint: {self.hint}" if with_hint else ""
                return f"{self.path}: not imported: {self.reason}{hint}"
            case ImportOutcome.DUPLICATE:
                return f"{self.path}: known already{number}" + (f": {self.reason}" if self.reason else "")
            case _:
                what = f"{plural(self.results, 'result')}, {self.format}"
                verb = "would be imported" if self.outcome == ImportOutcome.IMPORTABLE else "imported"
                return "\n".join(
                    [f"{self.path}: {what}, {verb}{number}", *map("  note: {}".format, self.notes or [])]
                )


@app.command(_DEFAULT)
def add(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH", help="Files, or folders of files.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what each file is and why not; store nothing.")
    ] = False,
    device: Annotated[
        str | None, typer.Option(metavar="LABEL", help="The device, where a file does not tell it.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model, where a file does not tell it.")
    ] = None,
    harness: Annotated[
        str | None, typer.Option(metavar="NAME", help="Read all files as output of this harness.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Import results that others measured, to see them beside the farm's; they enter no comparison.

    The format of a file is recognized by its content. A file that is refused keeps none of the others out,
    and the same call again imports only what is missing. The word `add` may be left out.

    Example: farm import add results/ --device "Pixel 8"
    """
    options = ImportOptions(harness=harness, device=device, model=model, dry_run=dry_run)
    outcomes, hints = [], set()
    with connect() as farm:
        for outcome in _import_all(farm, _files(paths), options):
            outcomes.append(outcome)
            if not as_json:
                # Many files of a folder are refused for the same reason.
                print_notice(outcome.text(with_hint=outcome.hint not in hints))
                hints.add(outcome.hint)
    if as_json:
        print_json([asdict(outcome) for outcome in outcomes])
    elif len(outcomes) > 1:
        print_notice(_counts_text(outcomes, dry_run=dry_run))
    counts = Counter(outcome.outcome for outcome in outcomes)
    if counts["refused"]:
        raise InvalidInput(
            f"{counts['refused']} of {plural(len(outcomes), 'file')} cannot be imported",
            hint="the reasons are above; docs/import.md lists the formats",
        )


def _counts_text(outcomes: Sequence[_FileOutcome], *, dry_run: bool) -> str:
    """Return what became of all files of a call."""
    counts = Counter(outcome.outcome for outcome in outcomes)
    wanted = ImportOutcome.IMPORTABLE if dry_run else ImportOutcome.IMPORTED
    results = sum(outcome.results for outcome in outcomes if outcome.outcome == wanted)
    verb = "would be imported" if dry_run else "imported"
    return (
        f"{plural(len(outcomes), 'file')}: {counts[wanted]} {verb} with {plural(results, 'result')},"
        f" {counts[ImportOutcome.DUPLICATE]} known already, {counts['refused']} refused."
    )


def _files(paths: Sequence[Path]) -> list[Path]:
    """Return files, and those in folders, sorted; hidden ones, and what links lead to, are left out there.

    Raises:
        InvalidInput: a path does not exist, there is no file, or there are too many.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += islice(_files_below(path), _MAX_FILES + 1)
        elif path.exists():
            found.append(path)
        else:
            raise InvalidInput(f"there is no file or folder {path}", hint="check the path")
        if len(found) > _MAX_FILES:
            raise InvalidInput(f"more than {_MAX_FILES} files", hint="import one folder after another")
    if not found:
        raise InvalidInput("there is no file in it", hint="name files, or a folder with files")
    return found


def _files_below(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(root, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _import_all(farm: FarmClient, paths: Sequence[Path], options: ImportOptions) -> Iterator[_FileOutcome]:
    first_by_digest: dict[str, Path] = {}
    for path in paths:
        try:
            content = file_content(path)
            earlier = first_by_digest.setdefault(sha256(content).hexdigest(), path)
            if earlier is path:
                yield _outcome(path, send_file(farm, path, content, options))
            else:
                reason = f"{earlier} of this call has the same bytes"
                yield _FileOutcome(path=str(path), outcome=ImportOutcome.DUPLICATE, reason=reason)
        except InvalidInput as error:
            yield _FileOutcome(path=str(path), outcome="refused", reason=error.message, hint=error.hint)


def file_content(path: Path) -> bytes:
    """Return the bytes of a file to import.

    Raises:
        InvalidInput: it is none, cannot be read, or is too large.
    """
    try:
        if not path.is_file():
            raise InvalidInput("it is no file", hint="name files, or folders with files")
        with path.open("rb") as file:
            content = file.read(MAX_IMPORT_BYTES + 1)
    except OSError as error:
        raise InvalidInput(
            f"it cannot be read: {error.strerror or error}", hint="check its permissions"
        ) from error
    if len(content) > MAX_IMPORT_BYTES:
        raise InvalidInput(f"it has more than {MAX_IMPORT_BYTES >> 20} MiB", hint="split it, or cut the log")
    return content


def send_file(farm: FarmClient, path: Path, content: bytes, options: ImportOptions) -> ImportAnswer:
    """Import the content of a file under its name. Raises like `FarmClient.import_file`."""
    name = path.name.encode("utf-8", errors="replace").decode()
    return farm.import_file(name, content, **asdict(options))


def _outcome(path: Path, answer: ImportAnswer) -> _FileOutcome:
    return _FileOutcome(
        path=str(path),
        outcome=answer.outcome,
        import_id=answer.import_id,
        format=answer.format,
        results=answer.results,
        notes=answer.notes,
    )


@app.command("list")
def list_imports(
    since: Since = None,
    part: NamePart = None,
    mine: Mine = False,
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """List the imported files, the newest last; withdrawn ones, too.

    Example: farm import list --mine --since 7d
    """
    begin = past_moment(since, option="--since")
    with connect() as farm:
        views = list(farm.imports(since=begin, name=part, mine=mine, limit=limit))
    show(views[::-1], import_table, as_json=as_json)


@app.command()
def results(
    import_id: Annotated[int | None, typer.Option("--import", metavar="ID", help="Of this import.")] = None,
    model: Annotated[str | None, typer.Option(help="Only those of this model.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Only those of this device, as the file calls it.")
    ] = None,
    tool: Annotated[str | None, typer.Option(help="Only those of this tool.")] = None,
    metric: Annotated[str | None, typer.Option(help="Only those of this quantity.")] = None,
    withdrawn: Annotated[bool, typer.Option("--withdrawn", help="Those that were withdrawn, too.")] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most N; --json has all.")] = _SCREEN,
    as_json: Json = False,
) -> None:
    """List results that others measured, in the units of their files.

    Example: farm import results --model mv2
    """
    with connect() as farm:
        views = farm.external_results(
            import_id=import_id, model=model, device=device, tool=tool, metric=metric, withdrawn=withdrawn
        )
        if as_json:
            print_json_list(views)
            return
        listed = list(islice(views, limit + 1))
    print_data(result_tables(listed[:limit]))
    if len(listed) > limit:
        print_notice(f"Only the first {limit} are shown: --limit {2 * limit} shows more, --json all.")


@app.command()
def withdraw(
    import_id: Annotated[int, typer.Argument(metavar="ID", help="Number of the import.")],
    reason: Annotated[str, typer.Option(help="Why; shown with the import.")],
    yes: ShortYes = False,
    as_json: Json = False,
) -> None:
    """Withdraw an imported file: its results stay, and are listed only with --withdrawn.

    The same file can be imported again, for example with another --device.

    Example: farm import withdraw 3 --reason "of another phone"
    """
    if not yes:
        confirm(f"Withdraw the results of import {import_id}?")
    with connect() as farm:
        view = farm.withdraw_import(import_id, reason)
    text = f"Import {view.import_id}, {view.name}: {plural(view.results, 'result')} withdrawn."
    print_done(view, text, as_json=as_json)
