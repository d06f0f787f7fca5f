"""MLIR text as functions of operations; what the compiled programs use is in test_ttnn_programs."""

import pytest

from gridlayout.errors import LayoutError
from gridlayout.mlir.program import read_module
from gridlayout.mlir.source import MAX_DEPTH, Source, fields, parts

TEXT = """
#l1 = #ttnn.buffer_type<l1> // a comment with "quotes" and <
#shape = #ttnn.layout<
  (d0) -> (0, d0), #l1>
module @m attributes {a.b = 1 : i32, "c d" = "}"} {
  some.description @x = <{a = 1}>
  some.block {
    func.func @hidden() { return }
  }
  builtin.module {
    func.func private @f(%x: tensor<4xf32, #shape> {k = "v"} loc("a(b)"))
        -> (tensor<f32> {r = 1}, i1) attributes {kind = "g"} {
      %a:2, %b = "d.op"(%x, %x) <{p = [1, 2], q = #d<a, b>}> {r = "<"}
        : (tensor<4xf32, #shape>, tensor<4xf32, #shape>) -> (f32, tensor<2x!t<a, b>>, i1) loc(#loc1)
      return %a#1, %b : tensor<2x!t<a, b>>, i1
    }
  }
}
"""


def test_a_module_is_read():
    module = read_module(TEXT.replace('"c d"', "c"))
    assert module.attributes == {"a.b": "1 : i32", "c": '"}"'}
    assert module.aliases.whole("#shape") == "#ttnn.layout< (d0) -> (0, d0), #ttnn.buffer_type<l1>>"
    function = module.functions["f"]
    assert list(module.functions) == ["f"]
    assert function.line == 11
    assert [(a.name, a.type, a.attributes) for a in function.arguments] == [
        ("%x", "tensor<4xf32, #shape>", {"k": '"v"'})
    ]
    assert function.result_types == ("tensor<f32>", "i1")
    assert function.attributes == {"kind": '"g"'}
    op, last = function.operations
    assert (op.line, op.name, op.operands) == (13, "d.op", ("%x", "%x"))
    assert op.results == ("%a#0", "%a#1", "%b")
    assert op.result_types == ("f32", "tensor<2x!t<a, b>>", "i1")
    assert op.attributes == {"p": "[1, 2]", "q": "#d<a, b>", "r": '"<"'}
    assert last.operands == ("%a#1", "%b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module {", "line 1: a module is not closed"),
        ("}", "line 1: '}' without an open"),
        ("func.func @f() {\n  return", "line 2: a function is not closed"),
        ("func.func @f() {\n  %0 = own.form %1 }", "line 2: operation own.form can't be parsed"),
        ('func.func @f() {\n "a"() ({ }) : () -> () }', "line 2: operation a has a region"),
        ('func.func @f() {\n "a"(%0) : () -> () }', "line 2: a has 1 operands, but types of 0"),
        ('func.func @f() {\n %0 = "a"(x) : (i1) -> i1 }', "line 2: operand 'x' is not a value"),
        ('func.func @f() {\n %0:99999 = "a"() : () -> i1 }', "line 2: %0 has 99999 results"),
        (
            'func.func @f() {\n "a"() <{k = 1, k = 2}> : () -> () }',
            "line 2: attribute 'k' is given",
        ),
        ("func.func @f() { return }\nfunc.func @f() { return }", "line 2: function @f is defined"),
        ("#a = <" + "<" * (MAX_DEPTH + 1), "line 1: brackets are nested deeper"),
        ('#a = <"', "line 1: a string is not closed"),
        ('#a = "' + '\\"' * 100_000 + " // b\n#c = <{", "line 2: a bracket is not closed"),
        ("func.func @f(%x: a<b)) { return }", r"line 1: '\)' does not match"),
        ("func.func @f(%x: i1) {\n return %x) junk : i1 }", r"line 2: '\)' does not match"),
        ("func.func @f(%x: i1) {\n return %x< : i1 }", r"line 2: '\)' does not match"),
        ("func.func @f() { return }\n{-# resources: {}", "line 2: '{-#' without '#-}'"),
        ("", "no func.func"),
    ],
)
def test_what_is_refused_has_its_line(text, message):
    with pytest.raises(LayoutError, match=message):
        read_module(text)


def test_aliases_end_with_their_brackets():
    """Arrows, strings and comments are no brackets."""
    module = read_module(
        "#wrapped = #ttnn.ttnn_layout<(d0, d1) -> (d0, d1), // the map <\n  <1x1>, memref<4xf32>>\n"
        '#place = loc("a<(":1:2) // of (no use\n'
        "func.func @f() { return }"
    )
    assert module.aliases.texts == {
        "#wrapped": "#ttnn.ttnn_layout<(d0, d1) -> (d0, d1), <1x1>, memref<4xf32>>",
        "#place": 'loc("a<(":1:2)',
    }


def test_data_of_dense_resources_are_skipped():
    module = read_module(
        "module {\n  func.func @f() { return }\n}\n\n"
        '{-#\n  dialect_resources: {\n    builtin: {\n      a: "0x04"\n    }\n  }\n#-}\n'
        "#alias = unit"
    )
    assert (list(module.functions), module.aliases.texts) == (["f"], {"#alias": "unit"})


def test_comments_end_values():
    module = read_module("func.func @f(%x: i1) {\n  return %x // (used once\n    : i1\n}")
    (last,) = module.functions["f"].operations
    assert (last.operands, last.operand_types) == (("%x",), ("i1",))


def test_aliases_that_mean_each_other_are_refused():
    module = read_module("#a = #b\n#b = #a\nfunc.func @f() { return }")
    with pytest.raises(LayoutError, match="refer to each other"):
        module.aliases.whole("tensor<4xf32, #a>")


def test_aliases_that_follow_are_written_out():
    module = read_module("#a = #tt<#b>\n#b = #tt.b\nfunc.func @f() { return }")
    assert module.aliases.whole("tensor<4xf32, #a>") == "tensor<4xf32, #tt<#tt.b>>"


def test_aliases_of_too_many_characters_are_refused():
    module = read_module(f"#c = #tt{'x' * 999}\n#b = {'#c' * 99}\nfunc.func @f() {{ return }}")
    with pytest.raises(LayoutError, match="or stand for over 65536 characters"):
        module.aliases.whole("tensor<4xf32, #b>")


def test_parts_and_fields():
    assert parts('a, "b, c", [d, (e)], f -> g<h, i>') == ["a", '"b, c"', "[d, (e)]", "f -> g<h, i>"]
    assert parts("") == []
    assert fields("a = <b = 1>, c") == {"a": "<b = 1>", "c": "c"}
    with pytest.raises(LayoutError, match="must be written key = value"):
        fields("1 = 2")


def test_lines_are_counted_from_one():
    source = Source("\n\n  word")
    assert source.line == 3
    assert source.line_of(0) == 1
