"""The comparison of two packs, part by part, with the version class of each change."""
