"""``python -m tests.support.lowest_versions EXTRAS``: the lowest versions that pyproject allows, for pip.

Those of the dependencies and of the extras named, for the environment of ``make test-lowest``.
"""

import re
import sys
import tomllib
from pathlib import Path

FLOOR = re.compile(r"([A-Za-z0-9._-]+)>=([0-9.]+)(,<[0-9.]+)?")


def pins(project, extras):
    """``name==floor`` of every requirement that is of one package, in every environment."""
    asked = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    found = (FLOOR.fullmatch(line) for line in asked)
    return [f"{match[1]}=={match[2]}" for match in found if match]


if __name__ == "__main__":
    text = (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    print(*pins(tomllib.loads(text)["project"], sys.argv[1:]))
