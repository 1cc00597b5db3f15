"""Clock and core controls of a device for a run, which need root; any end of the run restores them."""

from pathlib import Path
from shlex import quote

from agents.adb.client import AdbDevice
from agents.device.paths import controls_record, work_folder
from farm.core.base.cpu_list import core_list
from farm.core.devices.controls import Controls, ControlState
from farm.core.errors import ControlImpossible, DeviceProtocol
from farm.phone.settings import control_states

_SCRIPT = Path(__file__).with_name("controls.sh").read_bytes()
#: Magisk may ask on the device's screen first, and gives up after 10 s.
_DEADLINE_S = 30.0
_NO_ROOT = 20


async def set_controls(device: AdbDevice, fence: int, controls: Controls) -> tuple[ControlState, ...]:
    """Set the controls that need root; return the state of the device afterwards.

    The previous values are recorded on the device first: the clean-up of run `fence` restores them, and so
    does the run's supervisor when the run ends.

    Raises:
        ControlImpossible: the device has no root, or nothing of that kind that could be set.
        DeviceError: the device went away, or was too slow.
    """
    folder, script = quote(work_folder(device.work_root)), quote(_script_path(device.work_root))
    put = f"mkdir -p {folder} && cat >{script}.new && mv -f {script}.new {script}"
    words = [folder, str(fence), *_arguments(controls)]
    result = await device.shell(
        f"{put} && sh {script} set {' '.join(words)}",
        stdin=_SCRIPT,
        deadline_s=_DEADLINE_S,
    )
    if result.exit_code == _NO_ROOT:
        raise ControlImpossible(f"{device.serial} has no root, which is required to set clocks and cores")
    if result.exit_code != 0:
        message = result.message
        raise DeviceProtocol(f"{device.serial}: its clocks and cores could not be set: {message}")
    if not (states := control_states(result.text)):
        raise ControlImpossible(f"{device.serial} reports no clocks and cores that could be set")
    return states


async def restore_controls(device: AdbDevice) -> None:
    """Restore the values that `set_controls` replaced; does nothing where nothing is set.

    Raises:
        DeviceError: the device went away, was too slow, or has lost its root.
    """
    record, script = quote(controls_record(device.work_root)), quote(_script_path(device.work_root))
    command = f"[ ! -s {record} ] || sh {script} restore {quote(work_folder(device.work_root))}"
    result = await device.shell(command, deadline_s=_DEADLINE_S)
    if result.exit_code != 0:
        raise DeviceProtocol(f"{device.serial}: its clocks and cores could not be restored")


def _arguments(controls: Controls) -> list[str]:
    cores = core_list(controls.online) if controls.online else None
    return [
        quote(controls.governor or "-"),
        _kilohertz(controls.min_hz),
        _kilohertz(controls.max_hz),
        quote(" ".join(map(str, cores)) if cores else "-"),
    ]


def _kilohertz(hertz: int | None) -> str:
    return "-" if hertz is None else str(hertz // 1000)


def _script_path(work_root: str) -> str:
    return f"{work_folder(work_root)}/controls.sh"
