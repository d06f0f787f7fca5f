"""`LIMITS`: bounds of searches, and thresholds for choices between ways of similar time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of searches, and thresholds for choices between ways of similar time.

    Times are estimates of a machine, with an error of about a quarter.
    """

    # By measured figures, of two ways to do the same, the one that receives more bytes than this
    # factor times those of the other one is chosen if the other one takes this factor longer.
    similar: float = 1.25
    # What padding adds to the times of ways that are equal for shapes that divide, as a share.
    equal: float = 0.001

    # -- whole programs --

    # Measured collectives are taken to need this share of their time more, as times in a program
    # differ from measured ones: a program that sends more must save more.
    margin: float = 0.4
    # A program is planned globally only if it uses the mesh in at most `mesh_units` units.
    mesh_units: int = 3
    # Programs of at most `products` products, and those that are faster without the global plan,
    # are also planned with the cheapest algorithm for each product. That plan is chosen if it takes
    # less than the share `cheaper_share` of the time: its kernels copy more. In programs without
    # products, the global plan must take less than this share.
    products: int = 4
    cheaper_share: float = 0.9
    # The number of ways to divide an equation that are considered, if there are three units.
    few_choices: int = 24
    # How often the moves of the best choices get their exact prices, and are chosen again.
    refinements: int = 4
    # How often a plan's problem is solved, with what solutions take beyond it, where that is quick.
    solved_again: int = 5

    # -- plans --

    # A mesh is divided into more than two units, until none has more devices than this, and there
    # are three, while the program has at most this number of ways to divide its nodes, those that
    # are considered and all.
    devices_of_unit: int = 8
    ways: int = 6_000
    all_ways: int = 40_000
    # In programs of more equations, equal equations share one choice. Equations are equal if their
    # neighbourhoods of this radius, in equations, are equal. The solver is given this number of
    # times at which most memory is in use.
    separate_equations: int = 80
    radius: int = 2
    memory_rows: int = 48
    # The search for a plan of such a program ends when the plan exceeds the bound by at most this
    # share; but it goes on to the second one, while the bound rises quickly.
    gap: float = 0.05
    close: float = 0.01
    # If a program takes longer than its choices were priced by more than this share, other choices
    # are searched with what it takes; and how often.
    accuracy: float = 1e-6
    priced_again: int = 4
    # If a plan of cores exceeds the bound by more than this share, plans that hold less memory are
    # tried too.
    memory_gap: float = 0.01
    # The number of ways to divide a node that are considered, those of least compute time: in such
    # a program, and in one of fewer equations.
    choices: int = 128
    all_choices: int = 1024
    # By measured figures, a plan must save at least this share of the time for arrays to change
    # their layouts.
    relayout_gain: float = 0.1
    # Among plans of equal time, the one with fewer collectives and smaller operands is chosen: the
    # seconds added per collective, and the share added of the time to read an operand.
    collective_penalty: float = 1e-12
    read_penalty: float = 1e-6
    # The share of a core's L1 that its kernels' circular buffers use.
    buffer_share: float = 0.1
    # The alignment of values in a core's L1, in bytes.
    align: int = 32

    # -- loops --

    # A loop whose body has at least this number of collectives is also planned with arrays of at
    # most this number of bytes replicated. A loop of unknown length is assumed to run this number
    # of times.
    loop_collectives: int = 16
    small_bytes: int = 1 << 15
    trips: int = 16

    # -- products --

    # The search over grids other than those of operands and result ends after this number of
    # consecutive plans that are no better. Batch dims may be divided so that a device has at most
    # this factor times the fewest multiplications.
    plans_without_gain: int = 8
    work_ratio: float = 1.25

    # Borders of blocks are near if the dim is at least so many times as long.
    near: int = 8

    # The most that the last device is later than the first before a collective, as a share of
    # their compute time.
    skew: float = 0.3

    # The most steps of a factorization of one matrix or a sort of one vector: each is compiled.
    panels: int = 64

    # -- relayouts --

    # With unequal parts on the devices, at most this factor times the necessary bytes are received
    # if that takes fewer collectives.
    slack: float = 1.25
    # The most devices, pieces and rounds of a relayout in pieces: beyond, it takes long to find and
    # compile them. A relayout of at most `few_rounds` rounds may have up to `devices_in_few`
    # pieces, and between arrays on one grid also that many devices.
    devices: int = 2048
    pieces: int = 1 << 14
    rounds: int = 128
    few_rounds: int = 2
    devices_in_few: int = 1 << 16
    # One gather places all pieces of a device if they have at most this number of bytes in total
    # and at least one block in this number is filled.
    gathered_bytes: int = 1 << 20
    blocks: int = 4
    # The largest ratios of the boxes' extents in one round, along each dim; the number of ways to
    # form rounds, those with the fewest, that are computed completely.
    ratios: tuple[float, ...] = (8.0, 4.0, 2.0, 1.5, 1.25, 1.1, 1.0)
    tried_rounds: int = 2
    # The most that a buffer may grow, as a factor, when it is extended to whole rows.
    growth: int = 8

    # Arrays of at least this number of bytes in host memory are read and relaid out by the host,
    # part by part: a program would hold several copies.
    host_bytes: int = 1 << 24

    # An array whose storage has at most this number of bytes is packed as a whole, and JAX divides
    # it. Parts of a larger one are packed one by one, in memory that CPU devices use as it is.
    small_array_bytes: int = 1 << 20

    # -- results --

    # Storage of at most this number of bytes in total is never too large for a result. If the
    # operand's grid is too large for a result, cores with fewer than this number of bytes of its
    # elements are not used.
    page_bytes: int = 4096
    core_bytes: int = 256

    # The most arrays that are concatenated in place; a device holds each in the result's size.
    concatenated: int = 8
    # A result is placed on other cores if the move then takes less than this share of the bytes.
    move_share: float = 0.5


LIMITS = Limits()
