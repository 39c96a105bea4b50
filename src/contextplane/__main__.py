"""`python -m contextplane` is `ctx`."""

from contextplane.cli.main import console

if __name__ == "__main__":
    console()
