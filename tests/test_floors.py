"""Nothing imports upward: gridlayout imports neither sharding nor ops, sharding imports no ops.

On each floor a room imports from those before it only, and no modules of the three floors import
each other in a circle. All of this counts every import: at the top of a module, inside a function,
and under `if TYPE_CHECKING`. Modules and functions have a greatest length.
"""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

import gridlayout as gl
from gridlayout.ops.primitives.table import RECORDS

ROOT = Path(__file__).parents[1]

# folder: (its package, the packages it must not import). The front doors of gridlayout stand
# above all three floors, as they re-export and run them.
FLOORS = {
    "gridlayout": ("gridlayout", ("gridlayout.sharding", "gridlayout.ops")),
    "sharding": ("gridlayout.sharding", ("gridlayout.ops",)),
    "ops": ("gridlayout.ops", ()),
}
FRONT_DOORS = {
    *("gridlayout/__init__.py", "gridlayout/__main__.py"),
    *("gridlayout/caches.py", "gridlayout/cores.py", "gridlayout/results.py", "gridlayout/lazy.py"),
    "gridlayout/objects.py",  # trees of arrays, when they are given, are for the third floor
    "gridlayout/tenstorrent/__init__.py",  # `load`, when it is asked for, runs on the third floor
}


class Facts(NamedTuple):
    """What a module imports, by full names; its functions and their lines; names and constants."""

    imports: list[str]
    lengths: list[tuple[str, int]]
    attributes: set[str]
    constants: set[str]


def facts(source, package):
    """What is asked of `source`, a module of `package`, in one walk."""
    found = Facts([], [], set(), set())
    for node in ast.walk(ast.parse(source)):
        found.imports.extend(imported_by(node, package))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.lengths.append((node.name, lines_of(node)))
        elif isinstance(node, ast.Attribute):
            found.attributes.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.constants.add(node.value)
    return found


@cache
def facts_of(name):
    """The same of a file of the three floors."""
    source = (ROOT / name).read_text(encoding="utf-8")
    return facts(source, module_and_package(name)[1])


def imported_by(node, package):
    """What one node of a module of `package` imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parts = package.split(".")
        base = parts[: len(parts) - node.level + 1] if node.level else []
        module = ".".join([*base, *([node.module] if node.module else [])])
        yield from (f"{module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        yield from (arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant))


def upward(imports, forbidden):
    """The imports that lead to a forbidden package or into it."""
    return [
        name for name in imports if any(f"{name}.".startswith(f"{above}.") for above in forbidden)
    ]


@cache
def python_files():
    # No symlink is followed: rglob would list the upper floors as part of gridlayout.
    paths = [path for folder in FLOORS for path in sorted((ROOT / folder).rglob("*.py"))]
    names = [path.relative_to(ROOT) for path in paths]
    is_linked = cache(lambda parent: (ROOT / parent).is_symlink())
    return [name.as_posix() for name in names if not any(map(is_linked, name.parents))]


def test_nothing_imports_from_a_floor_above():
    found = {
        name: upward(facts_of(name).imports, FLOORS[name.split("/")[0]][1])
        for name in python_files()
        if name not in FRONT_DOORS
    }
    assert found
    assert not {name: imported for name, imported in found.items() if imported}


def test_code_imports_the_installed_names():
    # `import ops` at the root of the checkout works, and makes a second copy of every module.
    bare = {
        f"{name}: {imported}"
        for name in python_files()
        for imported in facts_of(name).imports
        if imported.split(".")[0] in {"sharding", "ops"}
    }
    assert not bare


@pytest.mark.parametrize(
    ("folder", "forbidden"), [("ops", "gridlayout.dump"), ("gridlayout/dump", "gridlayout.ops")]
)
def test_ops_and_dumps_do_not_import_each_other(folder, forbidden):
    # Nor under TYPE_CHECKING: what both need stands in rooms before, costs and tables.
    names = [name for name in python_files() if name.startswith(f"{folder}/")]
    found = {name: upward(facts_of(name).imports, [forbidden]) for name in names}
    assert found
    assert not {name: imported for name, imported in found.items() if imported}


@pytest.mark.parametrize(
    ("source", "package", "found"),
    [
        ("import gridlayout.ops", "gridlayout", ["gridlayout.ops"]),
        ("import numpy, gridlayout.ops.tiling", "gridlayout", ["gridlayout.ops.tiling"]),
        ("from gridlayout import errors, sharding", "gridlayout", ["gridlayout.sharding"]),
        ("from gridlayout.sharding import put", "gridlayout", ["gridlayout.sharding.put"]),
        ("from . import ops", "gridlayout", ["gridlayout.ops"]),
        ("from .ops.tiling import pack", "gridlayout", ["gridlayout.ops.tiling.pack"]),
        ("from ..ops import pack", "gridlayout.sharding", ["gridlayout.ops.pack"]),
        ("def f():\n    import gridlayout.ops", "gridlayout", ["gridlayout.ops"]),
        ("import_module('gridlayout.ops.tiling')", "gridlayout", ["gridlayout.ops.tiling"]),
        ("from gridlayout.sharding import put", "gridlayout.sharding", []),
        ("from . import errors", "gridlayout", []),
        ("import gridlayout.opsin, jax.sharding", "gridlayout", []),
    ],
)
def test_upward_imports_are_found(source, package, found):
    imports = facts(source, package).imports
    assert upward(imports, FLOORS[package.rpartition(".")[2]][1]) == found


# -- rooms -----------------------------------------------------------------------------------------

# The folders and single modules of each floor; each may import from those before it.
ROOMS = {
    "gridlayout": (
        *(
            "errors",
            "files",
            "records",
            "arguments",
            "other_words",
            "public",
            "key",
            "caching",
            "dtypes",
        ),
        *("live_ranges", "affine"),
        *("palette", "svg", "layouts", "tables", "document", "draw"),
        *("mlir", "strided", "megengine", "mli", "xla", "sophon", "tenstorrent"),
        *("safetensors", "core_bytes", "constructor", "text", "core_files", "conversion", "costs"),
        *("dump", "explorer", "gallery", "demo", "commands"),
    ),
    "sharding": (
        *("number_checks", "limits", "collectives", "extremes", "cost", "choice", "meshes"),
        *("machines", "submesh"),
        *("device_grid", "device_argument", "logical_sharding", "stated_axes"),
        *("processes", "exchanges"),
    ),
    "ops": (
        *("moves", "array", "decisions", "trees", "checkpoints", "programs", "products"),
        *(
            "primitives",
            "solver",
            "graph",
            "choose",
            "interpret",
            "planning",
            "user",
            "tenstorrent",
            "libraries",
        ),
    ),
}

# Those of a room so large that it has rooms itself.
INNER = {
    "gridlayout.dump": (
        *("text", "values", "moves", "plan", "tally", "pass_result", "reading", "contents"),
        *("pages", "comparing", "explanation", "compare"),
    )
}


def module_and_package(name):
    """The full name of the module in a file, and that of the package that it is in."""
    folder, *inner = Path(name).with_suffix("").parts
    package = FLOORS[folder][0]
    own = inner[:-1] if inner[-1] == "__init__" else inner
    return ".".join([package, *own]), ".".join([package, *inner[:-1]])


@cache
def modules():
    """Each module of the three floors, by its full name, with what it imports."""
    return {module_and_package(name)[0]: set(facts_of(name).imports) for name in python_files()}


@cache
def modules_of(floor):
    """Each module in the rooms of a floor, by its full name, with what it imports."""
    files = [name for name in python_files() if name.split("/")[0] == floor]
    outside = {*FRONT_DOORS, f"{floor}/__init__.py"}
    names = [module_and_package(name)[0] for name in files if name not in outside]
    return {name: modules()[name] for name in names}


def climbing_imports(name, imported, package, rooms):
    """What the module `name` imports from rooms after its own."""
    room = name.removeprefix(f"{package}.").split(".")[0]
    later = rooms[rooms.index(room) + 1 :]
    return {i for i in imported if any(f"{i}.".startswith(f"{package}.{r}.") for r in later)}


def graph_of(modules):
    """The modules that each module imports. `from p import a` is an import of `p.a`, if it is one.

    Python imports the packages that a module is in as well; these are not counted.
    """
    return {
        name: {
            max((m for m in modules if f"{i}.".startswith(f"{m}.")), key=len, default=None)
            for i in imported
        }
        - {name, None}
        for name, imported in modules.items()
    }


def circles(modules):
    """The sets of modules that import each other in a circle: strongly connected components."""
    graph = graph_of(modules)
    reached = {name: reachable(graph, name) for name in graph}
    found = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in graph
        if name in reached[name]
    }
    return sorted(found)


def reachable(graph, name):
    """All that `name` imports, directly or through others."""
    found, waiting = set(), [name]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


@pytest.mark.parametrize("door", [gl, gl.tenstorrent])
def test_a_front_door_lists_its_names_and_no_others(door):
    public = [name for name in dir(door) if not name.startswith("_")]
    assert sorted(public) == sorted(door.__all__)
    assert all(getattr(door, name) is not None for name in public)


ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_architecture_is_one_page():
    assert len(ARCHITECTURE.split()) <= 1500


@pytest.mark.parametrize("floor", FLOORS)
def test_architecture_names_every_room(floor):
    listed = ARCHITECTURE.partition("\n## Rooms\n")[2].partition("\n## ")[0]
    listed = listed.partition(f"\n`{floor}/`:\n")[2].partition("`:\n")[0]
    found = re.findall(r"`(\w+)(?:/|\.py)`", listed)
    assert sorted(found) == sorted(ROOMS[floor])


def test_the_trips_of_architecture_are_true():
    text = " ".join(ARCHITECTURE.split())
    layout = gl.GridLayout((53, 63), "float32", grid=(3, 2), tile=(32, 32))
    assert f"`{layout.index_map}`" in text
    assert f"`{layout.physical_shape}`" in text
    device = gl.DeviceGrid(jax.sharding.AbstractMesh((2, 4), ("x", "y")))
    placement = device.placement(layout.core_shape)
    assert (placement.slots, [len(axes) for axes in placement.axes]) == ((4, 2), [2, 1])
    program = gl.on_grid(lambda x: jnp.exp(x).sum(axis=1), device).report(layout).program
    names = [program.made[owner].decision.op.name for owner in program.owners]
    assert names == ["exp", "reduce_sum", "reduce_sum", "reduce_sum"]
    assert [step.masks for step in program.steps] == [0, 1, 0, 0]
    assert [each.received_bytes for each in program.collectives] == [128]
    (found,) = gl.explain("f32[1000,3]{1,0:T(8,128)}", plan=True).findings
    assert f"{found.layout.nbytes:,} bytes for {found.data_bytes:,}" in text
    better = found.proposal
    assert f"`{str(better.layout)[11:]}` saves {better.saved_bytes >> 10} KiB" in text


def named_files(text):
    """The files that a text names."""
    return set(re.findall(r"`([\w/]+\.(?:py|js|html))`", text))


def test_the_files_that_architecture_names_exist():
    tracked = [path.as_posix() for path in ROOT.rglob("*.*") if ".venv" not in path.parts]
    named = named_files(ARCHITECTURE)
    assert len(named) > 20
    assert not {name for name in named if not any(path.endswith(f"/{name}") for path in tracked)}


def test_the_files_that_rooms_name_exist():
    # In the room itself, or with the name of their own room before them.
    wrong, count = [], 0
    for room in (name for name in python_files() if name.endswith("/__init__.py")):
        text = ast.get_docstring(ast.parse((ROOT / room).read_text(encoding="utf-8"))) or ""
        for name in named_files(text):
            count += 1
            places = [(ROOT / room).parent, *(ROOT / floor for floor in FLOORS)]
            if not any((place / name).exists() for place in places):
                wrong.append(f"{room} names {name}")
    assert count > 200
    assert not wrong


@pytest.mark.parametrize("floor", FLOORS)
def test_the_table_names_every_room(floor):
    package = FLOORS[floor][0]
    found = {name.removeprefix(f"{package}.").split(".")[0] for name in modules_of(floor)}
    assert found == set(ROOMS[floor])


@pytest.mark.parametrize(("floor", "room"), [(f, r) for f, rooms in ROOMS.items() for r in rooms])
def test_a_room_imports_from_those_before_it(floor, room):
    package = FLOORS[floor][0]
    for name, imported in modules_of(floor).items():
        if f"{name}.".startswith(f"{package}.{room}."):
            climbs = climbing_imports(name, imported, package, ROOMS[floor])
            assert not climbs, f"{name} imports {', '.join(sorted(climbs))}, of a later room"


@pytest.mark.parametrize("package", INNER)
def test_rooms_of_a_room_import_from_those_before_them(package):
    inside = {
        name: imported
        for name, imported in modules_of(package.split(".")[0]).items()
        if name.startswith(f"{package}.")
    }
    rooms = INNER[package]
    assert {name.removeprefix(f"{package}.").split(".")[0] for name in inside} == set(rooms)
    climbs = {name: climbing_imports(name, found, package, rooms) for name, found in inside.items()}
    assert not {name: found for name, found in climbs.items() if found}


def test_no_modules_import_each_other_in_a_circle():
    assert not circles(modules())


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from p.b import x", {"p.b.x"}),
        ("def f():\n    from p.b import x", {"p.b.x"}),
        ("class C:\n    def f(self):\n        import p.c.d", {"p.c.d"}),
        ("if TYPE_CHECKING:\n    from p.b import x\nimport p.a", {"p.b.x"}),
        ("if TYPE_CHECKING:\n    from p.a import x\nelse:\n    from p.b import x", {"p.b.x"}),
    ],
)
def test_climbing_imports_are_found(source, found):
    imported = set(facts(source, "p.a").imports)
    assert climbing_imports("p.a.m", imported, "p", ("a", "b", "c")) == found


def test_circles_are_found():
    modules = {"p.a": {"p.b.x"}, "p.b": {"p.c"}, "p.c": {"p.a"}, "p.d": {"p.e.f"}, "p.e.f": {"p.a"}}
    assert circles(modules) == [("p.a", "p.b", "p.c")]
    assert circles(modules | {"p.a": {"p.d.x"}}) == [("p.a", "p.d", "p.e.f")]
    assert circles(modules | {"p.c": {"p.c.x"}}) == []


# -- lengths ---------------------------------------------------------------------------------------

MAX_MODULE, MAX_FUNCTION = 400, 50


def lines_of(function):
    """The lines of a function: from `def` to its last line, without its docstring.

    Functions inside it count with it, decorators above it do not.
    """
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        lines -= function.body[0].end_lineno - function.body[0].lineno + 1
    return lines


def test_only_the_graph_goes_through_a_jaxpr():
    # `sharding` writes the texts of programs that processes compare; it is below the graph.
    found = {name for name in python_files() if "eqns" in facts_of(name).attributes}
    jaxprs = {"ops/decisions/jaxprs.py", "sharding/processes/jaxprs.py"}
    assert found == {"ops/graph/graph.py", *jaxprs}


def test_what_chooses_and_plans_names_only_loops_and_branches():
    # All else that it knows of a primitive is in the primitive's record.
    kept = {"scan", "while", "cond", "with_layout"}
    own = {"random_bits", "broadcast_in_dim"}  # loops.py draws fewer; chains.py begins with one
    found = {
        value
        for name in python_files()
        if name.startswith(("ops/choose/", "ops/interpret/"))
        for value in facts_of(name).constants
        if value in RECORDS
    }
    assert found == kept | own


def test_no_function_is_too_long():
    found = {
        f"{name}: {function}": lines
        for name in python_files()
        for function, lines in facts_of(name).lengths
        if lines > MAX_FUNCTION
    }
    assert not found


def test_no_module_is_too_long():
    lines = {n: len((ROOT / n).read_text(encoding="utf-8").splitlines()) for n in python_files()}
    assert not {name: count for name, count in lines.items() if count > MAX_MODULE}


def test_lines_of_functions_are_counted():
    source = (
        '@cache\ndef f(\n    x,\n):\n    """It.\n\n    More.\n    """\n    def g():\n        pass\n'
    )
    assert facts(source, "gridlayout").lengths == [("f", 5), ("g", 2)]
