"""Steps of the solver: whether they are short enough for a solution, a posterior, and the draws of a run."""
