"""Modes of posteriors: found from many places, weighed by Laplace's approximation, and moved inside constraints.

Found: guess_fit, search, scans, inside. Weighed: laplace, bridge, evidence, leave_one_out, table. Checked, which
``identify`` does through checks: the steps of the solver (steps), residuals (fit_residuals, local_noise), parameters
that data do not determine (propriety), and symmetries (images).
"""
