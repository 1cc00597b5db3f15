"""The Python client of benchfarm: `from benchfarm import Farm`."""

from benchfarm.asynchronous import AsyncFarm, AsyncRun
from benchfarm.farm import Farm
from benchfarm.frames.device_frame import DeviceFrame
from benchfarm.frames.frame import Frame
from benchfarm.frames.result_frames import ChangeFrame, HistoryFrame
from benchfarm.frames.samples import Samples
from benchfarm.frames.speedup_frame import SpeedupFrame
from benchfarm.run import Run
from farm.core.errors import FarmError, FarmUnreachable, InvalidInput, NotFound, SelectorEmpty

__all__ = [
    "AsyncFarm",
    "AsyncRun",
    "ChangeFrame",
    "DeviceFrame",
    "Farm",
    "FarmError",
    "FarmUnreachable",
    "Frame",
    "HistoryFrame",
    "InvalidInput",
    "NotFound",
    "Run",
    "Samples",
    "SelectorEmpty",
    "SpeedupFrame",
]
