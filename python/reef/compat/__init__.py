"""Interfaces of other packages, computed by Reef."""
