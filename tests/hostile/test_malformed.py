"""Every malformed input of the table is refused, by an error of the right kind that has something to say."""

import pytest

from tests.hostile.tables import malformed
from toolkit import DivergenceError

INPUTS = dict([*malformed.DOORS, *malformed.TARGETS, *malformed.POSTERIORS, *malformed.REGIONS])


@pytest.mark.parametrize("what", INPUTS)
def test_it_is_refused(what):
    with pytest.raises((TypeError, ValueError, FileNotFoundError, DivergenceError)) as refused:
        INPUTS[what]()
    assert len(str(refused.value).split()) >= 5
