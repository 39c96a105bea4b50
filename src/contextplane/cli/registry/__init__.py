"""What the verbs of the registry share: who signs and why, what is named, and how it is printed."""
