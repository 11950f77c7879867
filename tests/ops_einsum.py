"""ops_einsum.py - cases for compiler/ops/einsum.c; numpy computes them."""
import numpy as np

from op_models import TYPES, Case, random

EQUATIONS = (("ij,jk->ik", (3, 4), (4, 5)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 6)),
             ("ii->i", (4, 4)), ("ii", (4, 4)), ("...ii->...i", (2, 3, 3)), ("i,j->ij", (3,), (4,)), ("i,i", (5,), (5,)),
             ("ij->ji", (3, 4)), ("ij->", (3, 4)), ("ba", (3, 4)), ("bhqd,bhkd->bhqk", (1, 2, 3, 8), (1, 2, 5, 8)), ("ijk,k->ij", (2, 3, 4), (4,)),
             ("i j , j k -> i k", (2, 3), (3, 4)), ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 2)), ("a,b,c->cab", (2,), (3,), (4,)),
             ("iij->j", (3, 3, 4)), ("ab...,b->a...", (2, 3, 4, 5), (3,)), ("...,...->...", (2, 1), (1, 3)), (",ij->ij", (), (2, 3)),
             ("Ab,bA->bA", (2, 3), (3, 2)))


def cases():
    for number, (equation, *shapes) in enumerate(EQUATIONS):
        for dtype in ("f32", "f16", "bf16") if number < 3 else ("f32",):
            arrays = [random(10 * number + k, shape, dtype) for k, shape in enumerate(shapes)]
            expected = np.einsum(equation.replace(" ", ""), *[a.astype(np.float32) for a in arrays])
            yield Case("%02d_%s" % (number, dtype), "Einsum", [("x%d" % k, a) for k, a in enumerate(arrays)], ["y"], {"equation": equation},
                       dtype=dtype, expected=[np.asarray(expected).astype(TYPES[dtype])])
    for kind in (np.int32, np.int64, np.uint8, np.float64):
        a, b = np.arange(12).reshape(3, 4).astype(kind), np.arange(20).reshape(4, 5).astype(kind)
        yield Case("type_%s" % np.dtype(kind).name, "Einsum", [("a", a), ("b", b)], ["y"], {"equation": "ij,jk->ik"},
                   expected=[np.einsum("ij,jk->ik", a, b)])
