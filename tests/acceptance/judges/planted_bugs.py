"""Twelve planted bugs: files, lines and the finding for each."""

from __future__ import annotations

from pathlib import Path

ORDERS = """import hashlib
import os
import random
import subprocess


def total(orders):
    whole = 0
    for n in range(1, len(orders)):
        whole += orders[n].price
    return whole / len(orders)


def find(db, name):
    return db.execute(f"SELECT * FROM orders WHERE name = '{name}'")


def export(name):
    subprocess.run(f"tar cf {name}.tar data", shell=True)


def stored(password):
    return hashlib.md5(password.encode()).hexdigest()


def ticket():
    return random.randint(0, 999999)


def invoice(name):
    return open(os.path.join("invoices", name)).read()
"""
SESSIONS = """import pickle

ACTIVE = {}


def start(user, extras=[]):
    extras.append(user)
    ACTIVE[user] = extras


def load(raw):
    return pickle.loads(raw)


def end(user):
    try:
        del ACTIVE[user]
    except:
        pass


def same(given, kept):
    return given == kept


def refund(account, amount):
    if account.balance > amount:
        pass
    account.balance -= amount


def drop_all(users):
    for user in users:
        users.remove(user)
"""
FILES = {"src/shop/orders.py": ORDERS, "src/shop/sessions.py": SESSIONS}

# name → (file, the text of its line, severity, category, description)
BUGS: dict[str, tuple[str, str, str, str, str]] = {
    "sql": ("src/shop/orders.py", "return db.execute(", "critical", "security", "The name is pasted into the SQL statement."),
    "shell": ("src/shop/orders.py", "subprocess.run(", "critical", "security", "The archive name reaches a shell unquoted."),
    "pickle": ("src/shop/sessions.py", "return pickle.loads(", "critical", "security", "Untrusted bytes are unpickled, which runs code."),
    "md5": ("src/shop/orders.py", "return hashlib.md5(", "significant", "security", "Passwords are hashed with MD5 and no salt."),
    "random": ("src/shop/orders.py", "return random.randint(", "significant", "security", "Tickets can be guessed from a weak generator."),
    "path": ("src/shop/orders.py", "return open(", "significant", "security", "An invoice name may climb out of its directory."),
    "refund": ("src/shop/sessions.py", "account.balance -=", "significant", "correctness", "A refund goes through although the balance is too low."),
    "default": ("src/shop/sessions.py", "def start(", "significant", "correctness", "Extras are shared between all users by a mutable default."),
    "zero": ("src/shop/orders.py", "return whole /", "significant", "correctness", "An empty list divides by zero."),
    "first": ("src/shop/orders.py", "for n in range(1", "significant", "correctness", "Counting starts at one, so the first order is left out."),
    "timing": ("src/shop/sessions.py", "return given == kept", "minor", "security", "Tokens are compared in a time that tells about them."),
    "mutation": ("src/shop/sessions.py", "users.remove(", "minor", "correctness", "Removing while iterating skips every other user."),
}  # fmt: skip


def line_of(root: Path, bug: str) -> int:
    """Return the current line of the bug."""
    path, text = BUGS[bug][:2]
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    return next(n for n, line in enumerate(lines, 1) if text in line)


def place_of(root: Path, bug: str) -> str:
    return f"{BUGS[bug][0]}:{line_of(root, bug)}"
