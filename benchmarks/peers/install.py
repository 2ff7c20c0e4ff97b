"""Make ``.venv-peers`` and install the peers of ``pins.txt`` one by one: ``python -m benchmarks.peers.install``.

What became of each is written to ``.venv-peers/peers.json``: its version, or the last line of why there is none.
"""

import json
import subprocess
import venv
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / ".venv-peers"
PYTHON = FOLDER / "bin" / "python"
REPORT = FOLDER / "peers.json"
PINS = Path(__file__).with_name("pins.txt")
IMPORTED = {"tfp-nightly": "tensorflow_probability.substrates.jax"}  # where a package is not imported by its name


def pinned() -> dict[str, str]:
    """Versions by package."""
    return dict(line.split("==") for line in PINS.read_text(encoding="utf-8").split())


def installed(package: str, version: str) -> str:
    """``version`` once the package is there and can be imported, else why it is not."""
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{package}=={version}"]
    look = [str(PYTHON), "-c", f"import {IMPORTED.get(package, package)}"]
    for command in (pip, look):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            return f"not installed: {lines[-1][:200]}"
    return version


def main() -> None:
    """Install all, and say what there is."""
    venv.create(FOLDER, with_pip=True)
    found = {package: installed(package, version) for package, version in pinned().items()}
    REPORT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for package, what in found.items():
        print(f"{package}: {what}")


if __name__ == "__main__":
    main()
