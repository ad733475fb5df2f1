"""What a run amounted to: records in, fairness report out."""
