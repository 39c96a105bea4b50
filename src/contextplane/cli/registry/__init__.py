"""What the verbs of the registry share: who acts and why, what is named, and how it is told."""
