"""What farm doctor says of the kernel's log."""

from pathlib import Path

import pytest

from agents.doctor.machine import check_kernel_log, read_refusals
from agents.host.config import AgentConfig
from farm.core.operations.diagnostic import Severity


def config(tmp_path: Path, log: str) -> AgentConfig:
    return AgentConfig(data_dir=tmp_path, adb_usb=False, kernel_log=tmp_path / log)


@pytest.mark.fault(20)
def test_a_log_that_cannot_be_read_is_told_with_how_to_allow_it(tmp_path: Path) -> None:
    finding = check_kernel_log(read_refusals(config(tmp_path, "absent")))
    assert finding.level is Severity.WARNING
    assert "are not detected" in finding.message
    assert finding.hint is not None
    assert "systemd-journal" in finding.hint
    assert "FARM_AGENT_KERNEL_LOG" in finding.hint


def test_a_log_without_trouble_is_fine(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("usb 1-2: new high-speed USB device number 4 using xhci_hcd\n")
    finding = check_kernel_log(read_refusals(config(tmp_path, "log")))
    assert finding.level is Severity.OK
    assert str(tmp_path / "log") in finding.message


@pytest.mark.fault(20)
def test_a_controller_that_refused_a_device_is_named(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        "[ 5.0] xhci_hcd 0000:00:14.0: Error while assigning device slot ID: No Slots Available Error\n"
    )
    finding = check_kernel_log(read_refusals(config(tmp_path, "log")))
    assert finding.level is Severity.WARNING
    assert "0000:00:14.0" in finding.message
    assert finding.hint is not None
    assert "another controller" in finding.hint
