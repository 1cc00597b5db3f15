"""What invented phones print, in the forms of real ones, with the parser that reads each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass

from farm.phone.adb.listing import adb_device_rows
from farm.phone.condition.battery import battery_status
from farm.phone.condition.thermal import skin_limit_c, thermal, thermal_limits
from farm.phone.hardware.clocks import clocks
from farm.phone.hardware.cpu import clusters, core_by_number, hardware_line, possible_cores
from farm.phone.hardware.gpu import gpu
from farm.phone.hardware.nnapi import nnapi_drivers
from farm.phone.hardware.proc import load_1m, memory_bytes, uptime_s
from farm.phone.hardware.storage import storage_free_bytes, storage_size_bytes
from farm.phone.identity.properties import properties
from farm.phone.identity.soc import chip

Told = set[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A text, and what reads it: values are told apart by where in the result they stand."""

    text: str
    read: Callable[[str], object]


def told(sample: Sample, text: str) -> Told:
    """Every single value that is read off a text."""
    return _flat(sample.read(text), "")


def _flat(value: object, path: str) -> Told:
    if value is None or value == () or value == {}:
        return set()
    if is_dataclass(value) and not isinstance(value, type):
        return set().union(
            *(_flat(getattr(value, each.name), f"{path}.{each.name}") for each in fields(value))
        )
    if isinstance(value, Mapping):
        return set().union(*(_flat(each, f"{path}[{key}]") for key, each in value.items()))
    return {(path, repr(value))}


def _cpuinfo(*parts: int) -> str:
    """The first half of the cores with one part each, as arm64 kernels describe them."""
    blocks = (
        f"processor\t: {core}\nBogoMIPS\t: 26.00\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\n"
        f"CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0x{part:x}\nCPU revision\t: 0\n\n"
        for core, part in enumerate(parts)
    )
    return "".join(blocks)


_CPUFREQ = (
    "".join(
        f"/sys/devices/system/cpu/cpufreq/{policy}/{file}:{value}\n"
        for policy, cores, low, high in [
            ("policy0", "0 1 2 3", 364800, 2016000),
            ("policy4", "4 5 6 7", 499200, 2803200),
        ]
        for file, value in [
            ("related_cpus", cores),
            ("scaling_governor", "walt"),
            ("scaling_cur_freq", high - 100),
            ("cpuinfo_min_freq", low),
            ("cpuinfo_max_freq", high),
        ]
    )
    + "/sys/class/kgsl/kgsl-3d0/gpu_busy_percentage:17 %\n"
)
_AIDL = "android.hardware.neuralnetworks.IDevice"
_SERVER = "vendor.acme.hardware.camera.IThing/default: [vendor.acme.hardware.camera.IThing]"

SAMPLES = {
    "getprop": Sample(
        text="[ro.product.model]: [A-77X]\n[ro.note]: [two\nlines]\n[ro.empty]: []\n"
        "[ro.board.platform]: [kona]\n",
        read=properties,
    ),
    "build.prop": Sample(
        text="# begin\nro.product.model=A-77X\nro.build.version.sdk=33\nro.chipname=exynos9825\n",
        read=properties,
    ),
    "battery": Sample(
        text="Current Battery Service state:\n  AC powered: false\n  USB powered: true\n"
        "  Wireless powered: false\n  Max charging current: 500000\n  Charge counter: 2480000\n"
        "  status: 2\n  health: 2\n  present: true\n"
        "  level: 57\n  scale: 100\n  voltage: 3961\n  temperature: 312\n  technology: Li-poly\n",
        read=battery_status,
    ),
    "thermal": Sample(
        text="IsStatusOverride: false\nThermal Status: 1\nHAL Ready: true\nCurrent temperatures from HAL:\n"
        "\tTemperature{mValue=41.700005, mType=0, mName=CPU big, mStatus=0}\n"
        "\tTemperature{mValue=NaN, mType=0, mName=CPU off, mStatus=0}\n"
        "\tTemperature{mValue=36.25, mType=3, mName=back, mStatus=1}\n"
        "Current cooling devices from HAL:\n\tCoolingDevice{mValue=4, mType=2, mName=cpufreq-4}\n",
        read=thermal,
    ),
    "thermal limits": Sample(
        text="Temperature static thresholds from HAL:\n"
        "\tTemperatureThreshold{mType=3, mName=back, mHotThrottlingThresholds=[34.0, 37.5, 41.0, "
        "NaN, NaN, NaN, 55.0], mColdThrottlingThresholds=[NaN, NaN, NaN, NaN, NaN, NaN, NaN]}\n",
        read=lambda text: {"limits": dict(enumerate(thermal_limits(text))), "skin": skin_limit_c(text)},
    ),
    "cores": Sample(text=_cpuinfo(0xD80, 0xD80, 0xD81, 0xD82), read=core_by_number),
    "hardware": Sample(
        text=_cpuinfo(0xD05) + "Hardware\t: Qualcomm Technologies, Inc SM7125\n",
        read=lambda text: chip({}, hardware=hardware_line(text)),
    ),
    "clocks": Sample(
        text=f"/sys/devices/system/cpu/online:0-7\n{_CPUFREQ}",
        read=lambda text: {
            "cpus": {policy.name: policy for policy in clocks(text).cpus},
            "online": clocks(text).online,
            "gpu": clocks(text).gpu_busy_pct,
        },
    ),
    "clusters": Sample(text=_CPUFREQ, read=lambda text: {each.cores: each for each in clusters(text, "")}),
    "possible": Sample(text="0-7\n", read=lambda text: {"cores": possible_cores(text)}),
    "memory": Sample(
        text="MemTotal:       11725896 kB\nMemFree:          310284 kB\nMemAvailable:    5204816 kB\n",
        read=lambda text: {field: memory_bytes(text, field) for field in ("MemTotal", "MemAvailable")},
    ),
    "load": Sample(text="12.75 9.31 8.02 3/5120 21744\n", read=lambda text: {"load": load_1m(text)}),
    "uptime": Sample(text="86461.25 402211.08\n", read=lambda text: {"uptime": uptime_s(text)}),
    "df": Sample(
        text="Filesystem     1K-blocks     Used Available Use% Mounted on\n"
        "/dev/block/dm-7 117214208 52044800 65169408  45% /data\n"
        "tmpfs            5862948     1904   5861044   1% /data_mirror\n",
        read=lambda text: {"size": storage_size_bytes(text), "free": storage_free_bytes(text)},
    ),
    "gles": Sample(
        text="GLES: ARM, Mali-G615 MC6, OpenGL ES 3.2 v1.r44p1-03eac0.1a2b3c\n",
        read=lambda text: gpu(text, ""),
    ),
    "vkjson": Sample(
        text='{\n  "apiVersion": 4206847,\n  "driverVersion": 184549376,\n  "deviceName": "Mali-G615 MC6"\n'
        "}\n",
        read=lambda text: gpu("", text),
    ),
    "services": Sample(
        text=f"Found 3 services:\n0\t{_SERVER}\n1\t{_AIDL}/acme-npu: [{_AIDL}]\n"
        f"2\t{_AIDL}/acme-dsp: [{_AIDL}]\n",
        read=lambda text: {each.name: each for each in nnapi_drivers(service_list=text)},
    ),
    "lshal": Sample(
        text="DM,FC Y android.hardware.neuralnetworks@1.3::IDevice/acme-gpu   0/3   812   455 1090\n"
        'Warning: Skipping "android.hardware.neuralnetworks@1.2::IDevice/acme-old": '
        "cannot be fetched from service manager (null)\n",
        read=lambda text: {each.name: each for each in nnapi_drivers(lshal=text)},
    ),
    "vintf": Sample(
        text='<manifest version="6.0" type="device"><hal format="aidl">\n'
        "<name>android.hardware.neuralnetworks</name>\n"
        "<version>4</version>\n<fqname>IDevice/acme-tpu</fqname>\n</hal></manifest>\n",
        read=lambda text: {each.name: each for each in nnapi_drivers(vintf=text)},
    ),
    "adb": Sample(
        text="List of devices attached\n"
        "0A1B2C3D4E   device usb:1-1.4 product:acme model:A_77X device:acme transport_id:12\n"
        "10.7.7.7:5555          offline transport_id:13\n\n",
        read=lambda text: {phone.serial: phone for phone in adb_device_rows(text)},
    ),
}
