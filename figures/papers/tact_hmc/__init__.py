"""Figures and tables of thermostat-assisted continuously-tempered HMC (2018)."""
