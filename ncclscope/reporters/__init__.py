"""Writes a report as text. Reporters see the report and nothing else."""
