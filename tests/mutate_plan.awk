# mutate_plan.awk - a plan's text form with single facts changed, for tests/run_proofs.sh. Reads its file twice:
#   awk -v edits="EDIT;EDIT..." -f mutate_plan.awk plan.txt plan.txt
# An edit is words separated by "|":
#   dim|VALUE|AXIS|EXPR       another dim             content|VALUE|I|EXPR       another element of the contents
#   expr|RECORD|EXPR          another expression      set|RECORD|FIELD|TEXT      another field
#   attr|NODE|TEXT            other attributes        link|VALUE|VALUE           the node uses another value there
# VALUE is NODE/inK or NODE/outK or the name of a value; NODE is @OP#N, the N-th of that operator, from 1; RECORD is section[i]
# or section[NAME] for the first record of that name. EXPR is postfix: numbers, names of symbols ($i: by index), + * / % min.
function field(line, name,    at, rest) {
    at = index(line, " " name "=")
    if (!at) return ""
    rest = substr(line, at + length(name) + 2)
    if (substr(rest, 1, 1) == "\"") { rest = substr(rest, 2); return substr(rest, 1, index(rest, "\"") - 1) }
    sub(/ .*/, "", rest)
    return rest
}
function fault(text) { print "mutate_plan.awk: " text > "/dev/stderr"; bad = 1; exit 1 }
function node(text,    parts) {
    split(substr(text, 2), parts, "#")
    if (!((parts[1], parts[2]) in nodes)) fault("no node " text)
    return nodes[parts[1], parts[2]]
}
function link(text,    parts, n, side, k) { # index in graph_links of NODE/inK
    split(text, parts, "/")
    n = node(parts[1])
    side = parts[2] ~ /^in/
    k = parts[2]
    sub(/^[a-z]*/, "", k)
    return (side ? inputs[n] : outputs[n]) + k
}
function value(text) {
    if (text ~ /^@/) return links[link(text)]
    if (!(("graph_values", text) in named)) fault("no value " text)
    return named["graph_values", text]
}
function change(record, name, text) { patch[record] = patch[record] name "\001" text "\002" }
function add_expr(text,    tokens, count, i, op, first) { # sets new_first, new_count
    count = split(text, tokens, " ")
    new_first = exprs
    new_count = count
    for (i = 1; i <= count; i++) {
        op = tokens[i]
        if (op ~ /^-?[0-9]+$/) op = "op=const value=" op
        else if (op in ops) op = "op=" ops[op] " value=0"
        else if (op ~ /^\$/) op = "op=symbol value=" substr(op, 2)
        else if (("symbols", op) in named) op = "op=symbol value=" named["symbols", op]
        else fault("no symbol " op)
        extra = extra "exprs[" exprs++ "] " op "\n"
    }
}
function record(text,    section, name) {
    section = text
    sub(/\[.*/, "", section)
    name = substr(text, length(section) + 2)
    sub(/\]$/, "", name)
    if (name !~ /^[0-9]+$/) {
        if (!((section, name) in named)) fault("no record " text)
        name = named[section, name]
    }
    return section "[" name "]"
}
function prepare(    list, count, i, e, v) {
    count = split(edits, list, ";")
    for (i = 1; i <= count; i++) {
        split(list[i], e, "|")
        if (e[1] == "set") change(record(e[2]), e[3], e[4])
        else if (e[1] == "attr") change("graph_nodes[" node(e[2]) "]", "attributes", "\"" e[3] "\"")
        else if (e[1] == "link") change("graph_links[" link(e[2]) "]", "value", value(e[3]))
        else {
            add_expr(e[1] == "expr" ? e[3] : e[4])
            v = e[1] == "expr" ? record(e[2]) : "graph_terms[" (e[1] == "dim" ? dims[value(e[2])] : contents[value(e[2])]) + e[3] "]"
            change(v, "expr", new_first)
            change(v, "expr_count", new_count)
        }
    }
}
function patched(line, text,    list, count, i, pair, at, head, rest, old) {
    count = split(text, list, "\002")
    for (i = 1; i < count; i++) {
        split(list[i], pair, "\001")
        at = index(line, " " pair[1] "=")
        if (!at) fault("no field " pair[1])
        head = substr(line, 1, at + length(pair[1]) + 1)
        rest = substr(line, length(head) + 1)
        if (rest ~ /^"/) sub(/^"[^"]*"/, "", rest)
        else sub(/^[^ ]*/, "", rest)
        line = head pair[2] rest
        done[i]++
    }
    return line
}
BEGIN {
    ops["+"] = "add"; ops["*"] = "mul"; ops["/"] = "floordiv"; ops["%"] = "mod"; ops["min"] = "min"; ops["max"] = "max"
}
NR == FNR {
    if ($1 !~ /\]$/) next
    section = $1
    sub(/\[.*/, "", section)
    i = substr($1, length(section) + 2) + 0
    if (section == "exprs") { exprs = i + 1; next }
    if (section == "graph_links") { links[i] = field($0, "value"); next }
    name = field($0, "name")
    if (name != "" && !((section, name) in named)) named[section, name] = i
    if (section == "graph_values") { dims[i] = field($0, "dim"); contents[i] = field($0, "content") }
    if (section == "graph_nodes") {
        op = field($0, "op")
        sub(/-[0-9]*$/, "", op)
        nodes[op, ++seen[op]] = i
        inputs[i] = field($0, "input")
        outputs[i] = field($0, "output")
    }
    next
}
FNR == 1 { last = "exprs[" exprs - 1 "]"; prepare() }
{ print $1 in patch ? patched($0, patch[$1]) : $0 }
$1 == last { printf "%s", extra }
END { exit bad }
