"""The code of docs/identification.md runs as written, in order, and gives what the page says."""

import re
import warnings
from pathlib import Path

import numpy as np

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "identification.md").read_text(encoding="utf-8")


def test_the_code_runs_as_written(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    assert len(blocks) == 8
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dims = []
        for block in blocks:
            exec(compile(block, "docs/identification.md", "exec"), names)
            if "from_draws" in names and "by_laplace" not in names:
                names["by_laplace"] = names["problem"].log_evidence
            dims.append(names["problem"].dim if "problem" in names else 0)
            if "drug" in names and "rates_found" not in names:
                names["rates_found"] = names["problem"].modes.parameters[0]
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.S)
    printed = "".join(capsys.readouterr().out.splitlines(keepends=True)[: shown.count("\n")])
    number = r"(?<=\()-?[0-9.]+"  # the values; errors and other digits may differ in the last place
    np.testing.assert_allclose(*(np.array(re.findall(number, text), float) for text in (printed, shown)), rtol=2e-3)
    assert re.sub(r"[0-9.]+", "", printed) == re.sub(r"[0-9.]+", "", shown)
    assert names["bands"].shape == (3, 51, 2)
    assert len(names["slopes"]) == 2
    np.testing.assert_allclose(names["rates_found"][:3], [1.015, 0.296, 3.03], atol=6e-3)
    assert names["forecast"].states.shape == (1, 73, 2)
    assert dims == [0, 4, 4, 5, 4, 13, 4, 8]
    from_draws, by_laplace = names["from_draws"], names["by_laplace"]
    assert abs(from_draws.log_evidence - by_laplace) < 0.01
    assert from_draws.error < 0.01
    assert names["tree"]["log_likelihood"]["y"].shape == (8, 900, 51)
    assert np.asarray(names["expected"].pareto_k).max() < 0.7
    np.testing.assert_allclose(names["evidences"], [-21.5, 120.3, 118.5, 116.9], atol=0.06)
    assert names["table"].loc["dprey:prey", "inclusion"] > 0.99
    np.testing.assert_allclose(names["pelts"].times, [0.0, 365 / 365.25, 730 / 365.25])
    assert np.isnan(names["again"].loc[names["pelts"].times[2], "hare"])
    table = PAGE.partition("| of the result | what |")[2].partition("```python")[0]
    told = {name for row in table.splitlines() for name in re.findall(r"`(\w+)", row.partition(" | ")[0])}
    assert len(told) == 10
    assert all(hasattr(names["found"], name) for name in told)
