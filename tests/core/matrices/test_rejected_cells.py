"""Cells that do not run, grouped by their reasons and devices."""

from farm.core.matrices.matrix import RejectedCells, RejectionKind, group_rejected

KIND = RejectionKind.UNSUPPORTED


def group(reason: str, labels: list[str], *devices: str) -> RejectedCells:
    return RejectedCells(kind=KIND, reason=reason, hint="", labels=labels, devices=devices)


def test_no_cell_is_said_to_be_rejected_where_it_runs() -> None:
    cells = [
        ("int8 vulkan", "made for cpu", None),
        ("int8 gpu", "no GPU", "phone-1"),
        ("float32 gpu", "no GPU", "phone-1"),
        ("float32 gpu", "no GPU", "phone-2"),
        ("float16 gpu", "no GPU", "phone-1"),
        ("float32 vulkan", "made for cpu", None),
    ]
    assert group_rejected((KIND, reason, "", label, device) for label, reason, device in cells) == [
        group("made for cpu", ["int8 vulkan", "float32 vulkan"]),
        group("no GPU", ["int8 gpu", "float16 gpu"], "phone-1"),
        group("no GPU", ["float32 gpu"], "phone-1", "phone-2"),
    ]
