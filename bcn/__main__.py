"""`python -m bcn` is the `bcn` command; torchrun starts it this way."""

from bcn.cli import main

main()
