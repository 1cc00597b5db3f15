"""Facts of a device, assembled from its answers, with the source of each fact."""

from collections.abc import Mapping

from farm.core.devices.device import DeviceFacts, Gpu, NnapiDriver
from farm.phone.condition.thermal import thermal_hal_version
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


def device_facts(answers: Mapping[str, str], serial: str) -> DeviceFacts:
    """Return the facts of a device from its answers to FACTS_COMMAND; what is missing is None.

    The command is in `agents.device.facts`. `serial` stands in where the device reports no serial
    number of its own.
    """
    device_properties = properties(answers.get("getprop", ""))
    cpuinfo, machine = answers.get("cpuinfo", ""), facts.abi_of_machine(answers.get("machine", ""))
    soc = chip(device_properties, hardware=hardware_line(cpuinfo), machine=answers.get("soc_machine"))
    graphics, drivers, (cores, cores_source) = (
        gpu(
            answers.get("gles", ""),
            answers.get("vkjson", ""),
            answers.get("features", ""),
            facts.text_fact(device_properties, "egl"),
        ),
        nnapi_drivers(
            service_list=answers.get("services", ""),
            lshal=answers.get("lshal", ""),
            vintf=answers.get("vintf", ""),
            properties=device_properties,
        ),
        _cores(answers),
    )
    # The kernel's name, for a device side that is not Android.
    plain_name = f"{answers.get('system', '').strip()} {answers.get('machine', '').strip()}".strip()
    core_clusters = clusters(answers.get("cpufreq", ""), cpuinfo)
    return DeviceFacts(
        serialno=facts.text_fact(device_properties, "serialno") or serial,
        device_model=facts.text_fact(device_properties, "device_model") or plain_name or "unknown",
        manufacturer=facts.text_fact(device_properties, "manufacturer"),
        market_name=facts.market_name(device_properties),
        soc=soc.text,
        soc_vendor=soc.vendor,
        soc_model=soc.model,
        android=facts.text_fact(device_properties, "android"),
        api_level=facts.api_level(device_properties),
        abis=facts.abis(device_properties) or ((machine,) if machine else ()),
        build_fingerprint=facts.text_fact(device_properties, "build_fingerprint"),
        security_patch=facts.text_fact(device_properties, "security_patch"),
        kernel=answers.get("kernel", "").strip() or None,
        kernel_version=answers.get("kernel_version", "").strip() or None,
        thermal_hal=thermal_hal_version(answers.get("thermal_hal", "")),
        cores=cores,
        clusters=core_clusters,
        memory_bytes=memory_bytes(answers.get("meminfo", ""), "MemTotal"),
        storage_bytes=storage_size_bytes(answers.get("storage", "")),
        gpu=graphics,
        nnapi=drivers,
        root=_root(answers.get("root", "")),
        sources={
            **_simple_sources(answers, device_properties),
            **_sources_by_fact({"soc": soc.source, "cores": cores_source}),
            **_hardware_sources(answers, device_properties, bool(core_clusters), graphics, drivers),
        },
        work_root=answers.get("work_root", "").strip().rstrip("/"),
        virtual=facts.is_virtual(device_properties),
        cpu_domain=facts.text_fact(device_properties, "cpu_domain"),
    )


def _cores(answers: Mapping[str, str]) -> tuple[int | None, str | None]:
    """Return the number of cores and its source; /proc/cpuinfo leaves out cores that are switched off."""
    if (possible := possible_cores(answers.get("possible", ""))) is not None:
        return possible, "/sys/devices/system/cpu/possible"
    if listed := len(core_by_number(answers.get("cpuinfo", ""))):
        return listed, "/proc/cpuinfo"
    return core_count_of_nproc(answers.get("nproc", "")), "nproc"


def _root(text: str) -> bool | None:
    """Return the access to root: one number is the shell's own user, a second one that of `su`."""
    ids = text.split()
    return None if not ids else "0" in ids


def _simple_sources(answers: Mapping[str, str], device_properties: Properties) -> dict[str, str]:
    """Return the sources of facts with a single place; facts that the device does not report are left out."""
    property_sources = {fact: facts.fact_source(device_properties, fact) for fact in _OF_PROPERTIES}
    if facts.market_name(device_properties) is None:
        property_sources["market_name"] = None
    places = {
        "kernel": "uname -r",
        "kernel_version": "uname -v",
        "thermal_hal": "dumpsys thermalservice",
        "meminfo": "/proc/meminfo",
        "storage": "df",
        "root": "id, su",
    }
    facts_of = {"meminfo": "memory_bytes", "storage": "storage_bytes"}
    command_sources = {
        facts_of.get(name, name): _joined_sections(answers, {name: place}) for name, place in places.items()
    }
    return _sources_by_fact({**property_sources, **command_sources})


def _hardware_sources(
    answers: Mapping[str, str],
    device_properties: Properties,
    has_clusters: bool,
    graphics: Gpu | None,
    drivers: tuple[NnapiDriver, ...],
) -> dict[str, str]:
    of_cores = {"cpufreq": "sysfs cpufreq", "cpuinfo": "/proc/cpuinfo"}
    of_gpu = {"gles": "dumpsys SurfaceFlinger", "vkjson": "cmd gpu vkjson", "features": "cmd package"}
    of_nnapi = {"services": "service list", "lshal": "lshal", "vintf": "vintf manifests"}
    level = nnapi_feature_level(device_properties)
    nnapi = _joined_sections(answers, of_nnapi) or "init.svc properties"
    return _sources_by_fact(
        {
            "clusters": _joined_sections(answers, of_cores) if has_clusters else None,
            "gpu": (_joined_sections(answers, of_gpu) or facts.fact_source(device_properties, "egl"))
            if graphics
            else None,
            "nnapi": (f"{nnapi}; feature level {level}" if level else nnapi) if drivers else None,
        }
    )


def _sources_by_fact(sources: Mapping[str, str | None]) -> dict[str, str]:
    return {fact: source for fact, source in sources.items() if source is not None}


def _joined_sections(answers: Mapping[str, str], name_by_section: Mapping[str, str]) -> str | None:
    names = [name for section, name in name_by_section.items() if answers.get(section, "").strip()]
    return ", ".join(names) or None
