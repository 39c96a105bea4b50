"""The eight validation gates, one file each: lists of small laws that a pack has to keep."""
