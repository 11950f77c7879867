"""onerow_attention.py - GroupQueryAttention of one new row a sequence, in one launch (compiler/ops/gqa.c, attention_one.cu): caches of
constant length, of which each sequence has its own part. Expected values, of the appended caches too, by onnxruntime in float32
from the same rounded inputs; a head norm is a node there."""
import numpy as np

from op_models import TOLERANCES, TYPES, Graph, random
from ops_attention import tables

MS = "com.microsoft"
ROWS = 512  # of the caches
PASTS = (0, 1, 31, 32, 33, 500)
ONE, MANY = {"attention_one": 1, "launches": 2}, {"attention_one": 0}  # and what advances the extents


class Attention(Graph):
    """NORMS: head norms of query and key as "nodes" before it, or "inputs". CACHES: their type, where it is another."""

    def __init__(self, name, dtype, kernels=None, pasts=PASTS, heads=4, kv_heads=2, head=64, packed=False, half=0, positions=None,
                 sinks=False, norms=None, bias=False, rows=1, length=ROWS, caches=None, **attrs):
        super().__init__("%s_%s" % (name, dtype), dtype, ONE if kernels is None else kernels)
        if caches:
            self.tolerance, self.output_types = TOLERANCES["bf16"], {1: TYPES[caches], 2: TYPES[caches]}
        self.heads, self.kv_heads, self.head, self.batch, self.rows, self.pasts = heads, kv_heads, head, len(pasts), rows, pasts
        q, k, v = (self.new_rows(seed, count) for seed, count in ((1, heads), (2, kv_heads), (3, kv_heads)))
        if packed:
            inputs = [self.input("q", np.concatenate([q, k, v], -1)), "", ""]
        else:
            inputs = [self.input(n, a) for n, a in (("q", q), ("k", k), ("v", v))]
        if norms in ("nodes", "key"):
            for i, count in enumerate((heads, kv_heads)):
                if i or norms == "nodes":
                    inputs[i] = self.head_norm(inputs[i], count)
        for i, kind in enumerate(("key", "value")):
            inputs.append(self.input("past_key_values.0." + kind, random(4 + i, (self.batch, kv_heads, length, head), caches or dtype)))
        inputs += [self.input("lengths", np.array(pasts, np.int32) + rows - 1), self.constant(np.int32(max(pasts) + rows))]
        inputs += [self.constant(t) for t in tables(length, half, dtype)] if half else ["", ""]
        inputs += [self.input("positions", np.array(positions)) if positions else ""]
        inputs += [self.input("bias", random(9, (self.batch, 1, rows, max(pasts) + rows), dtype)) if bias else ""]
        inputs += [self.constant(random(6, (heads,), dtype)) if sinks else "", "", ""]
        inputs += [self.constant(random(seed, (head,), dtype)) for seed in (7, 8)] if norms == "inputs" else []
        while not inputs[-1]:
            inputs.pop()
        self.node("GroupQueryAttention", inputs, ["y", "present.0.key", "present.0.value"], MS, num_heads=heads, kv_num_heads=kv_heads,
                  do_rotary=int(half > 0), **attrs)
        self.output("y", "present.0.key", "present.0.value")

    def new_rows(self, seed, count):
        return random(seed, (self.batch, self.rows, count * self.head), self.dtype)

    def head_norm(self, x, count):
        """As exporters write it: the heads apart, each normed, and together again."""
        apart = self.node("Reshape", [x, self.constant(np.array([self.batch, self.rows, count, self.head]))])
        scale = self.constant(random(7 if count == self.heads else 8, (self.head,), self.dtype))
        normed = self.node("RMSNormalization", [apart, scale], epsilon=1e-6)
        return self.node("Reshape", [normed, self.constant(np.array([self.batch, self.rows, count * self.head]))])

    def settle(self, expected):
        """Beyond its length each sequence's cache is as it was."""
        caches = {name: array for name, array in self.inputs}
        for kind, present in zip(("key", "value"), expected[1:]):
            for b, past in enumerate(self.pasts):
                present[b, :, past + self.rows:] = caches["past_key_values.0." + kind][b, :, past + self.rows:]
        return expected


def forms(dtype):
    """Each case has sequences of all lengths of PASTS in its batch."""
    yield Attention("plain", dtype)
    yield Attention("one", dtype, pasts=(77,))
    yield Attention("first", dtype, pasts=(0,))
    yield Attention("last", dtype, pasts=(ROWS - 1, 3, ROWS - 1))
    for half, interleaved in ((32, 0), (32, 1), (8, 0), (8, 1)):
        yield Attention("rotary_%d_%d" % (half, interleaved), dtype, half=half, rotary_interleaved=interleaved)
    yield Attention("positions", dtype, half=32, positions=[[7], [1], [31], [0], [33], [499]])
    yield Attention("packed", dtype, packed=True, half=32)
    yield Attention("packed_plain", dtype, packed=True)
    yield Attention("window", dtype, local_window_size=33)
    yield Attention("window_one", dtype, local_window_size=1, half=32)
    yield Attention("window_wide", dtype, local_window_size=400)
    yield Attention("softcap", dtype, softcap=1.5)
    yield Attention("scale", dtype, scale=0.7)
    yield Attention("smooth", dtype, smooth_softmax=1)
    yield Attention("sinks", dtype, sinks=True)
    yield Attention("sinks_window", dtype, sinks=True, local_window_size=32, half=32)
    for head in (128, 256):
        yield Attention("head_%d" % head, dtype, head=head, half=head // 2, pasts=PASTS[:5] + (130,), length=160)
    for kv_heads, group in ((3, 1), (2, 3), (1, 7), (2, 8)):
        yield Attention("group_%d" % group, dtype, heads=kv_heads * group, kv_heads=kv_heads, half=32, pasts=(3, 200, 64))
    # Pasts at the borders of a slice (16 keys), of what a block has at once, and so of another split (256, 128, 64 keys by the head): the new row
    # is the last of one or the first of the next; then several turns of each warp, and more splits than are merged at once.
    for head, heads, kv_heads, pasts in ((64, 7, 1, (14, 15, 16, 254, 255, 256, 511)), (128, 2, 1, (16, 126, 127, 128, 255, 256, 1100)),
                                         (256, 6, 1, (62, 63, 64, 127, 128, 600)), (256, 8, 1, (0, 200, 64))):
        yield Attention("borders_%d_%d" % (head, heads), dtype, heads=heads, kv_heads=kv_heads, head=head, half=32, pasts=pasts, length=max(pasts) + 40)
    yield Attention("turns", dtype, heads=60, kv_heads=60, pasts=(1500, 1030), length=1536)
    yield Attention("splits_sinks", dtype, sinks=True, softcap=1.5, pasts=(1500,), length=1536)
    yield Attention("splits_window", dtype, head=128, local_window_size=300, smooth_softmax=1, pasts=(900, 299, 300), length=1024)
    yield Attention("many_heads", dtype, heads=64, kv_heads=64, pasts=(3, 90, 64), length=96)


def cut(shape, blocks, rounds, most=64):
    """For a tuning file, by the keys that compiler/ops/gqa_one_row.c has."""
    return "".join("attention_%s/%s %d\n" % (what, shape, value) for what, value in (("room", 16), ("most", most), ("cluster", blocks), ("rounds", rounds)))


def clustered(name, dtype, blocks, rounds=1, most=64, **given):
    """With clusters of so many blocks, of few keys each; pasts within the first block's, at its border, and on to the last of several clusters'."""
    heads, kv_heads, head = given.setdefault("heads", 4), given.setdefault("kv_heads", 2), given.setdefault("head", 64)
    share = 64 * 64 // head  # keys of a block in 16 KB
    one = blocks * rounds * share  # of a cluster alone
    given.setdefault("pasts", tuple(n - 1 for n in (1, share, share + 1, one // 2 + 3, one, one + 1, min(2 * one + 7, ROWS))))
    case = Attention("cluster_%d_%d_%s" % (blocks, rounds, name), dtype, length=max(given["pasts"]) + 1, **given)
    shape = "heads=%dx%d,d=%d" % (kv_heads * case.batch, heads // kv_heads, head)
    case.tuning = cut(shape, blocks, rounds, most)
    return case


def clusters(dtype):
    """The tuning file's clusters, which the host has under --emulate-gpu (run_onerow.sh looks for them): heads of all sizes in groups of all sizes."""
    for blocks, rounds, heads, kv_heads, head in ((4, 1, 7, 1, 64), (8, 1, 6, 2, 64), (16, 1, 1, 1, 64), (4, 2, 8, 1, 128), (16, 1, 2, 1, 128),
                                                  (4, 4, 6, 1, 256), (8, 1, 8, 2, 256), (16, 2, 5, 1, 256)):
        yield clustered("%dx%d_%d" % (kv_heads, heads // kv_heads, head), dtype, blocks, rounds, heads=heads, kv_heads=kv_heads, head=head, half=head // 2)
    yield clustered("most", dtype, 8, 1, 8, heads=3, kv_heads=1, head=256, pasts=(0, 15, 16, 100, 127, 128, 300))  # one cluster, each block in turns
    yield clustered("one", dtype, 4, heads=4, kv_heads=1, pasts=(250,))
    yield clustered("fewer", dtype, 4, heads=7, kv_heads=1, pasts=(150, 3, 511, 150, 300))  # of three blocks that merge, the last has fewer elements
    yield clustered("window", dtype, 4, local_window_size=150, head=128, half=32, pasts=(0, 31, 32, 127, 148, 149, 150, 400))
    yield clustered("sinks", dtype, 4, sinks=True, heads=8, kv_heads=1)
    yield clustered("smooth_window", dtype, 8, smooth_softmax=1, softcap=1.5, local_window_size=40, head=256, pasts=(0, 15, 16, 38, 39, 40, 200))
    yield clustered("norms", dtype, 4, norms="nodes", half=32)


def norms(dtype):
    for kind, half, interleaved in (("nodes", 32, 0), ("inputs", 32, 0), ("nodes", 0, 0), ("inputs", 8, 1), ("key", 32, 1)):
        def graph(form):
            return Attention("norms_%s_%d" % (kind, half), dtype, norms=form, half=half, rotary_interleaved=interleaved)
        g = graph(kind)
        if kind == "inputs":
            g.oracle_graph = graph("nodes")
        yield g


def others(dtype):
    """What the kernel does not take."""
    yield Attention("rows", dtype, MANY, rows=3, pasts=(60,), half=32)
    yield Attention("norms_rows", dtype, dict(MANY, norm=2), rows=3, pasts=(0,), half=32, norms="nodes")
    for head in (16, 32):
        yield Attention("head_%d" % head, dtype, MANY, head=head, half=head // 2)
    yield Attention("norms_head_32", dtype, dict(MANY, norm=2), head=32, half=16, norms="nodes")
    yield Attention("head_96", dtype, MANY, head=96, half=48)
    yield Attention("head_8", dtype, MANY, head=8)
    yield Attention("group_9", dtype, MANY, heads=18)
    yield Attention("bias", dtype, MANY, bias=True, pasts=(60,))
    yield Attention("short", dtype, MANY, length=40, pasts=(5, 39, 0))


def cases():
    for dtype in ("f16", "bf16"):
        yield from forms(dtype)
        yield from norms(dtype)
        yield from clusters(dtype)
        yield from others(dtype)
    yield Attention("wide", "f32", MANY)
    for dtype, caches in (("f16", "bf16"), ("bf16", "f16")):
        yield Attention("caches_%s" % caches, dtype, heads=7, kv_heads=1, half=32, caches=caches, pasts=(3, 200, 300))
        yield clustered("caches_%s" % caches, dtype, 4, heads=7, kv_heads=1, half=32, caches=caches)
