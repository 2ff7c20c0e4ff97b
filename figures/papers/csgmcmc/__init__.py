"""Figures and tables of cyclical SG-MCMC (2020)."""
