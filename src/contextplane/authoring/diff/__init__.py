"""The comparison of two packs, part by part, with the effect of each change."""
