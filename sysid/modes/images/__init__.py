"""Images of modes under changes of sign, swaps and shifts by a period: said where exact, tried as starts where not."""
