"""Facts of a device, assembled from its answers, with the source of each fact."""

from collections.abc import Mapping

from farm.core.devices.device import DeviceFacts
from farm.core.devices.hardware import Gpu, NnapiDriver
from farm.phone.hardware.cpu import clusters, core_by_number, hardware_line, possible_cores
from farm.phone.hardware.gpu import gpu
from farm.phone.hardware.nnapi import nnapi_drivers, nnapi_feature_level
from farm.phone.hardware.proc import core_count_of_nproc, memory_bytes
from farm.phone.hardware.storage import storage_size_bytes
from farm.phone.identity import facts
from farm.phone.identity.properties import Properties, properties
from farm.phone.identity.soc import chip

_OF_PROPERTIES = (
    "serialno",
    "device_model",
    "manufacturer",
    "market_name",
    "android",
    "api_level",
    "abis",
    "build_fingerprint",
    "security_patch",
)


def device_facts(said: Mapping[str, str], serial: str) -> DeviceFacts:
    """Return the facts of a device from its answers to FACTS_COMMAND; what is missing is None.

    The command is in `agents.device.state.facts`. `serial` stands in where the device reports no serial
    number of its own.
    """
    known = properties(said.get("getprop", ""))
    cpuinfo, machine = said.get("cpuinfo", ""), facts.abi_of_machine(said.get("machine", ""))
    soc = chip(known, hardware=hardware_line(cpuinfo), machine=said.get("soc_machine"))
    graphics, drivers, (cores, cores_source) = _gpu(said, known), _nnapi(said, known), _cores(said)
    together = clusters(said.get("cpufreq", ""), cpuinfo)
    return DeviceFacts(
        serialno=facts.serialno(known) or serial,
        device_model=facts.device_model(known) or _plain_name(said),
        manufacturer=facts.manufacturer(known),
        market_name=facts.market_name(known),
        soc=soc.text,
        soc_vendor=soc.vendor,
        soc_model=soc.model,
        android=facts.android_release(known),
        api_level=facts.api_level(known),
        abis=facts.abis(known) or ((machine,) if machine else ()),
        build_fingerprint=facts.build_fingerprint(known),
        security_patch=facts.security_patch(known),
        kernel=said.get("kernel", "").strip() or None,
        cores=cores,
        clusters=together,
        memory_bytes=memory_bytes(said.get("meminfo", ""), "MemTotal"),
        storage_bytes=storage_size_bytes(said.get("storage", "")),
        gpu=graphics,
        nnapi=drivers,
        root=_root(said.get("root", "")),
        sources={
            **_simple_sources(said, known),
            **_sources_by_fact({"soc": soc.source, "cores": cores_source}),
            **_hardware_sources(said, known, bool(together), graphics, drivers),
        },
        work_root=said.get("work_root", "").strip().rstrip("/"),
        virtual=facts.is_virtual(known),
        cpu_domain=facts.cpu_domain(known),
    )


def _plain_name(said: Mapping[str, str]) -> str:
    """Return the kernel's name for a device side that is not Android."""
    return f"{said.get('system', '').strip()} {said.get('machine', '').strip()}".strip() or "unknown"


def _gpu(said: Mapping[str, str], known: Properties) -> Gpu | None:
    return gpu(said.get("gles", ""), said.get("vkjson", ""), said.get("features", ""), facts.egl(known))


def _nnapi(said: Mapping[str, str], known: Properties) -> tuple[NnapiDriver, ...]:
    return nnapi_drivers(
        service_list=said.get("services", ""),
        lshal=said.get("lshal", ""),
        vintf=said.get("vintf", ""),
        properties=known,
    )


def _cores(said: Mapping[str, str]) -> tuple[int | None, str | None]:
    """Return the number of cores and its source; /proc/cpuinfo leaves out cores that are switched off."""
    if (possible := possible_cores(said.get("possible", ""))) is not None:
        return possible, "/sys/devices/system/cpu/possible"
    if listed := len(core_by_number(said.get("cpuinfo", ""))):
        return listed, "/proc/cpuinfo"
    return core_count_of_nproc(said.get("nproc", "")), "nproc"


def _root(text: str) -> bool | None:
    """Return the access to root: one number is the shell's own user, a second one that of `su`."""
    words = text.split()
    return None if not words else "0" in words


def _simple_sources(said: Mapping[str, str], known: Properties) -> dict[str, str]:
    """Return the sources of facts with a single place; facts that the device does not report are left out."""
    found = {fact: facts.fact_source(known, fact) for fact in _OF_PROPERTIES}
    if facts.market_name(known) is None:
        found["market_name"] = None
    places = {"kernel": "uname -r", "meminfo": "/proc/meminfo", "storage": "df", "root": "id, su"}
    facts_of = {"meminfo": "memory_bytes", "storage": "storage_bytes"}
    told = {facts_of.get(name, name): _joined_sections(said, {name: place}) for name, place in places.items()}
    return _sources_by_fact({**found, **told})


def _hardware_sources(
    said: Mapping[str, str],
    known: Properties,
    has_clusters: bool,
    graphics: Gpu | None,
    drivers: tuple[NnapiDriver, ...],
) -> dict[str, str]:
    of_cores = {"cpufreq": "sysfs cpufreq", "cpuinfo": "/proc/cpuinfo"}
    of_gpu = {"gles": "dumpsys SurfaceFlinger", "vkjson": "cmd gpu vkjson", "features": "cmd package"}
    of_nnapi = {"services": "service list", "lshal": "lshal", "vintf": "vintf manifests"}
    level = nnapi_feature_level(known)
    nnapi = _joined_sections(said, of_nnapi) or "init.svc properties"
    return _sources_by_fact(
        {
            "clusters": _joined_sections(said, of_cores) if has_clusters else None,
            "gpu": (_joined_sections(said, of_gpu) or facts.fact_source(known, "egl")) if graphics else None,
            "nnapi": (f"{nnapi}; feature level {level}" if level else nnapi) if drivers else None,
        }
    )


def _sources_by_fact(found: Mapping[str, str | None]) -> dict[str, str]:
    return {fact: source for fact, source in found.items() if source is not None}


def _joined_sections(said: Mapping[str, str], name_by_section: Mapping[str, str]) -> str | None:
    names = [name for section, name in name_by_section.items() if said.get(section, "").strip()]
    return ", ".join(names) or None
