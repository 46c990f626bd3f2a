"""Rank-1 constraint systems: stamped templates, their evaluation and their identity."""
