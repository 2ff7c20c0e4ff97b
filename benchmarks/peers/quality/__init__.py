"""Peers of the tables of quality: NUTS, nested sampling and parallel tempering of other packages."""
