"""One folder per paper: a script for each figure and table, and the modules that these share."""
