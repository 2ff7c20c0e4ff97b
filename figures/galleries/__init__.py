"""Scripts that show what the toolkit has, outside the papers: all targets, all domains, all plots."""
