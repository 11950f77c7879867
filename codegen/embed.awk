# embed.awk - writes codegen/templates.c: the texts of the files named on the command line as one table.
#
#   LC_ALL=C awk -f embed.awk runtime/host_abi.h codegen/kernels/prelude.h codegen/kernels/*.cu > templates.c
#
# Characters are numbers, since strict C promises no string literal longer than 4095. Texts must be ASCII.
# In place of a line #include "part.h" stand the lines of that file, which lies in the same folder.

function fail(file, number, what) {
    print file ":" number ": " what > "/dev/stderr"
    failed = 1
    exit 1
}

function include(line, file, number,    part, inner, count, got) {
    if (line !~ /^#include "[a-z0-9_]+\.h"$/) fail(file, number, "an include other than #include \"part.h\"")
    part = file
    sub(/[^\/]*$/, "", part)
    part = part substr(line, 11, length(line) - 11)
    if (part in open) fail(file, number, part " includes itself")
    open[part] = 1
    while ((got = (getline inner < part)) > 0) embed(inner, part, ++count)
    if (got < 0) fail(file, number, part " cannot be read")
    close(part)
    delete open[part]
}

function embed(line, file, number,    codes, i, c) {
    if (line ~ /^[ \t]*#[ \t]*include/) {
        include(line, file, number)
        return
    }
    codes = ""
    for (i = 1; i <= length(line); i++) {
        c = substr(line, i, 1)
        if (!(c in ord)) fail(file, number, "a character outside ASCII")
        codes = codes ord[c] ","
    }
    print codes "10,"
}

function finish() { if (count > 0) print "0};" }

BEGIN {
    for (i = 1; i < 127; i++) ord[sprintf("%c", i)] = i
    print "/* Made by codegen/embed.awk from the kernel templates. */"
    print "#include \"compiler.h\"\n"
}

FNR == 1 {
    finish()
    name = FILENAME
    sub(/.*\//, "", name)
    sub(/\.[^.]*$/, "", name)
    names[++count] = name
    printf "static const char text_%d[] = {\n", count
}

{ embed($0, FILENAME, FNR) }

END {
    if (failed) exit 1
    finish()
    print "\nconst KernelTemplate kernel_templates[] = {"
    for (i = 1; i <= count; i++) printf "    {\"%s\", text_%d},\n", names[i], i
    print "    {NULL, NULL}\n};"
}
