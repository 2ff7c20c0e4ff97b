"""How every suite runs: command line, list of tables, plan of how much is measured, rounds, and printed tables."""
