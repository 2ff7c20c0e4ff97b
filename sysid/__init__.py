"""Identification of dynamical systems: data, candidate terms, noise and constraints become a target to sample."""
