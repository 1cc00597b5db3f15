"""Results that others measured, and the files that they come from."""

from datetime import UTC, datetime
from pathlib import Path

from benchfarm.calls import checked_calls
from benchfarm.frames.frame import Frame
from benchfarm.frames.result_frames import external_frame
from benchfarm.run_spec import past_time
from farm.cli.results.interchange.import_files import ImportOptions, file_content, send_file
from farm.client.farm_client import FarmClient
from farm.wire.documents.results.imports import ExternalResultView, ImportAnswer, ImportView


@checked_calls
class Imports:
    """The imported files of a farm, and their results, which enter no comparison."""

    def __init__(self, client: FarmClient) -> None:
        self._client = client

    def add(
        self,
        path: str | Path,
        *,
        device: str | None = None,
        model: str | None = None,
        harness: str | None = None,
        dry_run: bool = False,
    ) -> ImportAnswer:
        """Import a file of results, once; sent again, it is a duplicate. Arguments are as in `farm import`.

        Args:
            path: the file.
            device: where the file does not tell it.
            model: where the file does not tell it.
            harness: whose output the file is; None recognizes the format by its content.
            dry_run: whether to say what the file is, and store nothing.

        Raises:
            InvalidInput: the file cannot be read; the message says why.
            NotFound: there is no such harness.
        """
        options = ImportOptions(harness=harness, device=device, model=model, dry_run=dry_run)
        return send_file(self._client, Path(path), file_content(Path(path)), options)

    def list(
        self,
        *,
        since: datetime | str | None = None,
        name: str | None = None,
        mine: bool = False,
        limit: int | None = None,
    ) -> list[ImportView]:
        """Return the files since a time, of a name or of the caller, the newest last, up to `limit`.

        Withdrawn ones are among them.
        """
        return [*self._client.imports(since=past_time(since), name=name, mine=mine, limit=limit)][::-1]

    def results(
        self,
        *,
        import_id: int | None = None,
        model: str | None = None,
        device: str | None = None,
        tool: str | None = None,
        metric: str | None = None,
        withdrawn: bool = False,
    ) -> Frame[ExternalResultView]:
        """Return the results of all files, or those that match, as `farm import results`."""
        as_of = datetime.now(UTC)
        views = self._client.external_results(
            import_id=import_id, model=model, device=device, tool=tool, metric=metric, withdrawn=withdrawn
        )
        return external_frame(views, as_of=as_of)

    def withdraw(self, import_id: int, reason: str) -> ImportView:
        """Withdraw a file for a reason; its results stay, and are listed with `withdrawn=True` only.

        Raises:
            NotFound: there is no such import.
            Forbidden: the caller is no operator.
            Conflict: it was withdrawn already.
        """
        return self._client.withdraw_import(import_id, reason)
