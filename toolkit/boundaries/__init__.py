"""What happens to a move that ends outside the domain: reflected, rejected, penalised or ignored; and the walls."""

from .rules import Boundary, ignore, penalise, penalise_as_printed, reflect, reject

__all__ = ["Boundary", "ignore", "penalise", "penalise_as_printed", "reflect", "reject"]
