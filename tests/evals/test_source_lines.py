"""Which files are source code, and which of their lines are code."""

from __future__ import annotations

import pytest

from council.evals.history.source_lines import find_code_lines, is_source


@pytest.mark.behaviour("60-history-source-lines")
@pytest.mark.parametrize(
    "path",
    [
        "src/app.py",
        "lib/core/Axios.js",
        "tree.go",
        "src/a b.rs",
        "include/x.hpp",
        "app/Model.php",
        "db/migrations/state.py",
    ],
)
def test_a_source_file_is_recognised(path: str) -> None:
    assert is_source(path)


@pytest.mark.behaviour("60-history-source-lines")
@pytest.mark.parametrize(
    "path",
    [
        "README.md", "docs/conf.py", "tests/test_app.py", "src/app_test.go", "spec/models/user_spec.rb", "src/App.test.tsx",
        "go.sum", "package-lock.json", "Cargo.lock", "CHANGELOG.md", "locale/de/messages.po", "vendor/x/y.go", "dist/app.js",
        "src/app.min.js", "api/v1_pb2.py", "index.d.ts", ".github/workflows/ci.yml", "logo.png", "examples/hello.py", "data.json", "app/migrations/0001_initial.py",
    ],
)  # fmt: skip
def test_other_files_are_no_source_code(path: str) -> None:
    assert not is_source(path)


PYTHON = '''"""Docstring
of two lines."""
import os
from a import (
    b,
)

# comment
def run(x):
    """Do it."""
    text = """a
string"""
    return x  # why
'''
GO = """package main

import (
\t"fmt"
)

/* block
comment */
// line
func main() {
\tfmt.Println("x") // why
}
"""
RUST = "use std::io;\n\n/// doc\nfn a() -> u8 {\n    1 + 1\n}\n"


@pytest.mark.behaviour("60-history-source-lines")
@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        ("a.py", PYTHON, {9, 11, 12, 13}),
        ("a.py", PYTHON.replace("\n", "\r\n"), {9, 11, 12, 13}),
        ("a.py", 'a = """\nx\n"""\nb = 1  # """\nc = "#" + \'"""\' + """\n""" + d\ne = 1\n', {1, 2, 4, 5, 6, 7}),
        ("a.go", GO, {10, 11}),
        ("a.rs", RUST, {4, 5}),
        ("a.js", "const a = require('a');\n'use strict';\nif (\n  x\n) {\n}\n", {4}),
        ("a.rb", "# frozen\n=begin\nx = 1\n=end\nx = 2\nend\n", {5}),
        ("a.sql", "-- comment\nSELECT 1;\n", {2}),
        ("a.c", "#include <x.h>\n#define A 1\n", {2}),
        ("a.py", "", set()),
    ],
)
def test_comments_docstrings_imports_and_blank_lines_are_no_code(path: str, text: str, lines: set[int]) -> None:
    assert find_code_lines(path, text) == lines
