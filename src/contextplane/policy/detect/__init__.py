"""Detectors of secrets, personal data and invisible text."""
