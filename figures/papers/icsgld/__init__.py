"""Figures of interacting contour SGLD (2022)."""
