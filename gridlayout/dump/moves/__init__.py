"""Data movement in a dump: relayouts, collectives, and tensors sharded over devices."""
