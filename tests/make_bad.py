#!/usr/bin/env python3
"""Writes the corpus of bad inputs into a folder: one model, or recipe, a case of tests/bad/cases.txt.

Needs nothing but Python: it has its own protobuf writer, since most of these files no ONNX library would write."""
import os
import random
import struct
import sys

F32, U8, I32, I64, STRING, BOOL, F16 = 1, 2, 6, 7, 8, 9, 10


# ---- protobuf: a message is bytes; fields are joined

def varint(v):
    v &= (1 << 64) - 1
    out = b''
    while v > 127:
        out += bytes([v & 127 | 128])
        v >>= 7
    return out + bytes([v])


def num(field, v):
    return varint(field << 3) + varint(v)


def sub(field, v):
    v = v.encode() if isinstance(v, str) else v
    return varint(field << 3 | 2) + varint(len(v)) + v


def f32(field, v):
    return varint(field << 3 | 5) + struct.pack('<f', v)


# ---- ONNX

def tensor(name, dtype, dims, raw=None, ints=(), floats=(), external=None, more=b''):
    out = b''.join(num(1, d) for d in dims) + num(2, dtype)
    if floats:
        out += sub(4, struct.pack('<%df' % len(floats), *floats))
    if ints:
        out += sub(7 if dtype == I64 else 5, b''.join(varint(i) for i in ints))
    out += sub(8, name)
    if raw is not None:
        out += sub(9, raw)
    if external is not None:
        out += b''.join(sub(13, sub(1, k) + sub(2, str(v))) for k, v in external) + num(14, 1)
    return out + more


def dim(d):
    return sub(1, num(1, d) if isinstance(d, int) else sub(2, d) if d else b'')


def info(name, dtype, dims):
    return sub(1, name) + sub(2, sub(1, num(1, dtype) + sub(2, b''.join(dim(d) for d in dims))))


A_FLOAT, A_INT, A_STRING, A_TENSOR, A_GRAPH, A_INTS, A_STRINGS, A_SPARSE, A_TYPE = 1, 2, 3, 4, 5, 7, 8, 11, 13


def attr(name, kind, value=b'', ref=None):
    return sub(1, name) + value + num(20, kind) + (sub(21, ref) if ref else b'')


def node(op, inputs, outputs, name='', attrs=(), domain='', more=b''):
    return (b''.join(sub(1, i) for i in inputs) + b''.join(sub(2, o) for o in outputs) + (sub(3, name) if name else b'') +
            sub(4, op) + b''.join(sub(5, a) for a in attrs) + (sub(7, domain) if domain else b'') + more)


def graph(nodes, inputs, outputs, inits=(), more=b''):
    return (b''.join(sub(1, n) for n in nodes) + sub(2, 'g') + b''.join(sub(5, t) for t in inits) +
            b''.join(sub(11, i) for i in inputs) + b''.join(sub(12, o) for o in outputs) + more)


def opset(domain, version):
    return (sub(1, domain) if domain else b'') + num(2, version)


def model(g, ir=10, opsets=(('', 21),), functions=(), more=b''):
    return (num(1, ir) + sub(2, 'make_bad') + b''.join(sub(8, opset(*o)) for o in opsets) +
            (sub(7, g) if g is not None else b'') + b''.join(sub(25, f) for f in functions) + more)


def function(name, inputs, outputs, nodes, domain='local', opsets=(('', 21), ('local', 1)), attributes=(), defaults=()):
    return (sub(1, name) + b''.join(sub(4, i) for i in inputs) + b''.join(sub(5, o) for o in outputs) +
            b''.join(sub(6, a) for a in attributes) + b''.join(sub(7, n) for n in nodes) +
            b''.join(sub(9, opset(*o)) for o in opsets) + sub(10, domain) + b''.join(sub(11, a) for a in defaults))


X, Y = info('x', F32, ['n', 4]), info('y', F32, ['n', 4])
W = tensor('w', F32, [4, 4], raw=bytes(64))
MATMUL = node('MatMul', ['x', 'w'], ['y'], 'mm')
LOCAL = (('', 21), ('local', 1))


def plain(nodes=(MATMUL,), inputs=(X,), outputs=(Y,), inits=(W,), more=b'', **options):
    return model(graph(nodes, inputs, outputs, inits, more), **options)


def with_init(t):
    return plain(inits=(t,))


def with_node(*nodes, **options):
    return plain(nodes=(MATMUL,) + nodes, **options)


def external(pairs, dims=(4, 4)):
    return with_init(tensor('w', F32, dims, external=pairs))


def nested_graphs(levels):
    g = graph([node('Identity', ['x'], ['z'], 'leaf')], [], [info('z', F32, [4])])
    for i in range(levels):
        g = graph([node('If', ['x'], ['z'], 'if%d' % i, [attr('then_branch', A_GRAPH, sub(6, g))])], [], [info('z', F32, [4])])
    return plain(nodes=(MATMUL, node('If', ['x'], ['q'], 'top', [attr('then_branch', A_GRAPH, sub(6, g))])))


def bomb(levels):
    """Functions that call the next one twice: 2^levels nodes."""
    functions = [function('F0', ['a'], ['b'], [node('Neg', ['a'], ['b'])])]
    for i in range(1, levels):
        call = 'F%d' % (i - 1)
        functions.append(function('F%d' % i, ['a'], ['b'], [node(call, ['a'], ['t'], domain='local'),
                                                            node(call, ['t'], ['b'], domain='local')]))
    return plain([node('F%d' % (levels - 1), ['x'], ['y'], 'boom', domain='local')], opsets=LOCAL, functions=functions)


def chain(levels):
    """Functions within each other, once: deeper than the limit."""
    functions = [function('F0', ['a'], ['b'], [node('Neg', ['a'], ['b'])])]
    for i in range(1, levels):
        functions.append(function('F%d' % i, ['a'], ['b'], [node('F%d' % (i - 1), ['a'], ['b'], 'c', domain='local')]))
    return plain([node('F%d' % (levels - 1), ['x'], ['y'], 'c', domain='local')], opsets=LOCAL, functions=functions)


def call(f, nodes, **options):
    return plain(nodes, opsets=LOCAL, functions=f if isinstance(f, list) else [f], **options)


def decoder(out='present.0.key', out_type=F32):
    ids, past = info('input_ids', I64, ['batch', 'seq']), info('past_key_values.0.key', F32, ['batch', 2, 'past', 4])
    scale = info('scale', F32, [2, 2])
    return model(graph([node('Identity', ['input_ids'], ['logits']), node('Identity', ['past_key_values.0.key'], [out])],
                       [ids, past, scale], [info('logits', I64, ['batch', 'seq']), info(out, out_type, ['batch', 2, 'past', 4])]))


def states():
    """States with names as exporters give them, beside inputs and outputs that are none."""
    pairs = [('past.0.conv', 'present.0.conv'), ('past_key_values.1.decoder.key', 'present.1.decoder.key'), ('past_key_values_2', 'present_key_values_2'),
             ('past_key_self_3', 'present_key_self_3'), ('past_states.4.h', 'present.4.h'), ('cell5', 'updated_cell5'), ('passed.0', 'presented.0'),
             ('past_key', 'present_key'), ('conv', 'updated_conv')]
    ids = info('input_ids', I64, ['batch', 'seq'])
    return model(graph([node('Identity', ['input_ids'], ['logits'])] + [node('Neg', [a], [b]) for a, b in pairs],
                       [ids] + [info(a, F32, ['batch', 4]) for a, _ in pairs],
                       [info('logits', I64, ['batch', 'seq'])] + [info(b, F32, ['batch', 4]) for _, b in pairs]))


def encoder():
    """No state: the mask is the caller's, whatever it is called."""
    ids, mask = info('input_ids', I64, ['batch', 'seq']), info('attention_mask', I64, ['batch', 'seq'])
    return model(graph([node('Mul', ['input_ids', 'attention_mask'], ['y'])], [ids, mask], [info('y', I64, ['batch', 'seq'])]))


def models():
    yield 'states', states()
    yield 'encoder', encoder()
    good = plain()
    yield 'empty', b''
    yield 'text', b'This is no model.\n'
    yield 'truncated', good[:len(good) // 2]
    yield 'cut_raw', good[:good.index(bytes(40)) + 20]
    yield 'random', random.Random(7).randbytes(4096)
    yield 'png', b'\x89PNG\r\n\x1a\n' + bytes(64)
    yield 'zeros', bytes(256)
    yield 'long_varint', b'\x08' + b'\xff' * 11
    yield 'wrong_kind', varint(7 << 3) + b'\x01'
    yield 'group', varint(30 << 3 | 3) + varint(30 << 3 | 4)
    yield 'two_graphs', good + sub(7, graph([], [], []))
    yield 'zero_in_name', with_node(node('Neg', ['x'], ['q'], 'a\0b'))
    yield 'many_messages', num(1, 10) + sub(7, b''.join(sub(1, b'') for _ in range(4000)))
    deep = b''
    for _ in range(80):
        deep = sub(7, deep) if _ == 79 else sub(1, sub(5, sub(6, deep)))
    yield 'deep_wire', num(1, 10) + deep
    yield 'deep_graphs', nested_graphs(30)
    yield 'no_graph', model(None)
    yield 'no_ir', sub(7, graph([MATMUL], [X], [Y], [W]))
    yield 'ir_2', plain(ir=2)
    yield 'ir_14', plain(ir=14)
    sizes = lambda *dims: plain(nodes=[node('Expand', ['x', 's'], ['t'], 'e'), node('Reshape', ['t', 's'], ['u'], 'r'), node('Neg', ['u'], ['y'], 'n')],
                                inputs=[info('x', F32, [1])], outputs=[info('y', F32, ['a'] * len(dims))], inits=[tensor('s', I64, [len(dims)], ints=dims)])
    for name, to in (('string', 8), ('c64', 14), ('nothing', 0), ('storage', 29), ('f32_and_more', (1 << 32) + 1), ('far', 1 << 31)):
        yield 'cast_to_' + name, plain(nodes=[node('Cast', ['x'], ['q'], 'c', [attr('to', A_INT, num(3, to))])], outputs=[])
    yield 'too_many_elements', sizes(1 << 29, 1 << 29, 1 << 29)
    yield 'too_many_for_64_bits', sizes(1 << 19, 1 << 19, 1 << 29)
    yield 'negative_extents', plain(nodes=[node('Reshape', ['x', 's'], ['y'], 'r')], inits=[tensor('s', I64, [2], ints=(-1 << 63, -2))])
    yield 'opset_28', plain(opsets=(('', 28),))
    yield 'opset_0', plain(opsets=(('', 0),))
    old = (('', 6),)
    add, neg = [attr('axis', A_INT, num(3, 1)), attr('broadcast', A_INT, num(3, 1))], node('Neg', ['x'], ['t'])
    yield 'legacy_axis', plain([node('Add', ['x', 'w'], ['y'], 'a', add)], opsets=old)
    yield 'legacy_rank', plain([neg, node('Add', ['t', 'w'], ['y'], 'a', add)], opsets=old)
    yield 'legacy_training', plain([node('Dropout', ['x'], ['y'], 'd')], inits=(), opsets=old)
    yield 'legacy_other', plain([node('Tile', ['x', 'w', 'w'], ['y'], 't')], opsets=(('', 5),))
    yield 'opset_twice', plain(opsets=(('', 21), ('ai.onnx', 20)))
    yield 'opset_none', plain(opsets=())
    yield 'cycle', plain([node('Add', ['x', 'b'], ['a'], 'first'), node('Neg', ['a'], ['b'], 'second'), MATMUL])
    yield 'self_cycle', plain([node('Add', ['x', 'y'], ['y'], 'loop')])
    yield 'missing_initializer', plain(inits=())
    yield 'missing_inputs', plain([node('Add', ['x', 'nowhere'], ['t'], 'one'), node('Add', ['gone', 't'], ['y'], 'two')])
    yield 'missing_output', plain(outputs=(Y, info('z', F32, [1])))
    yield 'duplicate_value', with_node(node('Neg', ['x'], ['y'], 'again'))
    yield 'duplicate_initializer', plain(inits=(W, W))
    yield 'duplicate_input', plain(inputs=(X, X))
    yield 'duplicate_output', plain(outputs=(Y, Y))
    yield 'output_is_initializer', with_node(node('Neg', ['x'], ['w'], 'over'))
    yield 'raw_short', with_init(tensor('w', F32, [4, 4], raw=bytes(60)))
    yield 'raw_long', with_init(tensor('w', F32, [4, 4], raw=bytes(68)))
    yield 'typed_count', with_init(tensor('w', F32, [4, 4], floats=[0.0] * 15))
    yield 'typed_field', with_init(tensor('w', F32, [2, 2], ints=[1, 2, 3, 4]))
    yield 'typed_range', plain(inits=(W, tensor('u', U8, [3], ints=[1, 2, 300])))
    yield 'bool_range', plain(inits=(W, tensor('u', BOOL, [2], ints=[1, 2])))
    yield 'raw_and_typed', with_init(tensor('w', F32, [4, 4], raw=bytes(64), floats=[0.0] * 16))
    yield 'no_data', with_init(tensor('w', F32, [4, 4]))
    yield 'dtype_unknown', with_init(tensor('w', 99, [4, 4], raw=bytes(64)))
    yield 'dtype_none', with_init(tensor('w', 0, [4, 4], raw=bytes(64)))
    yield 'string_initializer', plain(inits=(W, tensor('s', STRING, [1], more=sub(6, 'hello'))))
    yield 'string_input', plain(inputs=(X, info('s', STRING, [1])))
    yield 'negative_dim', with_init(tensor('w', F32, [-4, 4], raw=bytes(64)))
    yield 'huge_dims', with_init(tensor('w', F32, [1 << 40, 1 << 40], raw=bytes(64)))
    yield 'rank_9', with_init(tensor('w', F32, [1] * 9, raw=bytes(4)))
    yield 'input_rank_9', plain(inputs=(X, info('r', F32, [1] * 9)))
    yield 'input_negative_dim', plain(inputs=(X, info('r', F32, [-1])))
    yield 'input_no_type', plain(inputs=(X, sub(1, 'r')))
    yield 'input_no_shape', plain(inputs=(X, sub(1, 'r') + sub(2, sub(1, num(1, F32)))))
    yield 'input_sequence', plain(inputs=(X, sub(1, 'r') + sub(2, sub(4, sub(1, sub(1, num(1, F32)))))))
    yield 'input_optional', plain(inputs=(X, sub(1, 'r') + sub(2, sub(9, sub(1, sub(4, sub(1, sub(1, num(1, F32)))))))))
    yield 'input_sequence_of_strings', plain(inputs=(X, sub(1, 'r') + sub(2, sub(4, sub(1, sub(1, num(1, STRING)))))))
    yield 'input_sequence_of_maps', plain(inputs=(X, sub(1, 'r') + sub(2, sub(4, sub(1, sub(5, b''))))))
    yield 'input_no_name', plain(inputs=(X, info('', F32, [1])))
    yield 'output_type', plain([node('Identity', ['x'], ['y'])], outputs=(Y, info('x', F16, ['n', 4])))
    yield 'segment', with_init(tensor('w', F32, [4, 4], raw=bytes(64), more=sub(3, num(1, 0) + num(2, 4))))
    yield 'sparse', plain(more=sub(15, sub(1, W)))
    ok = [('location', 'good.bin'), ('offset', 0), ('length', 64)]
    yield 'external_missing', external([('location', 'nowhere.bin')])
    yield 'external_absolute', external([('location', '/etc/passwd')])
    yield 'external_parent', external([('location', '../bad/good.bin')])
    yield 'external_parent_inside', external([('location', 'inner/../good.bin')])
    yield 'external_link', external([('location', 'link.bin')])
    yield 'external_link_folder', external([('location', 'folder/good.bin')])
    yield 'external_folder', external([('location', 'inner')])
    yield 'external_offset', external([('location', 'good.bin'), ('offset', 1 << 40), ('length', 64)])
    yield 'external_length', external([('location', 'good.bin'), ('offset', 64), ('length', 65)])
    yield 'external_overflow', external([('location', 'good.bin'), ('offset', (1 << 63) - 1), ('length', (1 << 63) - 1)])
    yield 'external_to_end', external([('location', 'good.bin')])
    yield 'external_size', external(ok, dims=(4, 5))
    yield 'external_number', external([('location', 'good.bin'), ('offset', '-8')])
    yield 'external_empty', external([('location', '')])
    yield 'external_none', external([('offset', 0)])
    yield 'external_and_raw', with_init(tensor('w', F32, [4, 4], raw=bytes(64), external=ok))
    yield 'unknown_operator', with_node(node('Frobnicate', ['x'], ['q'], 'strange'))
    yield 'unknown_domain', with_node(node('Mystery', ['x'], ['q'], 'block.0/Mystery', domain='com.example'),
                                      opsets=(('', 21), ('com.example', 1)))
    yield 'not_imported', with_node(node('Mystery', ['x'], ['q'], 'm', domain='com.example'))
    branches = [attr(which, A_GRAPH, sub(6, graph([node(op, ['x'], ['z'], op.lower())], [], [info('z', F32, ['n', 4])])))
                for which, op in (('then_branch', 'Frobnicate'), ('else_branch', 'Neg'))]
    choice = node('If', ['c'], ['y'], 'choose', branches)
    condition = info('c', BOOL, [])
    yield 'lacks_in_branch', plain([choice], (X, condition), inits=())
    contrib = (('', 21), ('com.microsoft', 1))
    lacking = [choice, node('GreedySearch', ['x'], ['q'], 'search', domain='com.microsoft'), node('Relu', ['q'], ['r'], 'behind', [attr('alpha', A_INT, num(3, 1))]),
               node('Softmax', ['x'], ['s'], 'soft', [attr('axis', A_INT, num(3, 7))]), node('Softmax', ['q'], ['t'], 'unknown', [attr('axis', A_INT, num(3, 7))])]
    yield 'lacks_much', plain(lacking, (X, condition), inits=(), opsets=contrib)
    yield 'lacks_behind_strings', plain(lacking, (X, condition, info('words', STRING, [1])), inits=(), opsets=contrib)
    yield 'no_operator', with_node(node('', ['x'], ['q'], 'nothing'))
    yield 'attribute_unknown', with_node(node('Neg', ['x'], ['q'], 'n', [attr('colour', A_INT, num(3, 1))]))
    yield 'attribute_kind', with_node(node('Softmax', ['x'], ['q'], 's', [attr('axis', A_FLOAT, f32(2, 1.0))]))
    yield 'attribute_lies', with_node(node('Softmax', ['x'], ['q'], 's', [attr('axis', A_INT, f32(2, 1.0))]))
    yield 'attribute_twice', with_node(node('Softmax', ['x'], ['q'], 's', [attr('axis', A_INT, num(3, 1))] * 2))
    yield 'attribute_type_99', with_node(node('Softmax', ['x'], ['q'], 's', [attr('axis', 99, num(3, 1))]))
    yield 'attribute_no_type', with_node(node('Softmax', ['x'], ['q'], 's', [sub(1, 'axis')]))
    yield 'attribute_sparse', with_node(node('Softmax', ['x'], ['q'], 's', [attr('axis', A_SPARSE, sub(22, sub(1, W)))]))
    yield 'attribute_reference', with_node(node('Softmax', ['x'], ['q'], 's', [attr('axis', A_INT, ref='a')]))
    yield 'attribute_tensor', with_node(node('ConstantOfShape', ['x'], ['q'], 'c', [
        attr('value', A_TENSOR, sub(5, tensor('', F32, [1], raw=b'abc')))]))
    yield 'constant_string', with_node(node('Constant', [], ['q'], 'c', [attr('value_string', A_STRING, sub(4, 'hi'))]))
    yield 'constant_none', with_node(node('Constant', [], ['q'], 'c'))
    yield 'constant_kind', with_node(node('Constant', [], ['q'], 'c', [attr('value_ints', A_INT, num(3, 1))]))
    yield 'constant_input', with_node(node('Constant', ['x'], ['q'], 'c', [attr('value_int', A_INT, num(3, 1))]))
    loop = function('F', ['a'], ['b'], [node('F', ['a'], ['b'], 'inner', domain='local')])
    yield 'function_recursion', call(loop, [node('F', ['x'], ['y'], 'outer', domain='local')])
    ping = function('P', ['a'], ['b'], [node('Q', ['a'], ['b'], 'q', domain='local')])
    pong = function('Q', ['a'], ['b'], [node('P', ['a'], ['b'], 'p', domain='local')])
    yield 'function_ping_pong', call([ping, pong], [node('P', ['x'], ['y'], 'outer', domain='local')])
    neg = function('N', ['a'], ['b'], [node('Neg', ['a'], ['b'])])
    yield 'function_twice', call([neg, neg], [node('N', ['x'], ['y'], 'n', domain='local')])
    yield 'function_operands', call(neg, [node('N', ['x', 'x'], ['y'], 'n', domain='local')])
    yield 'function_body', call(function('N', ['a'], ['b'], [node('Add', ['a', 'c'], ['b'], 'add')]),
                                [node('N', ['x'], ['y'], 'n', domain='local')])
    yield 'function_output', call(function('N', ['a'], ['b'], [node('Neg', ['a'], ['c'], 'neg')]),
                                  [node('N', ['x'], ['y'], 'n', domain='local')])
    yield 'function_bomb', bomb(40)
    yield 'function_deep', chain(100)
    yield 'both', plain([node('Add', ['x', 'nowhere'], ['t'], 'one'), MATMUL], inputs=(X, info('s', STRING, [1])),
                        inits=(tensor('w', F32, [4, 4], raw=bytes(60)),))
    yield 'good', good
    yield 'two_inputs', plain([node('Add', ['x', 'z'], ['y'], 'add')], inputs=(X, info('z', F32, ['n', 4])), inits=())
    yield 'decoder', decoder()
    yield 'decoder_f16', decoder(out_type=F16)


# For --bind: 'x' of the model 'good' is f32 [n, 4].
TENSORS = {
    'x': tensor('x', F32, [2, 4], raw=bytes(32)),
    'type': tensor('x', I64, [2, 4], raw=bytes(64)),
    'rank': tensor('x', F32, [2, 4, 1], raw=bytes(32)),
    'dims': tensor('x', F32, [2, 5], raw=bytes(40)),
    'short': tensor('x', F32, [2, 4], raw=bytes(28)),
    'string': tensor('x', STRING, [2, 4], more=sub(6, 'hello') * 8),
    'external': tensor('x', F32, [2, 4], external=[('location', 'good.bin')]),
    'cut': tensor('x', F32, [2, 4], raw=bytes(32))[:30],
    'text': b'This is no tensor.\n',
    'empty': b'',
    'other': tensor('z', F32, [3, 4], raw=bytes(48)),
    # for 'r' of the models 'input_sequence' and 'input_optional': sequences of f32
    'sequence_type': sub(3, tensor('a', F32, [1], raw=bytes(4))) + sub(3, tensor('b', I64, [1], raw=bytes(8))),
    'sequence_inner': num(2, 4) + sub(5, sub(3, tensor('a', F32, [1], raw=bytes(4)))),
    'sequence_short': sub(3, tensor('a', F32, [2], raw=bytes(4))),
    'optional_type': num(2, 4) + sub(5, sub(3, tensor('a', I64, [1], raw=bytes(8)))),
    'optional_tensor': num(2, 1) + sub(3, tensor('a', I64, [1], raw=bytes(8))),
    'optional_inner': num(2, 5) + sub(7, b''),
}


RECIPES = {
    'bind_input': 'bind:\n  q: x.pb\n',
    'bind_file': 'bind:\n  x: nowhere.pb\n',
    'bind_dims': 'bind:\n  x: inner/dims.pb\n',
    'bind_kind': 'bind: [x]\n',
    'bind_name': 'bind:\n  x: [x.pb]\n',
    'key': 'capacity: 16\ncolour: red\n',
    'sample': 'capacity: 16\nsample: often\n',
    'logits': 'capacity: 16\nlogits: first\n',
    'key_inner': 'states:\n  - {input: past_key_values.0.key, from: present.0.key}\n',
    'duplicate': 'capacity: 16\nprefill: 4\ncapacity: 32\n',
    'integer': 'capacity: many\n',
    'quoted': 'capacity: "16"\n',
    'zero': 'capacity: 0\n',
    'huge': 'capacity: 99999999999999999999\n',
    'kind_list': 'states: present\n',
    'kind_map': 'feeds: [input_ids]\n',
    'kind_root': '- capacity\n- 16\n',
    'syntax': 'capacity: 16\nstates: [\n',
    'indent': 'symbols:\n  batch: 1\n capacity: 3\n',
    'two': 'capacity: 16\n---\ncapacity: 32\n',
    'utf8': b'capacity: \xff\xfe\n',
    'no_output': 'states:\n  - {input: past_key_values.0.key}\n',
    'state_input': 'states:\n  - {input: past.0.key, output: present.0.key}\n',
    'state_output': 'states:\n  - input: past_key_values.0.key\n    output: present.1.key\n',
    'state_pattern': 'states:\n  - {input: "layer.{N}.key", output: "present.{N}.key"}\n',
    'state_one_sided': 'states:\n  - {input: "past_key_values.{N}.key", output: present.0.key}\n',
    'state_twice': 'states:\n  - {input: past_key_values.0.key, output: present.0.key}\n'
                   '  - {input: scale, output: present.0.key}\n',
    'state_type': 'states:\n  - {input: past_key_values.0.key, output: logits}\n',
    'feed_name': 'feeds:\n  input_ids: tokens\n',
    'feed_input': 'feeds:\n  inputs: token\n',
    'feed_no_states': 'feeds:\n  attention_mask: ones\n',
    'feed_type': 'feeds:\n  scale: token\n',
    'feed_state': 'feeds:\n  past_key_values.0.key: ones\n',
    'symbol': 'symbols:\n  sequence: [1, 4]\n',
    'range': 'symbols:\n  seq: [4, 1]\n',
    'range_three': 'symbols:\n  seq: [1, 2, 3]\n',
    'range_key': 'symbols:\n  seq: {min: 3}\n',
    'range_empty': 'symbols:\n  seq: {}\n',
    'signature': 'signatures:\n  warmup:\n    seq: 4\n',
    'signature_symbol': 'signatures:\n  prefill:\n    sequence: 4\n',
    'constant_input': 'constants:\n  factor: 1\n',
    'constant_count': 'constants:\n  scale: [1, 2, 3]\n',
    'constant_dims': 'constants:\n  input_ids: 3\n',
    'constant_value': 'constants:\n  scale: [1, two, 3, 4]\n',
    'several': 'capacity: many\nprefill: -3\nfeeds:\n  input_ids: tokens\n',
}


def main():
    folder = sys.argv[1]
    os.makedirs(os.path.join(folder, 'inner'), exist_ok=True)
    for name, data in models():
        with open(os.path.join(folder, name + '.onnx'), 'wb') as out:
            out.write(data)
    for name, text in RECIPES.items():
        with open(os.path.join(folder, name + '.yaml'), 'wb') as out:
            out.write(text if isinstance(text, bytes) else text.encode())
    for name, data in TENSORS.items():
        with open(os.path.join(folder, 'inner' if name == 'dims' else '', name + '.pb'), 'wb') as out:
            out.write(data)
    for name in ('good.bin', 'inner/good.bin'):
        with open(os.path.join(folder, name), 'wb') as out:
            out.write(bytes(128))
    for link, to in (('link.bin', 'good.bin'), ('folder', 'inner')):
        if not os.path.islink(os.path.join(folder, link)):
            os.symlink(to, os.path.join(folder, link))


main()
