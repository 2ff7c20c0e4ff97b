"""Modes of posteriors: found from many places, weighed by Laplace's approximation, and moved inside constraints."""
