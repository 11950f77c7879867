# embed.awk - writes codegen/templates.c: the texts of the files named on the command line as one table.
#
#   LC_ALL=C awk -f embed.awk runtime/host_abi.h codegen/kernels/prelude.h codegen/kernels/*.cu > templates.c
#
# Characters are numbers, since strict C promises no string literal longer than 4095. Texts must be ASCII.

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

{
    line = ""
    for (i = 1; i <= length($0); i++) {
        c = substr($0, i, 1)
        if (!(c in ord)) {
            print FILENAME ":" FNR ": a character outside ASCII" > "/dev/stderr"
            failed = 1
            exit 1
        }
        line = line ord[c] ","
    }
    print line "10,"
}

END {
    if (failed) exit 1
    finish()
    print "\nconst KernelTemplate kernel_templates[] = {"
    for (i = 1; i <= count; i++) printf "    {\"%s\", text_%d},\n", names[i], i
    print "    {NULL, NULL}\n};"
}
