"""Figures of contour SGLD (2020)."""
