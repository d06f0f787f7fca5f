"""Programs: decisions in order, how they run, what they hold, and their reports.

A `Program` (`program.py`) is a list of steps on registers. All steps on the parts of devices run
inside of `shard_map`, so that the collectives of the decisions are those that run; a user's rule or
a call to the host is a step on whole storages, between two of these regions (`regions.py`). Loops
and branches are steps around the programs of their bodies. Everything else is a view of a program:

* `running.py`: repeated runs of steps, such as the layers of a stack, are traced once.
  `together.py`: independent collectives are joined where the machine prices that lower
* `report.py`, `row.py`, `alternatives.py`: the table of `on_grid(f).report(...)`
* `memory.py`: buffers as XLA assigns them, and their peak. `dependents.py`: values that are stored
  although they can be fused. `passes.py`: the price of an op, from its bytes and operations
* `graph.py`, `groups.py`, `texts.py`, `picture.py`: the drawing: edges, cards and their texts
* `stages.py`: the order in which a device sends and computes, for timelines and traces
"""
