"""What is known of a target exactly: moments, mode weights, cell masses, energies, and exact draws, by kind of law."""
