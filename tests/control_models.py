"""control_models.py - small graphs with If, Loop and Scan, and some without, and what is expected of each.

A case has: name, model, options of gcc-plan, the inputs of several runs of one session, the IF and WHILE nodes of its graph (ifs, whiles),
and the nodes that become seams with --conditions=seam (seams). Results are onnxruntime's."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Case:
    def __init__(self, name, nodes, inputs, outputs, runs, constants=(), options=(), ifs=0, whiles=0, seams=(), sizes=None):
        graph = helper.make_graph(nodes, name, inputs, outputs, [numpy_helper.from_array(v, k) for k, v in dict(constants).items()])
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
        self.model.ir_version = 10
        self.name, self.runs, self.options, self.ifs, self.whiles, self.seams, self.sizes = name, runs, list(options), ifs, whiles, list(seams), sizes


def info(name, dims, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, dims)


def node(op, inputs, outputs, **attrs):
    """Names are separated by blanks; "-" is an absent one."""
    absent = lambda names: ["" if n == "-" else n for n in names.split()]
    return helper.make_node(op, absent(inputs), absent(outputs), **attrs)


def graph(nodes, outputs, inputs=()):
    return helper.make_graph(nodes, "body", list(inputs), list(outputs))


def body(nodes, states, outputs):
    """A Loop's body: iteration "i", condition "c", then STATES; "go", then OUTPUTS."""
    return graph(nodes, [info("go", [], BOOL)] + outputs, [info("i", [], INT64), info("c", [], BOOL)] + states)


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def flag(value):
    return np.array(value, np.bool_)


def count(value):
    return np.array(value, np.int64)


X = floats(2, 4)
W = floats(4, 4, seed=1)
CONSTANTS = {"w": W, "axis": np.array([1], np.int64), "one": np.array(1, np.float32)}


def product(tail=""):
    return graph([node("MatMul", "x w", "t0" + tail), node("Softmax", "t0" + tail, "t1" + tail)], [info("t1" + tail, [2, 4])])


def summed(tail=""):
    return graph([node("ReduceSum", "x axis", "e0" + tail), node("Add", "x e0" + tail, "e1" + tail)], [info("e1" + tail, [2, 4])])


def branch(name="branch", cond="cond", out="y", then=None, other=None):
    return node("If", cond, out, name=name, then_branch=then or product(), else_branch=other or summed())


def branches():
    both = [{"x": X, "cond": flag(True)}, {"x": -X, "cond": flag(False)}, {"x": X, "cond": flag(True)}]
    inputs, outputs = [info("x", [2, 4]), info("cond", [], BOOL)], [info("z", [2, 4])]
    yield Case("if_constant", [branch(cond="known"), node("Mul", "y y", "z")], inputs[:1], outputs, [{"x": X}], {**CONSTANTS, "known": flag(False)})
    yield Case("if_pinned", [node("Shape", "x", "s", start=0, end=1), node("Equal", "s two", "cond"), branch(), node("Mul", "y y", "z")],
               [info("x", ["n", 4])], outputs, [{"x": X}], {**CONSTANTS, "two": np.array([2], np.int64)}, ["--pin=n=2"])
    yield Case("if_select", [branch(then=graph([node("Mul", "x x", "t")], [info("t", [2, 4])]), other=graph([node("Neg", "x", "e")], [info("e", [2, 4])])),
                             node("Mul", "y y", "z")], inputs, outputs, both, CONSTANTS)
    yield Case("if_node", [branch(), node("Mul", "y y", "z")], inputs, outputs, both, CONSTANTS, ifs=2, seams=["branch"])
    yield Case("if_computed", [node("ReduceSum", "x", "total", keepdims=0), node("Greater", "total one", "cond"), branch(), node("Mul", "y y", "z")],
               inputs[:1], outputs, [{"x": X}, {"x": -X}, {"x": X + 1}], CONSTANTS, ifs=2, seams=["branch"])
    yield Case("if_two", [branch(), node("Not", "cond", "other"), branch("second", "other", "y2", product("b"), summed("b")), node("Sub", "y y2", "z")],
               inputs, outputs, both, CONSTANTS, ifs=4, seams=["branch", "second"])
    inner = graph([branch("inner", "deep", "y3", product("c"), summed("c")), node("MatMul", "y3 w", "y4")], [info("y4", [2, 4])])
    yield Case("if_nested", [branch(then=inner), node("Mul", "y y", "z")], inputs + [info("deep", [], BOOL)], outputs,
               [{**r, "deep": flag(d)} for r in both[:2] for d in (True, False)], CONSTANTS, ifs=4, seams=["branch", "branch/inner"])
    outer = [node("Exp", "x", "shared"), branch(then=graph([node("MatMul", "shared w", "t")], [info("t", [2, 4])]),
                                                other=graph([node("Identity", "shared", "e")], [info("e", [2, 4])])), node("Mul", "y shared", "z")]
    yield Case("if_outer_value", outer, inputs, outputs, both, CONSTANTS, ifs=2, seams=["branch"])
    # No node makes what is known when compiling, nor what is empty.
    known = lambda at, name: graph([node("Gather", "shape at%d" % at, name + "n"), node("QuantizeLinear", "e one", name + "q"), node("Less", "e zero", name + "l"),
                                    node("DequantizeLinear", f"{name}q one", name + "d"), node("MatMul", "x w", name + "p")],
                                   [info(name + "n", [], INT64), info(name + "p", ["m", 4]), info(name + "l", [2, 0], BOOL), info(name + "d", [2, 0])])
    yield Case("if_known_values", [node("Shape", "x", "shape"), node("If", "cond", "n z less d", name="branch", then_branch=known(1, "t"), else_branch=known(1, "u"))],
               [info("x", ["m", 4]), inputs[1], info("e", [2, 0])], [info("z", ["m", 4]), info("n", [], INT64), info("less", [2, 0], BOOL), info("d", [2, 0])],
               [{**r, "e": floats(2, 0)} for r in both], {**CONSTANTS, "at1": count(1), "zero": np.array(0, np.float32)}, ["--max=m=4"], ifs=2, seams=["branch"], sizes="m")
    # What both branches and a later node read is a shape: each must make memory of it that it can rely on.
    sized = lambda end, name: graph([node("TopK", "s k", f"{name}v {name}i", largest=end), node("Cast", name + "v", name + "f", to=FLOAT),
                                     node("MatMul", "x w", name + "m"), node("Add", f"{name}m {name}f", name)], [info(name, ["n", 4])])
    yield Case("if_shape", [node("Shape", "x", "s"), branch(then=sized(1, "t"), other=sized(0, "e")), node("TopK", "s k", "p pi"),
                            node("Cast", "p", "f", to=FLOAT), node("Mul", "y f", "z")], [info("x", ["n", 4]), inputs[1]], [info("z", ["n", 4])],
               [{"x": floats(n, 4), "cond": flag(c)} for n, c in ((2, False), (7, True), (3, False))], {**CONSTANTS, "k": np.array([1], np.int64)},
               ["--max=n=8"], ifs=2, seams=["branch"], sizes="n")
    cut = lambda end, name: graph([node("MatMul", "x w", name + "m"), node("Slice", f"{name}m zero {end} one_axis", name)], [info(name, [2, "k"])])
    yield Case("if_extents", [branch(then=cut("three", "t"), other=cut("two", "e")), node("Mul", "y y", "z"), node("Shape", "y", "shape")], inputs,
               [info("z", [2, "k"]), info("shape", [2], INT64)], both,
               {"w": W, "zero": np.array([0], np.int64), "two": np.array([2], np.int64), "three": np.array([3], np.int64), "one_axis": np.array([1], np.int64)},
               ifs=2, seams=["branch"])
    # What the first branch makes must not take the place of the condition, which a host reads once more for the second.
    short = graph([node("Mul", "s x", "t0")], [info("t0", [2, 4])])
    long = graph([node("Mul", "s x", "e0"), node("MatMul", "e0 w", "e1")], [info("e1", [2, 4])])
    yield Case("if_word", [node("Softmax", "x", "s"), branch(then=short, other=long), node("ReduceSum", "y axis", "z")], inputs, [info("z", [2, 1])],
               [{"x": np.ones((2, 4), np.float32), "cond": flag(c)} for c in (True, False, True)], CONSTANTS, ifs=2, seams=["branch"])  # 1/4 begins with a zero byte
    constant = helper.make_graph([], "body", [], [info("t", [2, 4])], [numpy_helper.from_array(X * 3, "t")])
    yield Case("if_constant_branch", [branch(then=constant), node("Mul", "y y", "z")], inputs, outputs, both, CONSTANTS, ifs=2, seams=["branch"])
    two = graph([node("MatMul", "x w", "t0"), node("Identity", "t0", "t1"), node("Softmax", "t0", "t2")], [info("t1", [2, 4]), info("t2", [2, 4])])
    other = graph([node("Softmax", "x", "e1"), node("Identity", "e1", "e2")], [info("e1", [2, 4]), info("e2", [2, 4])])
    yield Case("if_outputs", [node("If", "cond", "y1 y2", name="branch", then_branch=two, else_branch=other), node("Sub", "y1 y2", "z")], inputs, outputs, both,
               CONSTANTS, ifs=2, seams=["branch"])
    # Two tables, of many rows or of few, equally long: one extent counts both.
    tables = {name + k: floats(rows, 4, seed=rows + len(k)) for name, rows in (("long", 100), ("short", 3)) for k in ("", "2")}
    pick = lambda name: helper.make_graph([], "body", [], [info(name + k, [tables[name].shape[0], 4]) for k in ("", "2")],
                                          [numpy_helper.from_array(tables[name + k], name + k) for k in ("", "2")])
    yield Case("if_tables", [node("If", "cond", "y1 y2", name="branch", then_branch=pick("long"), else_branch=pick("short")), node("Mul", "y1 y2", "y"),
                             node("MatMul", "y w", "z")], inputs[1:], [info("z", ["rows", 4])], [{"cond": flag(c)} for c in (False, True, False)],
               CONSTANTS, ifs=2, seams=["branch"])


def step(extra=(), keep="s2", go="Less"):
    """s2 = s w + x; goes on while the sum is below lim."""
    return [node("MatMul", "s w", "s1"), node("Add", "s1 x", keep), node("ReduceSum", keep, "total", keepdims=0), node(go, "total lim", "go"), *extra]


def limits(*values, **more):
    return [{"x": X, "lim": np.array(v, np.float32), **more} for v in values]


def whiles():
    state, inputs = [info("s", [2, 4])], [info("x", [2, 4]), info("lim", [])]
    plain = body(step(), state, [info("s2", [2, 4])])
    rows = body(step([node("Softmax", "s2", "row")]), state, [info("s2", [2, 4]), info("row", [2, 4])])
    limited, endless = {**CONSTANTS, "m": count(6)}, {**CONSTANTS, "m": count(2 ** 62)}
    yield Case("while_condition", [node("Loop", "m start x", "y", name="loop", body=plain)], inputs + [info("start", [], BOOL)], [info("y", [2, 4])],
               limits(3, -5, 1e9, start=flag(True)) + limits(1e9, start=flag(False)), limited, whiles=1, seams=["loop"])
    yield Case("while_unbounded", [node("Loop", "m start x", "y", name="loop", body=body(step(go="Greater"), state, [info("s2", [2, 4])]))],
               inputs, [info("y", [2, 4])], limits(100, -2), {**endless, "start": flag(True)}, whiles=1, seams=["loop"])
    yield Case("while_no_limit", [node("Loop", "- start x", "y", name="loop", body=body(step(go="Greater"), state, [info("s2", [2, 4])]))],
               inputs, [info("y", [2, 4])], limits(100, -2), {**CONSTANTS, "start": flag(True)}, whiles=1, seams=["loop"])
    yield Case("while_rows", [node("Loop", "m start x", "y rows", name="loop", body=rows), node("Exp", "rows", "e")], inputs,
               [info("y", [2, 4]), info("e", ["k", 2, 4])], limits(3, 1e9, -1e9), {**limited, "start": flag(True)}, whiles=1, seams=["loop"])
    counted = body([node("Cast", "i", "f", to=FLOAT), node("MatMul", "s w", "s1"), node("Add", "s1 f", "s2"), node("Identity", "c", "go")], state,
                   [info("s2", [2, 4])])
    yield Case("while_count", [node("Loop", "m - x", "y", name="loop", body=counted)], [info("x", [2, 4]), info("m", [], INT64)], [info("y", [2, 4])],
               [{"x": X, "m": count(n)} for n in (3, 0, 7)], CONSTANTS, whiles=1, seams=["loop"])
    shaped = body([node("TopK", "shape k", "v vi"), node("Cast", "v", "f", to=FLOAT), node("MatMul", "s w", "s1"), node("Add", "s1 f", "s2"),
                   node("ReduceSum", "s2", "total", keepdims=0), node("Less", "total lim", "go")], [info("s", ["n", 4])], [info("s2", ["n", 4])])
    yield Case("while_shape", [node("Shape", "x", "shape"), node("Loop", "m start x", "y", name="loop", body=shaped), node("TopK", "shape k", "p pi"),
                               node("Cast", "p", "f2", to=FLOAT), node("Mul", "y f2", "z")], [info("x", ["n", 4]), info("lim", []), info("start", [], BOOL)],
               [info("z", ["n", 4])], [{"x": floats(n, 4), "lim": np.array(9, np.float32), "start": flag(s)} for n, s in ((2, False), (7, True), (3, False))],
               {**limited, "k": np.array([1], np.int64)}, ["--max=n=8"], whiles=1, seams=["loop"], sizes="n")
    scanned = graph([node("MatMul", "r w", "r1"), node("Add", "r1 row", "r2"), node("Softmax", "r2", "r3")], [info("r3", [4])], [info("r", [4]), info("row", [4])])
    each = body([node("Scan", "s list", "s2", name="scan", body=scanned, num_scan_inputs=1), node("ReduceMax", "s2", "total", keepdims=0),
                 node("Less", "total lim", "go")], [info("s", [4])], [info("s2", [4])])
    yield Case("while_launches", [node("Loop", "m start first", "y", name="loop", body=each), node("Identity", "x", "list")][::-1],
               [info("x", ["n", 4]), info("lim", [])], [info("y", [4])], [{"x": floats(n, 4, seed=n), "lim": np.array(v, np.float32)} for n, v in ((2, 0.5), (1, 9), (8, 9))],
               {**limited, "start": flag(True), "first": floats(4, seed=3)}, ["--max=n=8"], whiles=1, seams=["loop"], sizes="n")
    many = body([node("Identity", "c", "go"), node("MatMul", "s w", "s1"), node("Softmax", "s1", "s2")], state, [info("s2", [2, 4])])
    yield Case("while_many", [node("Loop", "m - x", "y", name="loop", body=many)], [info("x", [2, 4])], [info("y", [2, 4])], [{"x": X}],
               {**CONSTANTS, "m": count(1500)}, whiles=1, seams=["loop"])
    swap = body([node("ReduceSum", "b", "total", keepdims=0), node("Less", "total lim", "go"), node("Add", "a b", "sum"), node("Identity", "b", "a2"),
                 node("Transpose", "q", "q2")], [info("a", [2, 4]), info("b", [2, 4]), info("q", [4, 4])],
                [info("a2", [2, 4]), info("sum", [2, 4]), info("q2", [4, 4])])
    yield Case("while_swap", [node("Loop", "m start x x w", "y1 y2 y3", name="loop", body=swap)], inputs,
               [info("y1", [2, 4]), info("y2", [2, 4]), info("y3", [4, 4])], limits(50, 2, 1e9), {**limited, "start": flag(True)}, whiles=1, seams=["loop"])
    grow = body([node("ReduceSum", "s", "total", keepdims=0), node("Less", "total lim", "go"), node("Concat", "s x", "s2", axis=0)], [info("s", ["n", 4])],
                [info("s2", ["p", 4])])
    ahead = [{"x": np.abs(X), "lim": np.array(v, np.float32)} for v in (0, 20, 1e9)]
    yield Case("while_grows", [node("Loop", "m start x", "y", name="loop", body=grow), node("Exp", "y", "e"), node("Shape", "y", "shape")], inputs,
               [info("e", ["q", 4]), info("shape", [2], INT64)], ahead, {**limited, "start": flag(True)}, whiles=1, seams=["loop"])
    both = body([node("ReduceSum", "s", "total", keepdims=0), node("Less", "total lim", "go"),
                 node("If", "even", "s2", name="inner", then_branch=graph([node("MatMul", "s w", "t0"), node("Add", "t0 x", "t")], [info("t", [2, 4])]),
                      else_branch=graph([node("Softmax", "s", "e")], [info("e", [2, 4])]))], state, [info("s2", [2, 4])])
    both.node.insert(2, node("Mod", "i two", "rest"))
    both.node.insert(3, node("Equal", "rest zero", "even"))
    yield Case("while_if", [node("Loop", "m start x", "y", name="loop", body=both)], inputs, [info("y", [2, 4])], limits(3, 1e9),
               {**limited, "start": flag(True), "two": count(2), "zero": count(0)}, ifs=2, whiles=1, seams=["loop", "loop/inner"])
    nest = body([node("Loop", "three start s", "s2", name="inner", body=graph(
        [node("MatMul", "r w", "r1"), node("Softmax", "r1", "r2"), node("ReduceMax", "r2", "most", keepdims=0), node("Less", "most lim2", "go2")],
        [info("go2", [], BOOL), info("r2", [2, 4])], [info("j", [], INT64), info("c2", [], BOOL), info("r", [2, 4])])),
                 node("ReduceSum", "s2", "total", keepdims=0), node("Less", "total lim", "go")], state, [info("s2", [2, 4])])
    yield Case("while_while", [node("Loop", "m start x", "y", name="loop", body=nest)], inputs, [info("y", [2, 4])], limits(1e9, -1e9),
               {**limited, "start": flag(True), "three": count(3), "lim2": np.array(0.5, np.float32)}, whiles=2, seams=["loop", "loop/inner"])
    yield Case("if_while", [branch(then=graph([node("Loop", "m start x", "t", name="loop", body=plain)], [info("t", [2, 4])])), node("Mul", "y y", "z")],
               inputs + [info("cond", [], BOOL)], [info("z", [2, 4])], limits(3, cond=flag(True)) + limits(3, cond=flag(False)),
               {**limited, "start": flag(True)}, ifs=2, whiles=1, seams=["branch", "branch/loop"])


def refusals():
    """Cases that no plan has room for, and all that gcc-plan says."""
    inputs, start = [info("x", [2, 4]), info("lim", [])], {**CONSTANTS, "start": flag(True)}
    rows = body(step([node("Softmax", "s2", "row")]), [info("s", [2, 4])], [info("s2", [2, 4]), info("row", [2, 4])])
    yield Case("rows_unbounded", [node("Loop", "- start x", "y rows", name="loop", body=rows)], inputs, [info("y", [2, 4]), info("rows", ["k", 2, 4])], [],
               start), ("rows_unbounded.onnx: node 'loop/LoopExit#9' (gcc-plan::LoopExit-1): output 'rows' dim 0 = loop.iterations has no upper bound\n"
                        "  remedy: its extent depends on data and no bound is known\n")
    grow = body([node("ReduceSum", "s", "total", keepdims=0), node("Less", "total lim", "go"), node("Concat", "s x", "s2", axis=0)], [info("s", ["n", 4])],
                [info("s2", ["p", 4])])
    yield Case("growth_unbounded", [node("Loop", "- start x", "y", name="loop", body=grow)], inputs, [info("y", ["k", 4])], [], start), (
        "growth_unbounded.onnx: node 'loop' (gcc-plan::LoopEnter-1): a carried value changes its dim 0 by 2 in each iteration, and no bound of the iterations "
        "is known\n  remedy: give the Loop a trip count: a constant, or one that follows from dims\n")


def repeated():
    state = [info("s", [2, 4])]
    fixed = body([node("Identity", "c", "go"), node("MatMul", "s w", "s1"), node("Add", "s1 x", "s2")], state, [info("s2", [2, 4])])
    yield Case("loop_unrolled", [node("Loop", "m - x", "y", name="loop", body=fixed)], [info("x", [2, 4])], [info("y", [2, 4])], [{"x": X}],
               {**CONSTANTS, "m": count(3)})
    ranged = body([node("Identity", "c", "go"), node("Gather", "x i", "row"), node("MatMul", "s w", "s1"), node("Add", "s1 row", "s2")], [info("s", [4])],
                  [info("s2", [4]), info("s1", [4])])
    long = [{"x": floats(n, 4, seed=n)} for n in (5, 1, 8)]
    yield Case("loop_launches", [node("Shape", "x", "shape", start=0, end=1), node("Squeeze", "shape", "m"), node("Loop", "m - first", "y rows", body=ranged)],
               [info("x", ["n", 4])], [info("y", [4]), info("rows", ["n", 4])], long, {**CONSTANTS, "first": floats(4, seed=3)}, ["--max=n=8"], sizes="n")
    scan = graph([node("MatMul", "s w", "s1"), node("Add", "s1 row", "s2"), node("Exp", "s2", "e")], [info("s2", [4]), info("e", [4])],
                 [info("s", [4]), info("row", [4])])
    rows = body(step(), [info("s", [2, 4])], [info("s2", [2, 4])])
    inner = graph([node("Loop", "m start s", "s1", name="loop", body=rows), node("Add", "s1 r", "s2"), node("Exp", "r", "q")],
                  [info("s2", [2, 4]), info("q", [4])], [info("s", [2, 4]), info("r", [4])])
    for name, more in (("scan_of_whiles", {}), ("scan_backwards", {"scan_input_directions": [1], "scan_output_directions": [1], "scan_output_axes": [1]})):
        yield Case(name, [node("Scan", "x rows", "y qs", name="scan", body=inner, num_scan_inputs=1, **more)],
                   [info("x", [2, 4]), info("lim", []), info("rows", ["n", 4])], [info("y", [2, 4]), info("qs", [4, "n"] if more else ["n", 4])],
                   [{"x": X, "lim": np.array(v, np.float32), "rows": floats(n, 4, seed=n)} for n, v in ((2, 3), (1, -9), (8, 1e9))],
                   {**CONSTANTS, "start": flag(True), "m": count(3)}, ["--max=n=8"], whiles=2, seams=["scan", "scan/loop"], sizes="n")
    yield Case("scan_long", [node("Scan", "first x", "y rows", name="scan", body=scan, num_scan_inputs=1)], [info("x", [1200, 4])],
               [info("y", [4]), info("rows", [1200, 4])], [{"x": floats(1200, 4) / 100}], {"w": W / 8, "first": floats(4, seed=3)}, whiles=1, seams=["scan"])
    twice = body([node("Identity", "c", "go"), node("Scan", "s x", "s2", name="inner", body=graph([node("MatMul", "t w", "t1"), node("Add", "t1 r", "t2"),
                  node("Softmax", "t2", "t3")], [info("t3", [4])], [info("t", [4]), info("r", [4])]), num_scan_inputs=1)], [info("s", [4])], [info("s2", [4])])
    yield Case("loop_of_launches", [node("Shape", "x", "shape", start=0, end=1), node("Squeeze", "shape", "m"), node("Loop", "m - first", "y", name="loop",
                                    body=twice)], [info("x", ["n", 4])], [info("y", [4])], long, {**CONSTANTS, "first": floats(4, seed=3)}, ["--max=n=8"],
               whiles=1, seams=["loop"], sizes="n")
    for name, dim, options, runs in (("scan_unrolled", 3, [], [{"x": floats(3, 4)}]), ("scan_launches", "n", ["--max=n=8"], long)):
        yield Case(name, [node("Scan", "first x", "y rows", body=scan, num_scan_inputs=1)], [info("x", [dim, 4])], [info("y", [4]), info("rows", [dim, 4])],
                   runs, {**CONSTANTS, "first": floats(4, seed=3)}, options, sizes="n" if dim == "n" else None)


def plain():
    """No control flow: an input that is an output too, as it is; a view of a table that is known when compiling; views of nothing."""
    yield Case("input_is_output", [node("MatMul", "x w", "y")], [info("x", [2, 4])], [info("x", [2, 4]), info("y", [2, 4])], [{"x": X}], {"w": W})
    yield Case("view_of_table", [node("Shape", "x", "shape"), node("Neg", "shape", "table"), node("Tile", "table one", "y"), node("Identity", "x", "z")],
               [info("x", [2, 4])], [info("y", [2], INT64), info("z", [2, 4])], [{"x": X}], {"one": np.array([1], np.int64)})
    yield Case("views_of_nothing", [node("Slice", "x four five one", "s"), node("Clip", "s", "y"), node("Slice", "e back out one back", "r"), node("Clip", "r", "z"),
                                    node("Slice", "e far back one back", "q"),
                                    node("Identity", "x", "w")], [info("x", [2, 4]), info("e", [6, 0, 3])], [info("y", [2, 0]), info("z", [6, 0, 3]), info("q", [6, 0, 3]), info("w", [2, 4])],
               [{"x": X, "e": floats(6, 0, 3)}], {k: np.array([v], np.int64) for k, v in (("one", 1), ("four", 4), ("five", 5), ("back", -1), ("out", -9), ("far", -1 << 63))})


def cases():
    yield from plain()
    yield from branches()
    yield from whiles()
    yield from repeated()
