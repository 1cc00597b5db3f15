"""Results that others measured, by the connection of a client."""

from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime

from farm.client.connection import FarmConnection
from farm.client.result_queries import time_text
from farm.wire.documents.results.imports import ExternalResultView, ImportAnswer, ImportView


class ImportQueries(FarmConnection):
    """What a client sends and asks for results of others."""

    def import_file(
        self,
        name: str,
        content: bytes,
        *,
        harness: str | None = None,
        device: str | None = None,
        model: str | None = None,
        dry_run: bool = False,
    ) -> ImportAnswer:
        """Import a file of results that others measured; sent again, it is a duplicate.

        Raises:
            InvalidInput: it cannot be read; the message says why.
            NotFound: there is no such harness.
        """
        body = {"name": name, "content": b64encode(content).decode("ascii"), "dry_run": dry_run}
        given = {"harness": harness, "device": device, "model": model}
        return self._post(ImportAnswer, "/imports", {**body, **given})

    def imports(
        self,
        *,
        since: datetime | None = None,
        name: str | None = None,
        mine: bool = False,
        limit: int | None = None,
    ) -> Iterator[ImportView]:
        """Yield the files imported since a time, of a name or by the caller, newest first, up to `limit`.

        Withdrawn ones are among them.
        """
        return self._pages(
            list[ImportView],
            "/imports",
            lambda view: view.import_id,
            newest_first=True,
            limit=limit,
            since=time_text(since),
            name=name,
            mine=mine or None,
        )

    def withdraw_import(self, import_id: int, reason: str) -> ImportView:
        """Withdraw an imported file for a reason."""
        return self._post(ImportView, f"/imports/{import_id}/withdrawal", {"reason": reason})

    def external_results(
        self,
        *,
        import_id: int | None = None,
        model: str | None = None,
        device: str | None = None,
        tool: str | None = None,
        metric: str | None = None,
        withdrawn: bool = False,
    ) -> Iterator[ExternalResultView]:
        """Yield the results that others measured, in the order in which they were imported."""
        return self._pages(
            list[ExternalResultView],
            "/external-results",
            lambda view: view.result_id,
            after=0,
            import_id=import_id,
            model=model,
            device=device,
            tool=tool,
            metric=metric,
            withdrawn=withdrawn or None,
        )
