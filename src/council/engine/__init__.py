"""The engine: the verbs a protocol uses, the ledger, prompts and minutes."""
