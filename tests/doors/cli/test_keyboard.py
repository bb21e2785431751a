"""The keyboard while the live view is drawn: typed keys are hidden, and Ctrl-C does not discard what was drawn."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import termios

import pytest

DRAWN = b"a row of the table " * 400  # more than a terminal takes at once, less than blocks the program
# The program ignores Ctrl-C, draws, says on another pipe that it has drawn, and waits.
PROGRAM = f"""
import fcntl, os, signal, sys, termios
from council.doors.cli.views import TerminalKeyboard
signal.signal(signal.SIGINT, signal.SIG_IGN)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
keyboard = TerminalKeyboard(0)
keyboard.hide_typing()
keyboard.hide_typing()  # as after a prompt inside another one
os.write(0, {DRAWN!r})
os.write(1, b"drawn\\n")
sys.stdin.readline()
keyboard.show_typing()
os.write(1, b"shown\\n")
"""


def read_bytes(handle: int, count: int) -> bytes:
    """Return what a terminal shows, up to a number of bytes, or less if nothing more comes within ten seconds."""
    found = b""
    while len(found) < count and select.select([handle], [], [], 10)[0]:
        found += os.read(handle, count - len(found))
    return found


@pytest.mark.behaviour("50-live-ctrl-c-keeps-screen")
@pytest.mark.parametrize("local_mode", [0, termios.NOFLSH])
def test_ctrl_c_does_not_discard_what_the_view_has_drawn_and_the_modes_return(local_mode: int) -> None:
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    before[3] |= local_mode
    termios.tcsetattr(slave, termios.TCSANOW, before)
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=slave, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == b"drawn\n"
        os.write(master, b"\x03")  # before the terminal has read what was drawn
        assert read_bytes(master, len(DRAWN)) == DRAWN
        os.write(master, b"\n")
        assert program.stdout.readline() == b"shown\n"
        assert program.wait(timeout=60) == 0
        assert termios.tcgetattr(slave) == before
    finally:
        program.kill()
        program.communicate()
        os.close(slave)
        os.close(master)
