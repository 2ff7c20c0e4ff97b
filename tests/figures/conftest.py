"""Figures are measured once for all tests of them, and drawn once for those that look at files."""

import functools
import os

import pytest


class SmallProduct:
    """A script and what its small version measures; its files are drawn when they are first asked for."""

    def __init__(self, name, out):
        from figures import Study, script
        from figures.scripts.runner import measure_or_read

        self.script, self.out = script(name), out
        self.measured, _ = measure_or_read(self.script, Study(quick=True, seed=self.script.module.SEED), out)

    @functools.cached_property
    def paths(self):
        """The picture and the table."""
        from figures.scripts.runner import draw_and_save

        return draw_and_save(self.script, self.measured.data, self.out, quick=True)


def shorten_training(patch):
    """Let the bandit's networks of icsgld_fig4 be trained for one step a turn, not 16, which all its time is."""
    from figures import script

    module = script("icsgld_fig4").module
    patch.setattr(module, "AGENTS", {name: agent._replace(trainings=1) for name, agent in module.AGENTS.items()})


@pytest.fixture(scope="session")
def produced(tmp_path_factory):
    """A script's name → its small product, of data that any worker has measured."""
    out = tmp_path_factory.mktemp("figures")
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = tmp_path_factory.getbasetemp().parent / "figures_data"
        shared.mkdir(exist_ok=True)
        (out / "data").symlink_to(shared, target_is_directory=True)
    with pytest.MonkeyPatch.context() as patch:
        shorten_training(patch)
        yield functools.cache(functools.partial(SmallProduct, out=out))
