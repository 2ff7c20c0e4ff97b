"""Labels of units of series, compared among each other and with a system's."""

from collections.abc import Sequence

from ..systems.system import System
from ..systems.units import check_state_units, check_time_units, time_label, unit_label, units_by_state
from .series import Series


def check_labels(labels: Sequence[str], data: Sequence[Series], system: System | None = None) -> None:
    """Raise ValueError where series, or a system, have different labels of units; an empty label fits any.

    labels: what the series are called in messages, one each.
    """
    if system is not None:
        whose = f"the system {system.name!r}"
        for label, series in zip(labels, data, strict=True):
            check_pair((label, series), whose, system.time_unit, units_by_state(system.states, system.units))
    first = next(((label, one) for label, one in zip(labels, data, strict=True) if time_label(one.time_unit)), None)
    units: dict[str, tuple[str, str]] = {}  # state → whose label it is, and the label
    for label, series in zip(labels, data, strict=True):
        if first is not None:
            check_pair((label, series), f"{first[0]} {first[1].name!r}", first[1].time_unit, {})
        for state, unit in units_by_state(series.states, series.units).items():
            whose, other = units.get(state, ("", ""))
            check_pair((label, series), whose, "", {state: other})
            if unit_label(unit) and not other:
                units[state] = (f"{label} {series.name!r}", unit)


def check_pair(labelled: tuple[str, Series], whose: str, time_unit: str, units: dict[str, str]) -> None:
    """Raise ValueError where a series' labels differ from those of something else."""
    label, series = labelled
    mine = f"{label} {series.name!r}"
    remedy = f"give {label}.with_time_unit({time_unit!r})"
    check_time_units((whose, time_unit), (mine, series.time_unit), remedy)
    remedy = f"give {label}.with_units({{{{{{state!r}}: {{unit!r}}}}}}, factor=…)"
    check_state_units((whose, units), (mine, units_by_state(series.states, series.units)), remedy)
