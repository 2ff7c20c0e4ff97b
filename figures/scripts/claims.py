"""A number of a paper beside ours, and the verdict."""

import math
from typing import NamedTuple

from toolkit.errors import shown

VERDICTS = ("better", "equal within error", "worse", "as claimed", "not as claimed", "not printed")


class Claim(NamedTuple):
    """One number of a paper beside ours.

    what: the number, with its unit. printed: the paper's, or nan where it prints none. ours: ours. error: standard
    error of ours. aim: "higher" or "lower" where more or less of it is better, or the true value, which both should
    be near. printed_error: standard error of the paper's, 0 where it states none. source: where the paper's number
    is from ("table 4", "read off the curve", "authors' code", "derived"). why: where ours is worse, or means another
    thing: one sentence. in_words: the paper prints no number, but claims in words that this one is above ``printed``,
    or below it, as ``aim`` says; a ratio of two samplers above 1, say.
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

    @property
    def ratio(self) -> float:
        """Ours over the paper's; nan where there is none."""
        return self.ours / self.printed if self.printed and not self.in_words else math.nan

    @property
    def verdict(self) -> str:
        """One of VERDICTS: equal where the two differ by at most two standard errors of the difference."""
        difference = self.ours - self.printed
        if math.isnan(difference):
            return "not printed"
        if abs(difference) <= 2.0 * math.hypot(self.error, self.printed_error):
            return "equal within error"
        if isinstance(self.aim, str):
            is_met = (difference > 0.0) == (self.aim == "higher")
            if self.in_words:
                return "as claimed" if is_met else "not as claimed"
            return "better" if is_met else "worse"
        return "better" if abs(self.ours - self.aim) < abs(self.printed - self.aim) else "worse"


def check_claim(claim: Claim) -> Claim:
    """``claim`` unchanged. Raises ValueError where it has no text, aim or finite error."""
    known = claim.aim in ("higher", "lower") if isinstance(claim.aim, str) else math.isfinite(claim.aim)
    if not claim.what or not known:
        raise ValueError(f"aim must be 'higher', 'lower' or the true value, got {shown(claim.aim)} for {claim.what!r}")
    if claim.in_words and not isinstance(claim.aim, str):
        raise ValueError(f"aim must be 'higher' or 'lower' where a claim is in words, got {shown(claim.aim)}")
    if not (math.isfinite(claim.ours) and math.isfinite(claim.error) and claim.error >= 0.0):
        raise ValueError(
            f"{claim.what}: ours and its error must be finite, got {shown(claim.ours)} ± {shown(claim.error)}"
        )
    return claim
