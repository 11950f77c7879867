# random_graphs.awk - a random decoder-like graph in the text form, with what each of its symbols is (as in tests/passes: "#= NAME CLASS
# [EXPRESSION]") known from how it was put together:  awk -v seed=N -f random_graphs.awk
#
# Tokens become rows; each layer keeps them in a cache of its own layout, with a length of its own name or shared, grown by Concat,
# sometimes crossed with another layer's; masks whose length is the keys', one more, or free; recurrent states; extents that
# data decides, that nothing decides, and that an equation decides. Names, and the order of inputs and nodes, are random and mean nothing.
# "#p NAME" lists lengths of caches: all of them are equal, and which one stands for the others is not said. "#c": no plan can be
# made of it whose proofs could be checked: an extent has no bound, or data counts it, or nothing says that a mask is long enough.
function below(n) { state = (state * 16807) % 2147483647; return int(state / 2147483647 * n) }
function word(    text, i, n) {
    do {
        n = 3 + below(6)
        for (text = ""; length(text) < n;) text = text substr("abcdefghijklmnopqrstuvwxyz", 1 + below(26), 1)
    } while (text in used)
    used[text] = 1
    return text
}
function symbol(what,    name) { name = word(); symbols[++symbol_count] = name; if (what != "") print "#= " name " " what; return name }
function input(type, dims, marks,    key) { key = word(); inputs[++input_count] = key; line[key] = key " " type "[" dims "] !in" marks; return key }
function number_of(value,    key) { # an i64 constant, below 256 or the largest
    key = word()
    constants[++constant_count] = key
    line[key] = key " i64[1]<" value "> !const : 0x" (value == "9223372036854775807" ? "ffffffffffffff7f" : sprintf("%02x00000000000000", value))
    return key
}
# A node: OP, its attributes, its inputs (keys, with blanks); the key of its output.
function node(op, attributes, args, type,    key) {
    key = word()
    nodes[++node_count] = key
    text[key] = op "(" args ")" (attributes == "" ? "" : " {" attributes "}") " " word()
    line[key] = key " " (type == "" ? "f32" : type) "[*]"
    return key
}
function output(key) { if (!(key in shown)) { shown[key] = 1; outputs[++output_count] = key } }
function grown(extra,    n) { # past + what is fed (+ 1), with the name of some cache's length
    n = (seq == "1") + extra
    return past[1] (seq == "1" ? "" : " + " seq) (n ? " + " n : "")
}
# Each token of the step, in the layout of a cache: axis of the rows, dims around it, the axes to reduce for one number a row.
function layer(k,    kind, rows, name, axis, dims) {
    kind = below(4)
    if (k > 1 && below(2)) name = past[1 + below(k - 1)]
    else { name = symbol(""); print "#p " name }
    past[k] = name
    if (kind == 0) { axis = 1; dims = name ", 8"; reduce[k] = "2"; rows = hidden }
    if (kind == 1) { axis = 2; dims = "1, " name ", 8"; reduce[k] = "1, 3"; rows = node("Unsqueeze-13", "", hidden " " number_of("1")) }
    if (kind == 2) { axis = 1; dims = name ", 1, 8"; reduce[k] = "2, 3"; rows = node("Unsqueeze-13", "", hidden " " number_of("2")) }
    if (kind == 3) { axis = 2; dims = "8, " name; reduce[k] = "1"; rows = node("Transpose-13", "perm=[0, 2, 1]", hidden) }
    fresh[k] = rows
    along[k] = axis
    layout[k] = kind
    old[k] = input("f32", batch ", " dims, " !state=" k)
}
function close_layer(k, from,    key) {
    key = node("Concat-13", "axis=" along[k], old[from] " " fresh[k])
    present[k] = key
    line[key] = line[key] " !out !state=" k
    output(key)
}
function masks(k,    keys, kind, name, m, size) {
    keys = node("ReduceMax-13", "axes=[" reduce[k] "], keepdims=0", present[k])
    kind = below(6)
    if (kind == 0) { # as long as the keys
        name = symbol("derived " grown(0))
        keys = node("Mul-14", "", keys " " input("f32", (below(2) ? "1" : batch) ", " name, ""))
    } else if (kind == 1) { # cut to the keys: free
        name = symbol("fixed")
        print "#c"
        size = node("Gather-13", "", node("Shape-15", "", present[k], "i64") " " number_of(along[k]), "i64")
        keys = node("Mul-14", "", keys " " node("Slice-13", "", input("f32", "1, " name, "") " " number_of("0") " " size " " number_of("1")))
    } else if (kind == 2) { # without its first
        name = symbol("derived " grown(1))
        m = input("f32", "1, " name, "")
        keys = node("Add-14", "", node("Slice-13", "", m " " number_of("1") " " number_of("9223372036854775807") " " number_of("1")) " " keys)
    } else if (kind == 3) { # counted
        name = symbol("derived " grown(0))
        keys = node("Mul-14", "", node("CumSum-14", "", input("f32", "1, " name, "") " " number_of("1")) " " keys)
    }
    for (m = below(3); m > 0; m--) keys = node(below(2) ? "Neg-13" : "Tanh-13", "", keys)
    if (below(5) == 0) {
        keys = node("NonZero-13", "", keys, "i64")
        m = text[keys]
        sub(/.* /, "", m)
        print "#= " m ".count data"
        print "#c"
    }
    output(keys)
}
function extras(    kind, name, key, other) {
    kind = below(5)
    if (kind == 0) { # recurrent
        name = symbol("fixed")
        key = input("f32", batch ", " name, " !state=" (++states))
        old[states] = key
        other = node("Tanh-13", "", key)
        line[other] = line[other] " !out !state=" states
        present[states] = other
        output(other)
    } else if (kind == 1) { # data decides both extents: nobody can say which
        print "#= ? unknown"
        print "#= ? unknown"
        print "#c"
        output(node("Expand-13", "", input("f32", "1, 1", "") " " input("i64", "2", "")))
    } else if (kind == 2) { # twice as long
        name = symbol("fixed")
        key = input("f32", "1, " name, "")
        other = symbol("derived 2*" name)
        output(node("Add-14", "", node("Concat-13", "axis=1", key " " key) " " input("f32", "1, " other, "")))
    } else if (kind == 3) { # free
        name = symbol("fixed")
        output(node("Neg-13", "", input("f32", "3, " name, "")))
    }
}
function number(key) { id[key] = ++ids; sub(/^/, "%" ids " ", line[key]) }
function shuffle(list, count,    i, j, t) { for (i = count; i > 1; i--) { j = 1 + below(i); t = list[i]; list[i] = list[j]; list[j] = t } }
function known(args,    part, n, i) { n = split(args, part, " "); for (i = 1; i <= n; i++) if (!(part[i] in id)) return 0; return 1 }
function arguments(t,    from, to, part, n, i, out) {
    from = index(t, "(")
    to = index(t, ")")
    n = split(substr(t, from + 1, to - from - 1), part, " ")
    for (i = 1; i <= n; i++) out = out (i > 1 ? ", " : "") "%" id[part[i]]
    return substr(t, 1, from) out substr(t, to)
}
function inside(t) { return substr(t, index(t, "(") + 1, index(t, ")") - index(t, "(") - 1) }
function list(keys, count,    i, out) { for (i = 1; i <= count; i++) out = out " %" id[keys[i]]; return out }
BEGIN {
    for (state = seed * 7919 + 1; warm < 20; warm++) below(2)
    batch = below(3) ? "1" : symbol("fixed")
    seq = below(4) ? symbol("fixed") : "1"
    token = input("i64", batch ", " seq, " !feed=token")
    scale = word()
    constants[++constant_count] = scale
    line[scale] = scale " f32[8] !const : 0x"
    for (i = 0; i < 8; i++) line[scale] = line[scale] "0000803f"
    hidden = node("Mul-14", "", node("Unsqueeze-13", "", node("Cast-13", "to=1", token) " " number_of("2")) " " scale)
    layers = states = 1 + below(4)
    for (k = 1; k <= layers; k++) layer(k)
    for (k = 1; k <= layers; k++) {
        if (k < layers && layout[k] == layout[k + 1] && below(3) == 0) { close_layer(k, k + 1); close_layer(++k, k - 1) }
        else close_layer(k, k)
    }
    for (k = 1; k <= layers; k++) masks(k)
    for (k = below(3); k > 0; k--) extras()
    shuffle(inputs, input_count)
    shuffle(constants, constant_count)
    shuffle(outputs, output_count)
    shuffle(symbols, symbol_count)
    for (i = 1; i <= input_count; i++) number(inputs[i])
    for (i = 1; i <= constant_count; i++) number(constants[i])
    shuffle(nodes, node_count)
    for (done = 0; done < node_count;) # the first of them whose inputs are there, again and again
        for (i = 1; i <= node_count; i++)
            if (!(nodes[i] in id) && known(inside(text[nodes[i]]))) { number(nodes[i]); order[++done] = nodes[i] }
    print "gcc-plan-graph 1"
    for (i = 1; i <= symbol_count; i++) print "symbol " i " " symbols[i] " unknown lo=0 hi=9223372036854775807 keep=1 slot=-1 proof=0 declared"
    for (k = 1; k <= states; k++) print "state " k " %" id[old[k]] " %" id[present[k]] " \"" old[k] "\" \"" present[k] "\" axis=-1 update=0 proof=0 upper=[]"
    print "graph g values=" ids " nodes=" node_count
    print "inputs" list(inputs, input_count)
    print "outputs" list(outputs, output_count)
    for (i = 1; i <= input_count; i++) print line[inputs[i]]
    for (i = 1; i <= constant_count; i++) print line[constants[i]]
    for (i = 1; i <= node_count; i++) print line[order[i]] (order[i] in shown && line[order[i]] !~ /!out/ ? " !out" : "") " = " arguments(text[order[i]])
    print "end"
}
