"""Model phones: what a real one remembers, and nothing of who drives it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from farm.core.devices.device import DeviceFacts
from farm.core.errors import DeviceError, DeviceOffline


@dataclass(slots=True, kw_only=True)
class Run:
    """A run on a phone. Its record is there once it has ended by itself."""

    fence: int
    boot: int
    started_s: float
    ends_s: float
    killed: bool = False

    def is_alive(self, phone: "ModelPhone", now_s: float) -> bool:
        return not self.killed and self.boot == phone.boot and now_s < self.ends_s


@dataclass(slots=True, kw_only=True)
class ModelPhone:
    """One phone with its work folder; the rules are those of the supervisor script.

    Invariant (I8): one run at most is alive.
    """

    device_id: str
    cpu_domain: str | None = None
    #: Hosts that see it; a phone on USB has one at most.
    links: set[int] = field(default_factory=set)
    tcp: bool = False
    boot: int = 1
    #: adb lists it, and nothing answers.
    is_mute_until_s: float = 0.0
    fence: int = 0
    cleaned: int = 0
    runs: dict[int, Run] = field(default_factory=dict)
    #: What never may be, as it happened.
    broken: list[str] = field(default_factory=list)
    #: Told of each start and end of a run.
    note: Callable[[str], None] = lambda text: None

    @property
    def facts(self) -> DeviceFacts:
        return DeviceFacts(
            serialno=self.device_id,
            device_model="model phone",
            abis=("x86_64",),
            api_level=34,
            work_root="/data/local/tmp",
            virtual=True,
            cpu_domain=self.cpu_domain,
        )

    @property
    def boot_id(self) -> str:
        return f"{self.device_id} boot {self.boot}"

    def reach(self, host: int, now_s: float) -> None:
        """Raises DeviceOffline where a host cannot talk to it now."""
        if host not in self.links or now_s < self.is_mute_until_s:
            raise DeviceOffline(f"{self.device_id} does not answer")

    def start(self, fence: int, now_s: float, duration_s: float) -> None:
        """As `supervisor start`: raises the fence, refuses what is older or was cleaned up; once."""
        if fence < self.fence or fence <= self.cleaned:
            raise DeviceError(f"{self.device_id} refuses run {fence}: {self.fence}, {self.cleaned}")
        self.fence = fence
        if fence in self.runs:
            return
        alive = [run.fence for run in self.runs.values() if run.is_alive(self, now_s)]
        if alive:
            self.broken.append(f"I8 {self.device_id}: run {fence} starts beside {alive}")
        self.runs[fence] = Run(fence=fence, boot=self.boot, started_s=now_s, ends_s=now_s + duration_s)
        self.note(f"run {fence} starts on {self.device_id}")

    def clean(self, fence: int) -> None:
        """As `supervisor clean`: nothing up to the fence lives or is kept."""
        self.cleaned = max(self.cleaned, fence)
        for each in [each for each in self.runs if each <= fence]:
            self.runs.pop(each).killed = True

    def reboot(self, now_s: float, takes_s: float) -> None:
        """All processes are gone, files stay."""
        self.boot += 1
        self.is_mute_until_s = now_s + takes_s
