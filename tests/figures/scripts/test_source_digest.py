"""Which change of a script or of what it uses has it measured anew, and which has not."""

import pytest

from figures import script
from figures.scripts import source_digest
from figures.scripts.study import Study

STUDY = Study.__module__
PACKAGE = {
    f"{STUDY.replace('.', '/')}.py": "from toolkit import sample\nclass Study:\n    sample = sample\n",
    "figures/plots/style.py": 'DARK = "#000000"\n',
    "figures/rates.py": """from .deeper import DEEP
RATE = 0.5 * DEEP
UNUSED = 1
TABLE = {}
TABLE['a'] = 1
ROWS = []
ROWS.append(3)
try:
    from .fast import speed
except ImportError:
    speed = 1
""",
    "figures/deeper.py": "DEEP = 3\n",
    "figures/fast.py": "speed = 9\n",
    "figures/late.py": "def late():\n    return 4\n",
    "figures/other.py": "import numpy as np\nWIDTH = 5\ndef unused():\n    return 7\n",
    "figures/a_fig1.py": '''"""A figure."""
import numpy as np
from figures import Data, other, style
from figures.rates import RATE, ROWS, TABLE, speed
from targets import pair
COLOUR = "red"
SIZE = 100


def chosen(x):
    """Half of it."""
    return 0.5 * x


def measure(study):
    """Runs."""
    from .late import late
    return {"x": np.zeros(SIZE) + RATE + chosen(other.WIDTH) + late() + TABLE["a"] + len(ROWS) + speed + pair}


def draw(data):
    return style.DARK, COLOUR
''',
    "figures/__init__.py": f"from {STUDY} import Study as Data\n",
    "figures/papers/__init__.py": "",
    "figures/papers/a/__init__.py": "FACE = 6\n",
    "figures/papers/a/fig2.py": """from figures.rates import RATE
from ...other import WIDTH
from . import FACE, shared
from .shared import SHARE
def measure(study):
    return {"x": RATE + WIDTH + FACE + SHARE + shared.PLACE}
""",
    "figures/papers/a/shared.py": "from ..b import near\nSHARE = 2\nPLACE = near.NEAR\n",
    "figures/papers/b/__init__.py": "",
    "figures/papers/b/near.py": "NEAR = 8\nFAR = 9\n",
    "toolkit/__init__.py": "sample = 1\n",
    "toolkit/table.npz": "1",
    "targets/__init__.py": "pair = 2\n",
    "targets/table.csv": "1,2\n",
    "sysid/__init__.py": "system = 3\n",
}
LEAVES = [  # file, what is there, what is put in its place
    ("a_fig1", 'COLOUR = "red"', 'COLOUR = "blue"'), ("a_fig1", "return style.DARK, COLOUR", "return COLOUR"),
    ("a_fig1", '"""Half of it."""', '"""A half of x."""'), ("a_fig1", '    """Runs."""\n', ""),
    ("a_fig1", "SIZE = 100", "SIZE = 100  # chains"), ("a_fig1", "0.5 * x", "(0.5\n            * x)"),
    ("a_fig1", '"""A figure."""', '"""Another."""'), ("figures/plots/style", "#000000", "#111111"),
    ("rates", "UNUSED = 1", "UNUSED = 2"), ("sysid/__init__", "3", "4"),
    ("a_fig1", "import RATE, ROWS, TABLE, speed", "import RATE, ROWS, TABLE, UNUSED, speed"),
]  # fmt: skip
CHANGES = [
    ("a_fig1", "np.zeros", "np.ones"), ("a_fig1", "SIZE = 100", "SIZE = 101"), ("a_fig1", "0.5 * x", "0.6 * x"),
    ("rates", "0.5", "0.6"), ("deeper", "3", "4"), ("late", "4", "5"), ("other", "WIDTH = 5", "WIDTH = 6"),
    ("rates", "TABLE['a'] = 1", "TABLE['a'] = 2"), ("rates", "append(3)", "append(4)"), ("fast", "9", "8"),
    (f"{STUDY.replace('.', '/')}.py", "sample = sample", "sample = None"),
    ("toolkit/__init__", "1", "2"), ("toolkit/table.npz", "1", "2"), ("targets/__init__", "2", "3"),
    ("targets/table.csv", "1,2", "1,3"),
    ("a_fig1", "from targets import pair", "from toolkit import sample as pair"),
    ("a_fig1", "import RATE, ROWS, TABLE, speed", "import UNUSED as RATE, ROWS, TABLE, speed"),
]  # fmt: skip


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small distribution, and its digest."""
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(source_digest, "HERE", tmp_path / "figures")

    def digest(module="figures.a_fig1"):
        source_digest.top_level.cache_clear()
        source_digest.stamp.cache_clear()
        source_digest.source_stamp.cache_clear()
        return source_digest.digest(module, "measure")

    yield tmp_path, digest
    source_digest.top_level.cache_clear()
    source_digest.stamp.cache_clear()


def edit(folder, name, old, new):
    path = folder / (name if "/" in name else f"figures/{name}")
    path = path if path.suffix else path.with_suffix(".py")
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(("name", "old", "new"), LEAVES)
def test_look_and_words_leave_the_digest(package, name, old, new):
    folder, digest = package
    before = digest()
    edit(folder, name, old, new)
    assert digest() == before


@pytest.mark.parametrize(("name", "old", "new"), CHANGES)
def test_whatever_numbers_are_made_of_changes_the_digest(package, name, old, new):
    folder, digest = package
    before = digest()
    edit(folder, name, old, new)
    assert digest() != before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("papers/a/fig2", "RATE + WIDTH", "RATE - WIDTH"), ("papers/a/__init__", "6", "7"),
        ("papers/a/shared", "SHARE = 2", "SHARE = 3"), ("papers/b/near", "NEAR = 8", "NEAR = 7"),
        ("rates", "0.5", "0.6"), ("other", "WIDTH = 5", "WIDTH = 6"), ("toolkit/__init__", "1", "2"),
    ],
)  # fmt: skip
def test_the_digest_of_a_script_in_a_folder_follows_relative_imports(package, name, old, new):
    folder, digest = package
    before = digest("figures.papers.a.fig2")
    edit(folder, "figures/a_fig1", "SIZE = 100", "SIZE = 101")
    assert digest("figures.papers.a.fig2") == before
    edit(folder, name if name.startswith("toolkit") else f"figures/{name}", old, new)
    assert digest("figures.papers.a.fig2") != before


def test_versions_of_what_computes_are_in_it(package, monkeypatch):
    _, digest = package
    before = digest()
    for package_of_others in ("numba", "numpy", "scipy"):
        monkeypatch.setattr(
            source_digest, "version", lambda name, p=package_of_others: "9" if name == p else version(name)
        )
        assert digest() != before
    monkeypatch.setattr(source_digest, "version", lambda name: "9" if name == "matplotlib" else version(name))
    assert digest() == before


version = source_digest.version


def test_the_key_of_real_scripts_is_of_their_engine_and_settings(monkeypatch):
    found = script("r2sgld_fig1_trajectory")
    keys = {found.key(Study(quick=quick, seed=seed, backend=backend))
            for quick in (True, False) for seed in (0, 1) for backend in ("cpu", "cuda")}  # fmt: skip
    assert len(keys) == 8
    monkeypatch.setattr(source_digest, "stamp", lambda package: f"other {package}")
    assert found.key(Study()) not in keys
    parts = {}
    source_digest.follow(found.module.__name__, "measure", parts)
    assert {"toolkit", "targets", f"{found.module.__name__}.SHAPE"} <= parts.keys()
    assert not any("style" in name or name.endswith(".draw") for name in parts)
