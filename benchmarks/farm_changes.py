"""What happens on a simulated farm: the kinds of change that `benchmarks/regressions.py` plays."""

from collections.abc import Callable

from benchmarks.farm_history import FIRST_DAY, Cell, Simulation
from farm.core.results.history.changes.points import BASELINE, Cause


def nothing(sim: Simulation, size: float) -> None:
    """Let nothing change at all."""


def versions_only(sim: Simulation, size: float) -> None:
    """Let versions change that change nothing."""
    for _ in range(3):
        sim.version(Cause.PROGRAM, ["h0"], sim.when())
        sim.version(Cause.OS, [f"m{sim.random.randrange(sim.farm.models)}"], sim.when())
        network, variant = sim.random.randrange(sim.farm.networks), sim.random.randrange(sim.farm.variants)
        sim.version(Cause.FILE, [f"n{network}", f"v{variant}" if variant else BASELINE], sim.when())


def file_change(sim: Simulation, size: float, *, is_base: bool = False) -> None:
    """Change the file of a variant on all devices."""
    network = f"n{sim.random.randrange(sim.farm.networks)}"
    variant = BASELINE if is_base else f"v{sim.random.randrange(1, sim.farm.variants)}"
    day = sim.when()
    sim.version(Cause.FILE, [network, variant], day)
    sim.change(Cause.FILE, size, lambda c: (c.network, c.variant) == (network, variant), day=day)


def base_file(sim: Simulation, size: float) -> None:
    """Change the file of a baseline."""
    file_change(sim, size, is_base=True)


def reverted(sim: Simulation, size: float) -> None:
    """Change a file, and change it back after some days."""
    network, variant, day = "n0", "v1", sim.when()
    back = day + sim.random.randint(8, 25)
    delta = sim.delta(size)
    for since, change in ((day, delta), (back, -delta)):
        sim.version(Cause.FILE, [network, variant], since)
        sim.change(
            Cause.FILE, size, lambda c: (c.network, c.variant) == (network, variant), day=since, delta=change
        )


def program_variants(sim: Simulation, size: float) -> None:
    """Change what a program does to all variants but the baseline."""
    day = sim.when()
    sim.version(Cause.PROGRAM, ["h0"], day)
    sim.change(Cause.PROGRAM, size, lambda c: c.harness == "h0" and c.variant != BASELINE, day=day)


def program_all(sim: Simulation, size: float) -> None:
    """Change the times of all series of a program."""
    day = sim.when()
    sim.version(Cause.PROGRAM, ["h0"], day)
    sim.change(Cause.PROGRAM, size, lambda c: c.harness == "h0", day=day)


def program_network(sim: Simulation, size: float) -> None:
    """Let a program change the variants of one network."""
    day = sim.when()
    sim.version(Cause.PROGRAM, ["h0"], day)
    sim.change(Cause.PROGRAM, size, lambda c: c.network == "n0" and c.variant != BASELINE, day=day)


def os_staggered(sim: Simulation, size: float, *, with_base: bool = True) -> None:
    """Update the build of one model, device by device."""
    day, model = sim.when(), f"m{sim.random.randrange(sim.farm.models)}"
    devices = sorted({c.device for c in sim.cells if c.model == model})
    stagger = {d: sim.random.randint(0, 10) for d in devices}
    stagger[devices[0]] = 0
    for device in devices:
        sim.version(Cause.OS, [device], day + stagger[device], named=f"os-{model}-of-{day}")
    sim.change(
        Cause.OS,
        size,
        lambda c: c.model == model and (with_base or c.variant != BASELINE),
        day=day,
        stagger=stagger,
    )


def os_variants(sim: Simulation, size: float) -> None:
    """Update the build, which changes all but the baselines."""
    os_staggered(sim, size, with_base=False)


def device_step(sim: Simulation, size: float) -> None:
    """Make everything on a device slower or quicker."""
    device = f"d{sim.random.randrange(sim.farm.devices)}"
    sim.change(Cause.DEVICE, size, lambda c: c.device == device, day=sim.when())


def device_variants(sim: Simulation, size: float) -> None:
    """Change all variants of a device, but not its baselines."""
    device = f"d{sim.random.randrange(sim.farm.devices)}"
    sim.change(Cause.DEVICE, size, lambda c: c.device == device and c.variant != BASELINE, day=sim.when())


def device_variant(sim: Simulation, size: float) -> None:
    """Change one variant of a device, of all networks: its driver lost an operator, say."""
    device = f"d{sim.random.randrange(sim.farm.devices)}"
    sim.change(Cause.DEVICE, size, lambda c: (c.device, c.variant) == (device, "v1"), day=sim.when())


def drift(sim: Simulation, size: float) -> None:
    """Let one series drift."""
    cell = sim.random.choice([c for c in sim.cells if c.variant != BASELINE])
    _drift(sim, size, lambda c: c.name == cell.name)


def drift_device(sim: Simulation, size: float) -> None:
    """Let everything on a device drift."""
    device = f"d{sim.random.randrange(sim.farm.devices)}"
    _drift(sim, size, lambda c: c.device == device)


def drift_device_variants(sim: Simulation, size: float) -> None:
    """Let all variants of a device drift, but not its baselines."""
    device = f"d{sim.random.randrange(sim.farm.devices)}"
    _drift(sim, size, lambda c: c.device == device and c.variant != BASELINE)


def drift_base(sim: Simulation, size: float) -> None:
    """Let one baseline drift."""
    device = f"d{sim.random.randrange(sim.farm.devices)}"
    _drift(sim, size, lambda c: c.name == f"{device}/n0/{BASELINE}")


def drift_variant(sim: Simulation, size: float) -> None:
    """Let one variant drift on all devices."""
    _drift(sim, size, lambda c: (c.network, c.variant) == ("n0", "v1"))


def _drift(sim: Simulation, size: float, is_in: Callable[[Cell], bool]) -> None:
    ramp = sim.random.randint(30, min(90, sim.farm.days - 75))
    day = FIRST_DAY + sim.random.randint(45, sim.farm.days - ramp - 20)
    sim.change(Cause.DRIFT, size, is_in, day=day, ramp=ramp)


def os_and_program(sim: Simulation, size: float) -> None:
    """Change build and program on one day; one of them changes the times."""
    day, model = sim.when(), "m0"
    sim.version(Cause.OS, [model], day)
    sim.version(Cause.PROGRAM, ["h0"], day)
    if sim.random.random() < 0.5:
        sim.change(Cause.OS, size, lambda c: c.model == model and c.variant != BASELINE, day=day)
    else:
        sim.change(Cause.PROGRAM, size, lambda c: c.harness == "h0" and c.variant != BASELINE, day=day)


def file_on_one_device(sim: Simulation, size: float) -> None:
    """Change a file on one device."""
    device, day = f"d{sim.random.randrange(sim.farm.devices)}", sim.when()
    sim.version(Cause.FILE, [device, "n0", "v1"], day)
    sim.change(Cause.FILE, size, lambda c: c.name == f"{device}/n0/v1", day=day)


def two_in_a_week(sim: Simulation, size: float) -> None:
    """Change a file, and within a week a program."""
    day = sim.when()
    later = day + sim.random.randint(3, 6)
    sim.version(Cause.FILE, ["n0", "v1"], day)
    sim.change(Cause.FILE, size, lambda c: (c.network, c.variant) == ("n0", "v1"), day=day)
    sim.version(Cause.PROGRAM, ["h0"], later)
    sim.change(Cause.PROGRAM, size, lambda c: c.harness == "h0" and c.variant != BASELINE, day=later)


def at_the_start(sim: Simulation, size: float) -> None:
    """Change a file after a few sessions."""
    day = FIRST_DAY + sim.random.randint(4, 12)
    sim.version(Cause.FILE, ["n0", "v1"], day)
    sim.change(Cause.FILE, size, lambda c: (c.network, c.variant) == ("n0", "v1"), day=day)


def os_one_device(sim: Simulation, size: float) -> None:
    """Update the build of one device, which changes all times on it."""
    device, day = f"d{sim.random.randrange(sim.farm.devices)}", sim.when()
    sim.version(Cause.OS, [device], day)
    sim.change(Cause.OS, size, lambda c: c.device == device, day=day)


def device_reverted(sim: Simulation, size: float) -> None:
    """Make everything on a device slower or quicker, and let it return after some weeks."""
    device, day, delta = f"d{sim.random.randrange(sim.farm.devices)}", sim.when(), sim.delta(size)
    for since, change in ((day, delta), (day + sim.random.randint(18, 30), -delta)):
        sim.change(Cause.DEVICE, size, lambda c: c.device == device, day=since, delta=change)


def mixture(sim: Simulation, size: float) -> None:
    """Let several things change over the months, beside versions that change nothing."""
    versions_only(sim, size)
    kinds = (file_change, base_file, program_variants, program_all, os_staggered, os_variants, device_step)
    for kind in sim.random.sample(kinds, 4):
        kind(sim, size)


Play = Callable[[Simulation, float], None]
CHANGES: tuple[Play, ...] = (
    file_change,
    file_on_one_device,
    at_the_start,
    two_in_a_week,
    base_file,
    reverted,
    program_variants,
    program_all,
    program_network,
    os_staggered,
    os_variants,
    os_one_device,
    device_step,
    device_reverted,
    device_variants,
    device_variant,
    drift,
    drift_device,
    drift_device_variants,
    drift_base,
    drift_variant,
    os_and_program,
    mixture,
)
