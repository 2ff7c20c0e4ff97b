"""A number or a sentence of a paper beside our number, and the verdict."""

import math
from typing import NamedTuple

from toolkit.errors import shown

PRINTED, IN_WORDS, DERIVED, AUTHORS_CODE, THEORY = ORIGINS = (
    "printed by the paper",
    "claimed in words",
    "derived by us",
    "from the authors' code",
    "from theory",
)
VERDICTS = (
    "better", "equal within error", "worse", "as claimed", "not shown", "contradicted", "held", "missed",
    "another quantity", "not printed",
)  # fmt: skip
# Standard errors beyond which a difference counts. Chance alone exceeds it on one given side once in 44 comparisons.
SHOWN_FROM = 2.0
# Standard errors of an effect that is seen beyond SHOWN_FROM in four of five studies of this size: 2 + Φ⁻¹(0.8).
DETECTABLE = SHOWN_FROM + 0.842


class Claim(NamedTuple):
    """A number or a sentence of a paper beside our number.

    Parameters
    ----------
    what : str
        The quantity, with its unit.
    printed : float
        The paper's number, nan where the paper states none. Of a claim in words: the bound that the words set, for
        example 1 for the ratio of two samplers.
    ours, error : float
        Our number and its standard error.
    aim : {"higher", "lower"} or float
        Which direction is better, or the true value. Of a claim in words: whether the words say "above" or "below".
    printed_error : float
        Standard error of ``printed``; 0 where the paper states none.
    source : str
        Where in the paper, the code or the theory the number stands, as the report prints it.
    why : str
        One sentence about a difference.
    in_words : bool
        Whether the paper states no number, only that this one is above or below ``printed``.
    origin : str
        Where ``printed`` comes from, one of ``ORIGINS``; a claim in words is "claimed in words" in any case.
    is_same : bool
        Whether both numbers are of the same quantity, defined alike, on the same target with the stated settings. Only
        such numbers can be better or worse than each other.
    """

    what: str
    printed: float
    ours: float
    error: float
    aim: str | float
    printed_error: float = 0.0
    source: str = "printed"
    why: str = ""
    in_words: bool = False
    origin: str = PRINTED
    is_same: bool = True

    @property
    def comes_from(self) -> str:
        """Where the number beside ours comes from, one of ``ORIGINS``."""
        return IN_WORDS if self.in_words else self.origin

    @property
    def is_law(self) -> bool:
        """Whether ``printed`` is a theoretical value, from which a departure to either side is an error."""
        return self.origin == THEORY or (self.origin != PRINTED and self.aim == self.printed)

    @property
    def ratio(self) -> float:
        """Ours over the paper's; nan where there is none."""
        return self.ours / self.printed if self.printed and not self.in_words else math.nan

    @property
    def standard_error(self) -> float:
        """Standard error of the difference of both numbers."""
        return math.hypot(self.error, self.printed_error)

    @property
    def z(self) -> float:
        """Ours less the paper's in standard errors of the difference; positive where ours is on the side of ``aim``."""
        difference = self.ours - self.printed
        difference = -difference if self.aim == "lower" else difference
        if difference == 0.0 or math.isnan(difference):
            return difference
        return difference / self.standard_error if self.standard_error else math.copysign(math.inf, difference)

    @property
    def shown_from(self) -> float:
        """Value from which a claim in words would be shown in four of five studies of this size; nan without spread."""
        if not self.in_words or not self.standard_error:
            return math.nan
        effect = DETECTABLE * self.standard_error
        return self.printed + (effect if self.aim == "higher" else -effect)

    @property
    def verdict(self) -> str:
        """One of VERDICTS. A claim in words that is not seen is "not shown"; a law is "held" or "missed"."""
        z = self.z
        if math.isnan(z):
            return "not printed"
        if self.in_words:
            return "as claimed" if z > SHOWN_FROM else "contradicted" if z < -SHOWN_FROM else "not shown"
        if not self.is_same:
            return "another quantity"
        if self.is_law:
            return "held" if abs(z) <= SHOWN_FROM else "missed"
        if abs(z) <= SHOWN_FROM:
            return "equal within error"
        if isinstance(self.aim, str):
            return "better" if z > 0.0 else "worse"
        return "better" if abs(self.ours - self.aim) < abs(self.printed - self.aim) else "worse"


def said_above(what: str, bound: float, ours: tuple[float, float], source: str, why: str = "") -> Claim:
    """The claim in words that a number, given with its standard error, is above ``bound``."""
    return Claim(what, bound, *ours, "higher", source=source, why=why, in_words=True)


def said_below(what: str, bound: float, ours: tuple[float, float], source: str, why: str = "") -> Claim:
    """The claim in words that a number, given with its standard error, is below ``bound``."""
    return Claim(what, bound, *ours, "lower", source=source, why=why, in_words=True)


def check_claim(claim: Claim) -> Claim:
    """``claim`` unchanged. Raises ValueError where it has no text, aim, known origin or finite error."""
    known = claim.aim in ("higher", "lower") if isinstance(claim.aim, str) else math.isfinite(claim.aim)
    if not claim.what or not known:
        raise ValueError(f"aim must be 'higher', 'lower' or the true value, got {shown(claim.aim)} for {claim.what!r}")
    if claim.in_words and not isinstance(claim.aim, str):
        raise ValueError(f"aim must be 'higher' or 'lower' where a claim is in words, got {shown(claim.aim)}")
    if claim.origin not in ORIGINS:
        raise ValueError(f"origin must be one of {', '.join(ORIGINS)}, got {shown(claim.origin)} for {claim.what!r}")
    if not (math.isfinite(claim.ours) and math.isfinite(claim.error) and claim.error >= 0.0):
        raise ValueError(
            f"{claim.what}: ours and its error must be finite, got {shown(claim.ours)} ± {shown(claim.error)}"
        )
    return claim
