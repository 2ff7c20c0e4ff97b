"""Evidence: laws, truths and checks beside theory and beside wrong ones; golden hashes; the layout in counts."""
