"""`GridArray`: conversion of data to it, relayouts, and functions of its shards."""
