"""The files of authors: read, started from a template, linted, compared, explained."""
