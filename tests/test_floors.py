"""Nothing imports upward: gridlayout imports neither sharding nor ops, sharding imports no ops.

In `ops/` each room imports from those before it only, and no modules of it import each other in a
circle.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# folder: (its package, the packages it must not import). The front doors of gridlayout stand
# above all three floors, as they re-export and run them.
FLOORS = {
    "gridlayout": ("gridlayout", ("gridlayout.sharding", "gridlayout.ops")),
    "sharding": ("gridlayout.sharding", ("gridlayout.ops",)),
    "ops": ("gridlayout.ops", ()),
}
FRONT_DOORS = {"gridlayout/__init__.py", "gridlayout/__main__.py"}


def imported_names(source, package):
    """Every module or attribute that `source`, a module of `package`, imports, by its full name."""
    for node in ast.walk(ast.parse(source)):
        yield from imported_by(node, package)


def imported_by(node, package):
    """What one node of a module of `package` imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parts = package.split(".")
        base = parts[: len(parts) - node.level + 1] if node.level else []
        module = ".".join([*base, *([node.module] if node.module else [])])
        yield from (f"{module}.{alias.name}" for alias in node.names)


def upward_imports(source, package, forbidden):
    """The imports in `source` that lead to a forbidden package or into it."""
    return [
        name
        for name in imported_names(source, package)
        if any(f"{name}.".startswith(f"{above}.") for above in forbidden)
    ]


def python_files():
    for folder in FLOORS:
        # No symlink is followed: rglob would list the upper floors as part of gridlayout.
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT)
            if not any((ROOT / parent).is_symlink() for parent in name.parents):
                yield name.as_posix()


@pytest.mark.parametrize("name", [name for name in python_files() if name not in FRONT_DOORS])
def test_imports_nothing_from_a_floor_above(name):
    folder, *inner = name.split("/")[:-1]
    package, forbidden = FLOORS[folder]
    source = (ROOT / name).read_text(encoding="utf-8")
    found = upward_imports(source, ".".join([package, *inner]), forbidden)
    assert not found, f"{name} imports {', '.join(found)}, of a floor above its own"


def test_code_imports_the_installed_names():
    # `import ops` at the root of the checkout works, and makes a second copy of every module.
    bare = {
        f"{name}: {imported}"
        for name in python_files()
        for imported in imported_names(
            (ROOT / name).read_text(encoding="utf-8"), FLOORS[name.split("/")[0]][0]
        )
        if imported.split(".")[0] in {"sharding", "ops"}
    }
    assert not bare


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
        ("from gridlayout.sharding import put", "gridlayout.sharding", []),
        ("from . import errors", "gridlayout", []),
        ("import gridlayout.opsin, jax.sharding", "gridlayout", []),
    ],
)
def test_upward_imports_are_found(source, package, found):
    assert upward_imports(source, package, FLOORS[package.rpartition(".")[2]][1]) == found


# -- rooms -----------------------------------------------------------------------------------------

# The folders of ops/, each of which may import from those before it.
ROOMS = ("moves", "array", "decisions", "products", "rules", "interpret", "user")


def run_time_imports(path):
    """What a module imports when it is run, at its top or in a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    waiting = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from imported_by(node, "gridlayout")
        else:
            waiting += list(ast.iter_child_nodes(node))


def test_every_folder_of_ops_is_a_room():
    folders = {path.name for path in (ROOT / "ops").iterdir() if (path / "__init__.py").exists()}
    assert folders == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_from_those_before_it(room):
    later = ROOMS[ROOMS.index(room) + 1 :]
    for path in (ROOT / "ops" / room).glob("*.py"):
        for name in run_time_imports(path):
            climbs = [r for r in later if f"{name}.".startswith(f"gridlayout.ops.{r}.")]
            assert not climbs, f"{path.relative_to(ROOT)} imports {name}"


def test_no_modules_of_ops_import_each_other_in_a_circle():
    modules = {
        ".".join(("gridlayout", *path.relative_to(ROOT).with_suffix("").parts)): path
        for path in (ROOT / "ops").rglob("*.py")
        if path.name != "__init__.py"
    }
    imports = {}
    for name, path in modules.items():
        found = list(run_time_imports(path))
        imports[name] = {
            m for m in modules if any(f"{each}.".startswith(f"{m}.") for each in found)
        }
    done = set()
    while ready := {name for name in modules.keys() - done if imports[name] <= done}:
        done |= ready
    assert done == modules.keys(), sorted(modules.keys() - done)
