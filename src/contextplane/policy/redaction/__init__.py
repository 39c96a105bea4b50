"""The redactor: one set of rules for prompts, calls and records."""
