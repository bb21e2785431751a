"""The vendors' own SDKs as oracles: what we send is what they send, what we hear is what they hear."""
