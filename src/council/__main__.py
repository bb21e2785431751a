"""`python -m council` is `council`."""

from council.doors.cli import main

main()
