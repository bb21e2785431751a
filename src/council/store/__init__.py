"""Where the ledger is kept."""
