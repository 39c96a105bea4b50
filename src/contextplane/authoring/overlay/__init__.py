"""Overlays: applied to a pack, held to their laws, traced to their origins."""
