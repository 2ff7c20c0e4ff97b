"""Solvers of ordinary differential equations for many lanes at once: fixed and adaptive steps, and their gradients.

``integrate`` solves, and is what users import; ``solution`` is its result. Likelihoods use ``runge_kutta`` (one step),
``adjoint`` (derivatives of right-hand sides and steps), ``lane_access`` and ``right_hand_side`` (function pointers).
"""
