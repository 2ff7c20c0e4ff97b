"""Exact knowledge of targets, by kind of law: moments, mode weights, cell masses, laws of the energy, exact draws.

``gaussian``, ``products`` and ``ridges`` have closed forms or integrals over a line; ``window`` integrates any density
in one or two dimensions by ``panels``; ``cells`` integrates over parts of polygons; ``energy_levels`` and
``energy_law`` are laws of the energy; ``running_integral`` integrates over a line up to any point; ``rejection`` makes
exact draws. Other rooms import from these files.
"""
