"""Run the command line with `python -m council`."""

from council.doors.cli import main

main()
