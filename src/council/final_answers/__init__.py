"""Final answers of replies: find them, read their values, compare two, and mark one against a key."""
