"""The choice of divisions for all values of a program together, on a given machine.

A `Division` states which units of the mesh (its axes, or prime factors of them) divide which dims
of a value. There is one variable for each operand and each node of the graph; its choices are the
ways to divide it, which follow from the factors of primitives. `Strategies` prices the choices: a
value is moved once to each division in which it is read, and what is live at one time has to fit in
memory. Prices of moves are first estimated from the two divisions; those of a solution are exact,
and the choice is made again. Equal equations of large programs, as in the layers of a stack, share
one variable.

`gl.on_grid` has its operands in one place each. It solves small problems exactly. Otherwise it
descends from mixtures of kinds of dims, without a time limit. `gl.plan` leaves operands open and
searches with a bound. Both give a `Chosen`, which requests placements of rules (`Op.requested`).
With a policy or an algorithm of the user's, and on a machine where bytes decide (no latencies,
equal links), `gl.on_grid` lets each equation choose by itself.
"""
