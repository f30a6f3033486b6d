"""Training, evaluation and records of runs."""
