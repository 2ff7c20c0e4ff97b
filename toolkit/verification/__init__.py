"""Whether a run can be trusted: ``verify`` compares bits, draws and laws; ``check_step_size`` measures the bias."""
