"""Counts and measurements."""
