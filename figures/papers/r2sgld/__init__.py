"""Figures of reflected replica exchange SGLD (2024)."""
