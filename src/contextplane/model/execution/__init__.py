"""The nouns of execution packs: the log of a run, its manifest, and the sidecar of an output."""
