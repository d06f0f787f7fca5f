"""Texts of any length that attack what a reader keeps, looks up, nests, repeats or counts.

Each function returns a text of about `length` characters, in which as much as possible refers to
everything before it. A reader whose time or memory grows faster than the text is found by reading
two of them.
"""

import json
from itertools import count


def lines(length, line, first="", last=""):
    """A text of that length, of lines `line(0)`, `line(1)`, and so on."""
    made, left = [first], length - len(first) - len(last)
    for k in count():
        made.append(line(k))
        left -= len(made[-1])
        if left <= 0:
            return "".join([*made, last])


def repeated(length, word):
    """The word as often as the text has room for it."""
    return word * max(length // len(word), 1)


# -- MLIR ------------------------------------------------------------------------------------------

TENSOR = "tensor<4x4xf32>"
MAP = "(d0, d1) -> (d0, d1), <1x1>"
LAYOUT = f"#ttnn.ttnn_layout<{MAP}, memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>"
HEAD = "#dram = #ttnn.buffer_type<dram>\n"


def _function(body, kind=TENSOR, returned="%a"):
    return f"func.func @main(%a: {kind}) -> {kind} {{\n{body}  return {returned} : {kind}\n}}\n"


def _long_layout(length):
    zeros = " + 0" * (length // 4)
    return (
        f"{HEAD}#l = #ttnn.ttnn_layout<(d0, d1) -> (d0{zeros}, d1), <1x1>, "
        "memref<1x1x!ttcore.tile<32x32, f32>, #dram>, <interleaved>>\n"
    )


def long_alias(length):
    """One alias of half the text, on every line of the other half, in many types."""

    def line(k):
        kind = f"tensor<{k % 32 + 1}x{k // 32 % 32 + 1}xf32, #l>"
        return f'  %{k} = "ttnn.full"() : () -> {kind}\n'

    return _long_layout(length // 2) + _function(lines(length // 2, line))


def long_alias_of_equal_types(length):
    """One alias of half the text, on every line of the other half, in one type."""
    kind = "tensor<4x4xf32, #l>"
    use = lines(length // 2, lambda k: f'  %{k} = "ttnn.neg"(%a) : ({kind}) -> {kind}\n')
    return _long_layout(length // 2) + _function(use, kind)


def doubled_aliases(length):
    """Each alias stands for the one before it twice."""
    first = "#l0 = #ttnn.x<a>\n"
    named = lines(length // 2, lambda k: f"#l{k + 1} = #ttnn.x<#l{k}, #l{k}>\n", first)
    last = named.count("\n") - 1
    use = lines(length // 2, lambda k: f'  %{k} = "ttnn.neg"(%a) : tensor<{k}xf32, #l{k % last}>\n')
    return named + _function(use)


def chained_aliases(length):
    """Each alias stands for the one before it and a little more."""
    named = lines(length // 2, lambda k: f"#l{k + 1} = #ttnn.x<#l{k}>\n", "#l0 = #ttnn.x<a>\n")
    last = named.count("\n") - 1
    use = lines(length // 2, lambda k: f'  %{k} = "ttnn.neg"(%a) : tensor<{k}xf32, #l{k % last}>\n')
    return named + _function(use)


def redefined_aliases(length):
    """One name for ever new attributes, each used once."""
    return HEAD + lines(
        length,
        lambda k: f'#l = #ttnn.x<{k}>\n%{k} = "ttnn.neg"(%a) : tensor<4x4xf32, #l>\n',
    )


def result_packs(length):
    """An op of as many packs of results as the line can name."""
    return _function(
        "  " + lines(length, lambda k: f"%r{k}:1024, ") + '%z = "ttir.neg"(%a) : () -> ()\n'
    )


def named_results(length):
    """An op of as many results as the line can name, used one by one."""
    names = lines(length // 3, lambda k: f"%r{k}, ") + "%z"
    kinds = ", ".join([TENSOR] * (names.count(",") + 1))
    return _function(f'  {names} = "ttir.sort"(%a) : ({TENSOR}) -> ({kinds})\n')


def _called(length, times, op="call"):
    def function(k):
        body = "".join(f"  %{n} = {op} @f{k}(%a) : ({TENSOR}) -> {TENSOR}\n" for n in range(times))
        return (
            f"func.func @f{k + 1}(%a: {TENSOR}) -> {TENSOR} {{\n{body}  return %0 : {TENSOR}\n}}\n"
        )

    neg = f'  %0 = "ttir.neg"(%a) : ({TENSOR}) -> {TENSOR}\n  return %0 : {TENSOR}\n'
    return lines(length, function, f"func.func @f0(%a: {TENSOR}) -> {TENSOR} {{\n{neg}}}\n")


def chained_calls(length):
    """Each function calls the one before it."""
    return _called(length, 1)


def doubled_calls(length):
    """Each function calls the one before it twice."""
    return _called(length, 2)


def chained_loops(length):
    """Each function repeats the one before it."""

    def function(k):
        return (
            f"func.func @f{k + 1}(%a: {TENSOR}) -> {TENSOR} {{\n"
            f'  %0 = "ttcore.while_loop"(%a) <{{body_program = @f{k}, initial = '
            "#ttcore.loop_bound<0>, limit = #ttcore.loop_bound<4>, step = #ttcore.loop_bound<1>, "
            "output_indices = array<i64: 0>, state_count = 1 : i64}> : "
            f"({TENSOR}) -> {TENSOR}\n  return %0 : {TENSOR}\n}}\n"
        )

    return lines(
        length,
        function,
        f"func.func @f0(%a: {TENSOR}) -> {TENSOR} {{\n  return %a : {TENSOR}\n}}\n",
    )


def many_callees(length):
    """Functions, each of which one function calls."""
    made = lines(
        length // 2,
        lambda k: f"func.func @f{k}(%a: {TENSOR}) -> {TENSOR} {{\n  return %a : {TENSOR}\n}}\n",
    )
    n = made.count("func.func")
    calls = "".join(f"  %{k} = call @f{k}(%a) : ({TENSOR}) -> {TENSOR}\n" for k in range(n))
    return made + _function(calls)


def nested_modules(length):
    """Modules in modules, each with an attribute."""
    opened = lines(length, lambda k: f"module attributes {{a.b{k} = {k}}} {{\n")
    return opened + _function("") + "}" * opened.count("module")


def nested_brackets(length):
    """Types in types."""
    half = length // 14
    return _function(f'  %0 = "a.b"(%a) : {"tensor<" * half}4xf32{">" * half}\n')


def open_types(length):
    """Types that are not closed, line by line."""
    return repeated(length, "%0 = x.y : tensor<4xf32, #l<\n")


def long_attributes(length):
    """Attributes of half the text in one op."""
    pairs = lines(length, lambda k: f"a{k} = {k} : si32, ")
    return _function(
        f'  %0 = "ttnn.neg"(%a) <{{{pairs}z}}> : ({TENSOR}) -> {TENSOR}\n', returned="%0"
    )


def lists_in_attributes(length):
    """An attribute of nested lists."""
    half = length // 2
    return _function(
        f'  %0 = "ttnn.neg"(%a) <{{x = {"[" * half}{"]" * half}}}> : ({TENSOR}) -> {TENSOR}\n'
    )


def chain_of_ops(length):
    """Ops, each of the result before."""
    return _chained(length, lambda k: f'"ttir.neg"(%{k}) : ({TENSOR})')


def tree_of_ops(length):
    """Ops, each of the result before, twice."""
    return _chained(length, lambda k: f'"ttir.add"(%{k}, %{k}) : ({TENSOR}, {TENSOR})')


def _chained(length, op):
    """A function of ops; op: the text of the one that reads a result, given its number."""
    chain = lines(
        length,
        lambda k: f"  %{k + 1} = {op(k)} -> {TENSOR}\n",
        f'  %0 = "ttir.neg"(%a) : ({TENSOR}) -> {TENSOR}\n',
    )
    return _function(chain, returned=f"%{chain.count(chr(10)) - 1}")


def constants(length):
    """Constants and counts of enormous tensors."""
    big = "tensor<1048576x1048576xf32>"
    shape = "shape = array<i32: 1048576, 1048576>"
    count = "start = 0 : si64, end = 1000000000 : si64, step = 1 : si64"
    ops = (
        f'"ttir.full"() <{{fill_value = 1.0 : f32, {shape}}}> : () -> {big}\n',
        f'"ttir.arange"() <{{arange_dimension = 0 : i64, {count}}}> : () -> '
        "tensor<1000000000xi32>\n",
    )
    return _function(lines(length, lambda k: f"  %{k} = {ops[k % len(ops)]}"))


def caches(length):
    """One enormous cache that is changed again and again, first by its pages."""
    cache, at = "tensor<1000x8x1000000x8xf32>", "tensor<1000000x1000000xi32>"
    new = "tensor<1x8x1000000x8xf32>"
    pages = f'  "ttir.paged_fill_cache"(%a, %b, %c) : ({cache}, {new}, {at}) -> ()\n'
    update = f'  "ttir.fill_cache"(%a, %b) <{{batch_offset = 9 : i32}}> : ({cache}, {new}) -> ()\n'
    return (
        f"func.func @main(%a: {cache}, %b: {new}, %c: {at}) -> {cache} {{\n"
        f"{pages}{repeated(length, update)}  return %a : {cache}\n}}\n"
    )


def selected(length):
    """Elements of enormous tensors, selected one by one."""
    big = "tensor<1000000000xf32>"
    words = "dim = 0 : si32, begin = 0 : si32, length = 1 : si32, stride = 1 : si32"
    line = f'"ttir.index_select"(%a) <{{{words}}}> : ({big}) -> {big}\n'
    return _function(lines(length, lambda k: f"  %{k} = {line}"), big)


def axes_of_chips(length):
    """A mesh of chips of many axes."""
    mesh = f"1x{repeated(length, '1x')}2"
    attributes = f'ttcore.meshes = #ttcore.meshes<[<"mesh" = {mesh}>]>'
    return f"module attributes {{{attributes}}} {{\n{_function('')}}}\n"


BUFFER = (
    "memref<2x4x1x1x!ttcore.tile<32x32, f32>, #ttcore.shard<4096x4096, 1>, "
    "#ttcore.memory_space<l1>>"
)


def views(length):
    """Views of views, in a memory space."""
    types = f"({BUFFER}) -> {BUFFER}"
    return lines(length, lambda k: f'%{k + 1} = "d2m.view_layout"(%{k}) : {types}\n')


def empties(length):
    """Buffers that are allocated and never filled, and ops that read them all."""
    made = lines(length // 2, lambda k: f"%{k} = memref.alloc() : {BUFFER}\n")
    names = ", ".join(f"%{k}" for k in range(made.count("\n")))
    return made + repeated(length // 2, f'%r = "d2m.x"({names}) : ({BUFFER}) -> {BUFFER}\n')


def passes(length):
    """A pass a line, each with a function."""
    return lines(
        length,
        lambda k: (
            f"// -----// IR Dump After P{k} (p) ('func.func' operation: @f{k}) //----- //\n"
            f"func.func @f{k}() {{\n}}\n"
        ),
    )


def relayouts(length):
    """Copies between different layouts of large tensors, each of its own shape."""

    def kind(rows, grid):
        return (
            f"tensor<{rows}x1024xf32, #ttcore.metal_layout<(d0, d1) -> (d0, d1), undef, <{grid}>, "
            f"memref<{-(-rows // int(grid.split('x')[0]))}x{1024 // int(grid.split('x')[1])}xf32, "
            "#ttcore.memory_space<l1>>>>"
        )

    def line(k):
        before, after = kind(1 << 10 | k, "8x1"), kind(1 << 10 | k, "1x8")
        return f'%{k} = "d2m.to_layout"(%a{k}) : ({before}) -> {after}\n'

    return lines(length, line)


# -- meshes and shardings --------------------------------------------------------------------------


def meshes_and_pairs(length):
    """Many meshes of many axes, and pairs of devices that are looked up in each."""
    axes = ", ".join(f'"{chr(97 + k % 26)}{k}"=1' for k in range(40))
    defined = lines(min(length // 2, 20_000), lambda k: f"sdy.mesh @m{k} = <[{axes}]>\n")
    pairs = lines(length - len(defined), lambda k: f"{{{k},{k + 1}}},")
    return (
        f"{defined}HloModule m\nENTRY %e (p: f32[4]) -> f32[4] {{\n"
        f"  %c = f32[4]{{0}} collective-permute(%p), source_target_pairs={{{pairs}{{0,1}}}}\n}}\n"
    )


def meshes_and_groups(length):
    """Many meshes, and different groups of devices."""
    axes = ", ".join(f'"{chr(97 + k % 26)}{k}"=2' for k in range(16))
    defined = lines(length // 2, lambda k: f"sdy.mesh @m{k} = <[{axes}]>\n")
    ops = lines(
        length // 2,
        lambda k: (
            f"  %c{k} = f32[4]{{0}} all-reduce(%p), "
            f"replica_groups=[{65536 - k},65536]<=[65536,{65536 - k}]T(1,0)\n"
        ),
    )
    return f"{defined}HloModule m\nENTRY %e (p: f32[4]) -> f32[4] {{\n{ops}}}\n"


def iota_groups(length):
    """Groups of devices that are counted, not listed."""
    return lines(
        length,
        lambda k: (
            f"  %p{k} = f32[4]{{0}} all-reduce(%q), replica_groups="
            f"[{k + 1},30000]<=[30000,{k + 1}]T(1,0)\n"
        ),
        "HloModule m, num_partitions=1000000000\nENTRY %e (p: f32[4]) -> f32[4] {\n",
        "}\n",
    )


def groups_of_all(length):
    """Groups of all devices, of which there are many."""
    return lines(
        length,
        lambda k: f"  %p{k} = f32[{k}]{{0}} all-reduce(%q), replica_groups={{}}\n",
        "HloModule m, num_partitions=1000000000\nENTRY %e (p: f32[4]) -> f32[4] {\n",
        "}\n",
    )


def shardings(length):
    """Values of ever new shardings over many axes."""
    return lines(
        length,
        lambda k: (
            f'%{k + 1} = sdy.sharding_constraint %{k} <@m, [{{"x"}}, {{}}]> : tensor<{k}x4xf32>\n'
        ),
        'sdy.mesh @m = <["x"=1000000, "y"=1000000]>\n',
    )


# -- HLO -------------------------------------------------------------------------------------------


def _entry(body, header="HloModule m, is_scheduled=true\n"):
    return f"{header}ENTRY %e (p: f32[4]) -> f32[4] {{\n  %p = f32[4]{{0}} parameter(0)\n{body}}}\n"


def tuples_of_tuples(length):
    """A tuple of many values, and tuples that hold it many times."""
    made = lines(length // 4, lambda k: f"  %a{k} = f32[4]{{0}} negate(%p)\n")
    names = ", ".join(f"%a{k}" for k in range(made.count("\n")))
    made += f"  %t = (f32[4]{{0}}) tuple({names})\n"
    made += f"  %u = (f32[4]{{0}}) tuple({'%t, ' * (length // 8)}%t)\n"
    return _entry(made + repeated(length // 4, "  %v = (f32[4]{0}) tuple(%u, %u)\n"))


def doubled_tuples(length):
    """Each tuple holds the one before it twice."""
    first = "  %t0 = (f32[4]{0}) tuple(%p, %p)\n"
    return _entry(
        lines(length, lambda k: f"  %t{k + 1} = (f32[4]{{0}}) tuple(%t{k}, %t{k})\n", first)
    )


def elements_of_a_tuple(length):
    """A loop with much state, and each part of it."""
    made = lines(length // 2, lambda k: f"  %a{k} = f32[4]{{0}} negate(%p)\n")
    n = made.count("\n")
    names, kinds = ", ".join(f"%a{k}" for k in range(n)), ", ".join(["f32[4]{0}"] * n)
    made += f"  %t = ({kinds}) tuple({names})\n  %w = ({kinds}) while(%t), body=%b\n"
    return _entry(
        made
        + lines(
            length // 2, lambda k: f"  %g{k} = f32[4]{{0}} get-tuple-element(%w), index={k % n}\n"
        )
    )


def many_operands(length):
    """Results of many operands of one type, whose buffers they may take, and others'."""
    made = lines(length // 4, lambda k: f"  %a{k} = f32[4]{{0}} negate(%p)\n")
    names = ", ".join(f"%a{k}" for k in range(made.count("\n")))
    made += lines(length // 4, lambda k: f"  %b{k} = s32[4]{{0}} iota()\n")
    others = ", ".join(f"%b{k}" for k in range(made.count("%b")))
    again = "%s, " * (length // 16)
    return _entry(
        f"{made}  %s = f32[4]{{0}} add({names})\n  %r = f32[4]{{0}} add({again}%s)\n"
        f"  ROOT %z = f32[4]{{0}} add(%r, {names}, {others})\n"
    )


def loop_of_many_operands(length):
    """The same in the body of a loop."""
    made = lines(length // 3, lambda k: f"  %a{k} = f32[4]{{0}} negate(%q)\n")
    names = ", ".join(f"%a{k}" for k in range(made.count("\n")))
    body = (
        f"%b (q: f32[4]) -> f32[4] {{\n  %q = f32[4]{{0}} parameter(0)\n{made}"
        f"  %s = f32[4]{{0}} add({names})\n  %r = f32[4]{{0}} add({'%s, ' * (length // 12)}%s)\n"
        f"  ROOT %z = f32[4]{{0}} add({'%r, ' * (length // 12)}%r)\n}}\n"
    )
    return body + _entry("  %w = f32[4]{0} while(%p), body=%b, condition=%b\n", "")


def computations(length):
    """Each computation calls the one before it twice."""
    parameter = "  %p = f32[4]{0} parameter(0)\n"

    def line(k):
        calls = "".join(f"  %c{n} = f32[4]{{0}} call(%p), to_apply=%f{k}\n" for n in range(2))
        return f"%f{k + 1} (p: f32[4]) -> f32[4] {{\n{parameter}{calls}}}\n"

    first = f"%f0 (p: f32[4]) -> f32[4] {{\n{parameter}  ROOT %n = f32[4]{{0}} negate(%p)\n}}\n"
    made = lines(length, line, f"HloModule m\n{first}")
    return made + _entry(f"  %c = f32[4]{{0}} call(%p), to_apply=%f{made.count('->') - 1}\n", "")


def callers_of_many(length):
    """A computation with many results, called with as many operands, many times."""
    names = lines(length // 6, lambda k: f"%a{k}, ") + "%a"
    kinds = ", ".join(["f32[4]{0}"] * (length // 66))
    body = f"  %p = ({kinds}) parameter(0)\n  ROOT %t = ({kinds}) tuple({names})\n"
    calls = lines(length // 3, lambda k: f"  %c{k} = f32[4]{{0}} call(%t), to_apply=%f\n")
    return (
        f"%f (p: f32[4]) -> f32[4] {{\n{body}}}\n"
        f"{_entry(f'  %t = ({kinds}) tuple({names}){chr(10)}{calls}', '')}"
    )


def donated(length):
    """Many aliases of one result."""
    header = f"HloModule m, input_output_alias={{ {repeated(length // 2, '{0}: (0, {}), ')} }}\n"
    made = lines(length // 4, lambda k: f"  %a{k} = f32[4]{{0}} negate(%p)\n")
    names = ", ".join(f"%a{k}" for k in range(made.count("\n")))
    made += f"  %t = (f32[4]{{0}}) tuple({names})\n  ROOT %u = (f32[4]{{0}}) tuple(%t)\n"
    return _entry(made, header)


def nested_tuple_types(length):
    """A type of tuples in tuples."""
    half = length // 2
    return _entry(f"  %a = {'(' * half}f32[4]{{0}}{')' * half} tuple(%p)\n")


def bits_of_parameters(length):
    """Values of a body that are computed from a parameter of a high number."""
    body = lines(length, lambda k: f"  %a{k} = f32[4]{{0}} add(%q)\n")
    return f"%b (q: f32[4]) -> f32[4] {{\n  %q = f32[4]{{0}} parameter(9999)\n{body}}}\n"


def turning_values(length):
    """Values that end where others begin, with a few large results."""
    made = lines(length, lambda k: f"  %a{k + 1} = f32[{k % 7 + 1}]{{0}} add(%a{k}, %p)\n")
    n = made.count("\n")
    names = ", ".join(f"%a{k}" for k in range(max(n - 70, 1), n))
    return _entry(f"{made}  ROOT %r = (f32[4]{{0}}) tuple({names})\n")


def enormous_arrays(length):
    """Collectives of arrays, groups and meshes whose numbers have ever more digits."""
    dims = repeated(length // 8, "999999999,") + "9"
    by = dims.replace(",", "x")
    return "\n".join(
        [
            f'sdy.mesh @m = <["x"={"9" * 9}, "y"={"9" * 9}]>',
            f"  %a = f32[{dims}]{{0}} all-reduce(%p), replica_groups=[1,{dims}]<=[{dims}]",
            f"  %b = f32[{dims}] all-gather(%p), replica_groups=[{dims}]<=[8], dimensions={{0}}",
            f'%0 = "stablehlo.all_reduce"(%a) : (tensor<{by}xf32>) -> tensor<{by}xf32>',
            f'%1 = sdy.all_gather [{{"x"}}] %0 out_sharding=<@m, [{{}}]> : tensor<{by}xf32>',
            f'%2 = sdy.sharding_constraint %0 <@m, [{{"x"}}]> : tensor<{by}xf32>',
            f"  %c = f32[{dims}]{{0}} copy(%p), sharding={{devices=[{dims}]<=[8]}}",
            f"  %d = f32[8]{{0}} copy(%p), sharding={{devices=[{dims[:180]}]<=[8]}}",
        ]
    )


# -- buffers and states ----------------------------------------------------------------------------


def allocations(length):
    """Allocations of enormous sizes in ever new memory spaces, each with values."""
    return lines(
        length,
        lambda k: (
            f"allocation {k}: size {10**17 + k}, color {k % 700}, maybe-live-out:\n"
            f" value: <{k} a.{k}{{{k}}} @0> (size={10**17},offset={k}): f32[{k % 9},8]{{1,0}}\n"
        ),
        "BufferAssignment:\n",
    )


def live_ranges(length):
    """Values that are all live at once, in places of their own and in one place."""
    placed = lines(
        length // 2,
        lambda k: f" value: <{k} a.{k}{{}} @0> (size={k + 1},offset={k % 2 * k}): f32[8]{{0}}\n",
        "BufferAssignment:\nallocation 0: size 999999, preallocated-temp:\n",
    )
    n = placed.count("value")
    head = "HloLiveRange (max 9):\n  BufferLiveRange:\n"
    return placed + lines(length // 2, lambda k: f"    a.{k % n}{{}}:{k}-{10**9 - k - 1}\n", head)


def states_of_memory(length):
    """States of ever new memories."""
    return lines(
        length,
        lambda k: (
            f"Device L1 {k % 999} memory state: MemoryView{{numBanks: 9999, "
            f"totalBytesAllocatedPerBank: {k}.5 MB}}\n"
        ),
    )


def names_of_axes(length):
    """Axes whose names are brackets, quotes and escapes, closed or not."""
    names = ("<[{", ")]}>", "\\\\22\\\\5C", "', '", "=1, ", "%a -> ")
    return lines(
        length,
        lambda k: (
            f'sdy.mesh @m{k} = <["{names[k % 6]}{k}"=2, "{names[k % 5]}"=3]>\n'
            f'%{k} = sdy.reshard %a <@m{k}, [{{"{names[k % 6]}{k}"}}, {{"{names[k % 4]}]>'
            f" : tensor<8x8xf32>\n"
            f"%c{k} = f32[8]{{0}} all-reduce(%p), replica_groups=mesh['{names[k % 6]}'=2] "
            f"{{'{names[k % 5]}'}}\n"
        ),
    )


def parts_of_a_tuple(length):
    """HLO in the short form: ops that each read all parts of a tuple."""
    count = int(length**0.5) // 2
    kinds = ", ".join(["f32[4]{0}"] * count)
    first = f"HloModule m\n\nENTRY e {{\n  t = ({kinds}) parameter(0)\n"
    reads = ", ".join(f"t#{k}" for k in range(count))
    return lines(length, lambda k: f"  a.{k} = f32[4]{{0}} custom-call({reads})\n", first, "}\n")


def parts_of_parts(length):
    """HLO in the short form: names with as many numbers as one has."""
    indices = "#0" * 8
    return lines(length, lambda k: f"  a.{k + 1} = (f32[4]{{0}}, f32[]) copy(a.{k}{indices})\n")


def values_of_buffers(length):
    """XLA's list of values, each a part of a large tuple."""
    kinds = ", ".join(["f32[4]{0}"] * 20)

    def line(k):
        return (
            f"<{k} a.{k // 20}{{{k % 20}}} @0>\n from instruction: %a.{k // 20} = ({kinds}) f(%b)\n"
        )

    return lines(length, line, "Total bytes used: 12 (12B)\n")


def reports_of_memories(length):
    """Reports of many memories, each with an allocation."""

    def line(k):
        return f"Ran out of memory in memory space m{k}. Used 1.5K of 1.0K m.\n  1. Size: {k}B\n"

    return lines(length, line)


def colours_and_words(length):
    """Lines of escape sequences, and of words that may come before a computation."""
    half = lines(length // 2, lambda k: "\x1b[1m" * 30 + f"x {k}\x1b[0m\n")
    return half + lines(length // 2, lambda k: "a (b: " * 80 + f"-> {k} {{\n")


def sharding_aliases(length):
    """Many aliases of shardings, and functions whose arguments have them."""
    mesh = 'sdy.mesh @m = <["x"=2, "y"=4]>\n'

    def alias(k):
        return f'#s{k} = #sdy.sharding<@m, [{{"x"}}]>\n'

    def use(k):
        return f"func.func @f{k}(%a: tensor<8xf32> {{sdy.sharding = #s{k}}}) {{\n"

    return lines(length // 2, alias, mesh) + lines(length // 2, use)


def partitioned(length):
    """Tuples of many arrays and their shardings, before and after the partitioner."""
    count = length // 130
    kinds = ", ".join(["f32[8,8]{1,0}"] * count)
    each = ", ".join(["{devices=[999999999,999999999]<=[8]}", "{replicated}"] * (count // 2))
    body = f"  %p = ({kinds}) parameter(0), sharding={{{each}}}\n"
    return "HloModule m, num_partitions=8\n" + "".join(
        f"%f{name} (p: f32[]) -> f32[] {{\n{body}}}\n" for name in ("", "_spmd")
    )


# -- layouts, maps and records ---------------------------------------------------------------------


def sum_of_dims(length):
    """A map of many terms."""
    return f"(d0, d1) -> ({repeated(length, 'd0 * 3 + ')}d1)"


def nested_divisions(length):
    """A map of divisions in divisions."""
    deep = min(length // 24, 60)
    return f"(d0, d1) -> ({'(' * deep}d0{' floordiv 2 + d1) mod 7' * deep})"


def many_dims(length):
    """A map of many dims and results."""
    dims = lines(length // 2, lambda k: f"d{k}, ").rstrip(", ")
    return f"({dims}) -> ({dims})"


def document(linear, shape="64x64"):
    """The text of a layout with this map."""
    return (
        f"tensor<{shape}xf32, #ttcore.metal_layout<{linear}, undef, <1x1>, "
        "memref<64x64xf32, #ttcore.memory_space<l1>>>>"
    )


def layout_of_many_terms(length):
    """A layout whose map has many terms."""
    return document(sum_of_dims(length))


def layout_of_divisions(length):
    """A layout whose map has divisions in divisions."""
    return document(nested_divisions(length))


def core_ranges(length):
    """A layout on many ranges of cores."""
    each = lines(length, lambda k: f"#ttnn.core_range<({k % 8},{k}), ({k % 8}, {k})>, ").rstrip(
        ", "
    )
    return (
        "tensor<64x64xf32, #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<2x2x!ttcore.tile<"
        "32x32, f32>, #ttnn.buffer_type<l1>>, <block_sharded>, core_ranges = <["
        f"{each}]>>>"
    )


def call_of_many(length):
    """A constructor call with a long tuple."""
    return f"GridLayout(({repeated(length, '2, ')}), 'float32')"


def nested_call(length):
    """A constructor call with tuples in tuples."""
    half = length // 2
    return f"GridLayout({'(' * half}{')' * half}, 'float32')"


def tiles(length):
    """An XLA type with many tiles."""
    return f"f32[64,64]{{1,0:T({repeated(length, '2,')}2)}}"


def nested_json(length):
    """JSON of lists in lists."""
    half = length // 2
    return "[" * half + "]" * half


def keys(length):
    """JSON of many keys."""
    return json.dumps({f"k{k}": k for k in range(length // 12)})


EXPLAINED = (
    *(long_alias, long_alias_of_equal_types, doubled_aliases, chained_aliases, redefined_aliases),
    *(result_packs, named_results, chained_calls, doubled_calls, many_callees, nested_modules),
    *(nested_brackets, open_types, long_attributes, lists_in_attributes, chain_of_ops, views),
    *(empties, passes, relayouts, meshes_and_pairs, meshes_and_groups, iota_groups, groups_of_all),
    *(shardings, tuples_of_tuples, doubled_tuples, elements_of_a_tuple, many_operands),
    *(loop_of_many_operands, computations, callers_of_many, donated, nested_tuple_types),
    *(
        bits_of_parameters,
        turning_values,
        enormous_arrays,
        layout_of_many_terms,
        layout_of_divisions,
        core_ranges,
    ),
    *(call_of_many, nested_call, tiles),
    *(allocations, live_ranges, states_of_memory, names_of_axes, partitioned, parts_of_a_tuple),
    *(parts_of_parts, values_of_buffers, reports_of_memories, colours_and_words, sharding_aliases),
)
LOADED = (
    *(long_alias, long_alias_of_equal_types, doubled_aliases, chained_aliases, redefined_aliases),
    *(result_packs, named_results, chained_calls, doubled_calls, chained_loops, many_callees),
    *(nested_modules, nested_brackets, long_attributes, lists_in_attributes, chain_of_ops),
    *(tree_of_ops, constants, axes_of_chips, caches, selected),
)
MAPS = (sum_of_dims, nested_divisions, many_dims)
LAYOUTS = (layout_of_many_terms, layout_of_divisions, core_ranges, call_of_many, nested_call, tiles)
RECORDS = (nested_json, keys)
