"""Core names for the numbers of /proc/cpuinfo, by implementer and part."""

from collections.abc import Mapping
from types import MappingProxyType

#: Arm's and the implementers' MIDR_EL1 part numbers (arch/arm64/include/asm/cputype.h, technical manuals).
_ARM = {
    0xC05: "Cortex-A5",
    0xC07: "Cortex-A7",
    0xC08: "Cortex-A8",
    0xC09: "Cortex-A9",
    0xC0D: "Cortex-A12",
    0xC0E: "Cortex-A17",
    0xC0F: "Cortex-A15",
    0xD01: "Cortex-A32",
    0xD02: "Cortex-A34",
    0xD03: "Cortex-A53",
    0xD04: "Cortex-A35",
    0xD05: "Cortex-A55",
    0xD06: "Cortex-A65",
    0xD07: "Cortex-A57",
    0xD08: "Cortex-A72",
    0xD09: "Cortex-A73",
    0xD0A: "Cortex-A75",
    0xD0B: "Cortex-A76",
    0xD0C: "Neoverse-N1",
    0xD0D: "Cortex-A77",
    0xD0E: "Cortex-A76AE",
    0xD40: "Neoverse-V1",
    0xD41: "Cortex-A78",
    0xD42: "Cortex-A78AE",
    0xD43: "Cortex-A65AE",
    0xD44: "Cortex-X1",
    0xD46: "Cortex-A510",
    0xD47: "Cortex-A710",
    0xD48: "Cortex-X2",
    0xD49: "Neoverse-N2",
    0xD4A: "Neoverse-E1",
    0xD4B: "Cortex-A78C",
    0xD4C: "Cortex-X1C",
    0xD4D: "Cortex-A715",
    0xD4E: "Cortex-X3",
    0xD4F: "Neoverse-V2",
    0xD80: "Cortex-A520",
    0xD81: "Cortex-A720",
    0xD82: "Cortex-X4",
    0xD85: "Cortex-X925",
    0xD87: "Cortex-A725",
    0xD88: "Cortex-A520AE",
    0xD89: "Cortex-A720AE",
    0xD8A: "C1-Nano",
    0xD8B: "C1-Pro",
    0xD8C: "C1-Ultra",
    0xD8F: "Cortex-A320",
    0xD90: "C1-Premium",
}
_QUALCOMM = {
    0x001: "Oryon",
    0x002: "Oryon",
    0x00F: "Scorpion",
    0x02D: "Scorpion",
    0x04D: "Krait",
    0x06F: "Krait",
    0x201: "Kryo Silver",
    0x205: "Kryo Gold",
    0x211: "Kryo Silver",
    0x800: "Kryo 2xx Gold",
    0x801: "Kryo 2xx Silver",
    0x802: "Kryo 3xx Gold",
    0x803: "Kryo 3xx Silver",
    0x804: "Kryo 4xx Gold",
    0x805: "Kryo 4xx Silver",
}
_HISILICON = {0xD01: "TaiShan v110", 0xD02: "TaiShan v120", 0xD40: "Cortex-A76", 0xD41: "Cortex-A77"}
_SAMSUNG = {0x001: "Exynos M1/M2", 0x002: "Exynos M3", 0x003: "Exynos M4", 0x004: "Exynos M5"}
_NVIDIA = {0x000: "Denver", 0x003: "Denver 2", 0x004: "Carmel"}

#: Cores by the implementer's number.
CORES: Mapping[int, Mapping[int, str]] = MappingProxyType(
    {0x41: _ARM, 0x48: _HISILICON, 0x4E: _NVIDIA, 0x51: _QUALCOMM, 0x53: _SAMSUNG}
)


def core_name(implementer: int, part: int) -> str:
    """Return the core's name; for an unknown one its two numbers: `0x41:0xd05`."""
    return CORES.get(implementer, {}).get(part) or f"0x{implementer:02x}:0x{part:03x}"
