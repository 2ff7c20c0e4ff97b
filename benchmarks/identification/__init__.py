"""Identification of dynamical systems: gradients per second, fits beside PySINDy's, and the weak form's errors."""
