"""`LIMITS`: where searches stop, and what decides between ways that take about as long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Where a search stops, and what decides between ways that take about as long.

    Seconds are a machine's, and right to about a quarter; searches have to end.
    """

    # Whole programs. How much longer than the fastest one may take that sends nothing; one that
    # sends half as often, half of that.
    margin: float = 0.44
    # A program of one product is chosen as a whole from so many collectives on, and where the mesh
    # is used in no more units than these.
    sends: int = 3
    units: int = 3
    # Programs of so many products are also planned with the cheapest algorithm for each of them;
    # what of the time that has to take to be done so, as its kernels copy more.
    products: int = 4
    less: float = 0.9
    # Classes of dims that are divided in turn; nodes that are priced in all; ways of each node.
    classes: int = 6
    nodes: int = 20_000
    ways: int = 6

    # Plans. For programs of at most so many products a mesh is taken in three units, if it has no
    # more axes, else in two.
    parted: int = 6
    parted_cores: int = 16  # the same of a mesh of cores
    # Programs of more equations choose once for all that are alike, with all that is so many
    # equations away; so many times of the most memory in use are told to the solver.
    alike: int = 80
    radius: int = 2
    rows: int = 48
    # By how much of the bound the plan of such a program may be above it for the search to end.
    gap: float = 0.05
    # And of a plan of cores, for another one that holds less to be tried.
    above: float = 0.01
    # Of the ways to divide a node, those that compute for the least time: of such a program, and of
    # one of fewer equations.
    choices: int = 128
    all_choices: int = 1024
    # By how much less a plan has to take, by measured figures, for arrays to be laid out otherwise
    # than they are.
    stays: float = 0.1
    # Of plans that take as long, the one that sends less often and whose operands hold less: what
    # each collective adds, in seconds, and what of the time to pass over an operand.
    once: float = 1e-12
    held: float = 1e-6
    # Of a core's L1, what its kernels' circular buffers take.
    buffers: float = 0.1
    # Values in a core's L1 begin at multiples of so many bytes.
    align: int = 32

    # Loops whose body sends at least so often are planned a second time with arrays of so many
    # bytes replicated; those of unknown length are taken to run so many times.
    often: int = 16
    small_bytes: int = 1 << 15
    trips: int = 16

    # Products. Plans in a row, on grids of neither operands nor result, that are no better than the
    # best; how many times the fewest multiplications batches may leave a device.
    plans: int = 8
    work: float = 1.25

    # Of what devices compute before a collective, how much later the last finishes at most.
    apart: float = 0.3

    # Factorizations of one matrix and sorts of one vector go in no more steps: each is compiled.
    panels: int = 64

    # Relayouts. How many times what must move may be received, for the sake of fewer collectives,
    # where devices have unequal parts.
    slack: float = 1.25
    # Boxes are not sent piece by piece between more devices, in more pieces or rounds: finding them
    # and compiling them takes long. Parts of arrays on one grid need few rounds, on more devices.
    devices: int = 2048
    pieces: int = 1 << 14
    rounds: int = 128
    few_rounds: int = 2
    devices_in_few: int = 1 << 16
    # Pieces of a device are put by one gather up to so many bytes in all, and where they fill one
    # of so many blocks.
    gathered_bytes: int = 1 << 20
    blocks: int = 4
    # How much larger the largest box of a round may be than its smallest, along each dim; how many
    # ways to make rounds, those of the fewest, are tried to the end.
    ratios: tuple[float, ...] = (8.0, 4.0, 2.0, 1.5, 1.25, 1.1, 1.0)
    tried: int = 2
    # How many times as large a buffer may become when it is extended to whole rows.
    growth: int = 8

    # Arrays of at least so many bytes, in memory that is the host's, the host reads and lays out
    # anew part by part: a program holds several copies.
    host_bytes: int = 1 << 24

    # Results. Storage of so many bytes in all is never too much for one; a core that would have
    # fewer of its elements, in bytes, is left out where the operand's grid is too large for it.
    page_bytes: int = 4096
    core_bytes: int = 256

    # Arrays that are joined where they are, each of which a device holds as large as the result.
    joined: int = 8
    # What of a move has to be saved for a result to be laid out on other cores.
    saved: float = 0.5


LIMITS = Limits()
