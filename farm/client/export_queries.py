"""Questions for the rows of files, by the connection of a client."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from farm.client.connection import FarmConnection
from farm.client.result_queries import time_text
from farm.wire.documents.results.export import (
    ConditionPage,
    ConditionRow,
    ExportChanges,
    MeasurementPage,
    MeasurementRow,
    SamplePage,
    SampleRow,
)


class ExportQueries(FarmConnection):
    """What a client asks for files of other tools."""

    def exported_measurements(
        self, *, after: int, before: int, since: datetime | None = None, until: datetime | None = None
    ) -> Iterator[list[MeasurementRow]]:
        """Yield pages of the measurements that count, of the numbers between two, measured in a span."""
        return self._export(MeasurementPage, "measurements", after, before, since, until)

    def exported_samples(
        self, *, after: int, before: int, since: datetime | None = None, until: datetime | None = None
    ) -> Iterator[list[SampleRow]]:
        """Yield pages of samples, like `exported_measurements`."""
        return self._export(SamplePage, "samples", after, before, since, until)

    def exported_conditions(
        self, *, after: int, before: int, since: datetime | None = None, until: datetime | None = None
    ) -> Iterator[list[ConditionRow]]:
        """Yield pages of looks at devices, like `exported_measurements`."""
        return self._export(ConditionPage, "conditions", after, before, since, until)

    def export_changes(self, *, after: int = 0, since: datetime | None = None) -> ExportChanges:
        """Return what changed since an earlier export."""
        return self._get(ExportChanges, "/export/changes", after=after, since=time_text(since))

    def _export(
        self,
        kind: type[Any],
        name: str,
        after: int,
        before: int,
        since: datetime | None,
        until: datetime | None,
    ) -> Iterator[list[Any]]:
        times = {"since": time_text(since), "until": time_text(until)}
        last: int | None = after
        while last is not None:
            page = self._get(kind, f"/export/{name}", after=last, before=before, **times)
            yield page.rows
            last = page.next_after
