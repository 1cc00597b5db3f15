"""Artifacts in their folder."""

from pathlib import Path

from farm.blobs.disk import DiskBlobs
from farm.core.base.ids import digest_of
from tests.support.faults.system_calls import noted

CONTENT = b"weights"


def test_an_uploaded_file_and_then_its_name_are_on_the_disk_before_it_counts(tmp_path: Path) -> None:
    """A power cut after the row was written must not leave a row without its file, or with an empty one."""
    blobs = DiskBlobs(tmp_path)
    with noted("fsync", "replace") as asked:
        blobs.put([CONTENT], digest_of(CONTENT))
    # The bytes; the name; the folder of the name, and the folder of that, which may be new.
    assert asked == ["fsync", "replace", "fsync", "fsync"]
