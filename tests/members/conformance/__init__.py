"""Conformance tests with the vendors' SDKs as oracles, for requests and for streams."""
