"""Where two descriptions differ, in words."""

from typing import Any

import numpy as np

Description = dict[str, Any]


def differences(saved: Any, now: Any, *, portable: bool = False) -> list[str]:
    """Where two descriptions differ, in words: 'sampler.step_sizes[0]: 0.01 there, 0.02 here'.

    ``saved`` is what is 'there', ``now`` what is 'here'. portable: leave out code compiled by another version of
    Python, which cannot be compared, and versions of installed packages.
    """
    return list(compare("", saved, now, portable))


def compare(path: str, saved: Any, now: Any, portable: bool) -> Any:
    """The differences below ``path``, one by one."""
    if isinstance(saved, dict) and isinstance(now, dict) and saved.get("type") == now.get("type"):
        if "code" in saved and "code" in now:
            saved, now, found = compare_code(path, saved, now, portable)
            yield from found
        for key in [*saved, *(key for key in now if key not in saved)]:
            below = f"{path}.{key}" if path else key
            if key in saved and key in now:
                yield from compare(below, saved[key], now[key], portable)
            else:
                yield f"{below}: {shown(saved.get(key), key in saved)} there, {shown(now.get(key), key in now)} here"
    elif isinstance(saved, list) and isinstance(now, list) and len(saved) == len(now):
        for i, (a, b) in enumerate(zip(saved, now, strict=True)):
            yield from compare(f"{path}[{i}]", a, b, portable)
    elif isinstance(saved, np.ndarray) and isinstance(now, np.ndarray):
        yield from compare_arrays(path, saved, now)
    elif not same_value(saved, now):
        yield f"{path}: {shown(saved)} there, {shown(now)} here"


def compare_code(path: str, saved: Description, now: Description, portable: bool) -> tuple[Any, Any, list[str]]:
    """What remains to be compared of two functions, and what differs in their code."""
    apart = ("python", "code", "packages", *(() if "references" in saved else ("references",)))  # of earlier versions
    left = [{key: item for key, item in d.items() if key not in apart} for d in (saved, now)]
    found = []
    if saved["python"] != now["python"]:
        if not portable:
            found.append(f"{path}: compiled by Python {saved['python']} there, {now['python']} here")
    else:
        names = sorted(saved["code"].keys() | now["code"].keys())
        other = [name for name in names if saved["code"].get(name) != now["code"].get(name)]
        if other:
            found.append(f"{path}: other code of {', '.join(other)}")
    if not portable:
        found += [f"{path}.packages.{line}" for line in differences(saved["packages"], now["packages"])]
    return *left, found  # type: ignore[return-value]


def compare_arrays(path: str, saved: Any, now: Any) -> Any:
    """The difference of two arrays: their kind, their shape or the first entry that differs."""
    if saved.dtype != now.dtype:
        yield f"{path}: an array of {saved.dtype} there, of {now.dtype} here"
    elif saved.shape != now.shape:
        yield f"{path}: shape {saved.shape} there, {now.shape} here"
    else:
        other = saved != now
        if saved.dtype.kind == "f":
            other &= ~(np.isnan(saved) & np.isnan(now))
        places = np.argwhere(other)
        if len(places):
            first = tuple(places[0])
            further = f", and {len(places) - 1} further entries" if len(places) > 1 else ""
            where = ", ".join(map(str, first))
            yield f"{path}[{where}]: {shown(saved[first].item())} there, {shown(now[first].item())} here{further}"


def same_value(a: Any, b: Any) -> bool:
    """Whether two plain values are equal; nan equals nan, True is not 1."""
    if isinstance(a, bool) != isinstance(b, bool) or isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    return bool(a == b or (a != a and b != b))


def shown(value: Any, there: bool = True) -> str:
    """A value in few words."""
    if not there:
        return "nothing"
    if isinstance(value, dict):
        return str(value.get("type", value.get("function", value.get("name", "something"))))
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
