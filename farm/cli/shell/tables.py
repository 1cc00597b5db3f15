"""Tables of variants, matrices and jobs, and the parts that other tables are built from."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from farm.cli.files.variant_report import fidelity_text, input_texts
from farm.cli.shell.formatting import EMPTY_CELL, counts_text, plural, time_left_text
from farm.core.base.units import size_text
from farm.wire.documents.matrices.matrices import JobView, MatrixSummary, VariantView


def new_table(
    *, names: Sequence[str], words: Sequence[str] = (), numbers: Sequence[str] = (), prose: Sequence[str] = ()
) -> Table:
    """Return an empty table. Names and numbers are never wrapped; words and prose are wrapped if needed."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    for heading in names:
        table.add_column(heading, no_wrap=True)
    for heading in words:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in prose:
        table.add_column(heading, overflow="fold")
    return table


def add_row(table: Table, *cells: str) -> None:
    """Add a row of plain text: brackets in names and messages are not markup."""
    table.add_row(*map(Text, cells))


def variant_table(variants: Sequence[VariantView]) -> Table:
    """Return a table of registered variants."""
    numbers = ("fidelity", "size", "digest")
    table = new_table(names=("variant",), words=("backends", "input"), numbers=numbers)
    for view in variants:
        manifest = view.manifest
        backends, inputs = ", ".join(manifest.backends), input_texts(manifest.inputs)
        fidelity, size = fidelity_text(manifest.fidelity), size_text(manifest.size_bytes)
        name = view.name if view.expired_at is None else f"{view.name} (expired)"
        add_row(table, name, backends, inputs, fidelity, size, manifest.digest[:12])
    return table


def registered_table(registered: Sequence[tuple[VariantView, str]]) -> Table:
    """Return a table of variants and whether each was built or reused."""
    table = new_table(names=("variant", "how"), numbers=("size", "digest"))
    for view, how in registered:
        add_row(table, view.name, how, size_text(view.manifest.size_bytes), view.manifest.digest[:12])
    return table


def matrix_table(matrices: Sequence[MatrixSummary]) -> Table:
    """Return a table of matrices, one line each."""
    table = new_table(
        names=("matrix", "name", "state"), numbers=("cells", "rounds", "jobs"), prose=("progress",)
    )
    for view in matrices:
        progress = counts_text(view.jobs_by_outcome)
        if view.rejected:
            progress += f"; {plural(view.rejected, 'cell')} rejected"
        if view.finished_at is None:
            progress += f"; {time_left_text(view.eta_s, view.without_eta)}"
        if view.rerun_of is not None:
            progress += f"; a rerun of matrix {view.rerun_of}"
        numbers = (str(view.cells), str(view.rounds), str(view.jobs))
        if view.not_queued:
            progress += f"; {plural(view.not_queued, 'job')} not queued yet"
        add_row(table, str(view.matrix_id), view.name, view.state, *numbers, progress)
    return table


def job_table(jobs: Sequence[JobView]) -> Table:
    """Return a table of the jobs of a matrix, with the reason of each failure."""
    table = new_table(names=("job", "device", "round", "state", "attempts"), words=("what", "why"))
    for job in jobs:
        round_text = str(job.round) if not job.repeat else f"{job.round}, repeat {job.repeat}"
        state = str(job.outcome or job.state)
        why = " ".join(part for part in (job.message, f"[{job.code}]" if job.code else None) if part)
        attempts = ", ".join(map(str, job.attempts)) or EMPTY_CELL
        names = (str(job.job_id), job.device_id, round_text, state, attempts)
        add_row(table, *names, job.label, why)
    return table
