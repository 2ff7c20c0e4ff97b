"""A run, from checked arguments to its record: jobs, state, the loop, recording, and the drivers of CPU and GPU."""
