"""Prices of resources under proportional fairness: what they are, how they are found, how they are followed."""
