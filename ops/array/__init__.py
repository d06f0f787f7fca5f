"""`GridArray`: how data becomes one, relayouts, and functions of its shards."""
