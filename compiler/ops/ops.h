/* ops.h - what the operator table gives to the passes and the driver beyond compiler.h: parsed schemas. */
#ifndef GCC_PLAN_OPS_H
#define GCC_PLAN_OPS_H

#include "compiler.h"

/* ---- schema.c: the schema text of a row, parsed once. */
#define SCHEMA_VALUES 48
#define SCHEMA_ATTRS 48
#define SCHEMA_CLASSES 16

typedef struct SchemaClass {
    const char *name;    /* "T"; NULL for a dtype that is named directly */
    uint32_t dtypes;     /* bit by DType */
} SchemaClass;
typedef struct SchemaValue {
    const char *name;
    int class;           /* index of its class: values of one class have one dtype in a node; -1: any dtype, by itself */
    DType fixed;         /* named directly; DT_NONE when it has a class */
    bool optional, variadic;
} SchemaValue;
typedef struct SchemaAttr {
    Attr value;          /* name, kind and default; present is false */
    bool required;
} SchemaAttr;
typedef struct Schema {
    int input_count, output_count, attr_count, class_count;
    SchemaValue inputs[SCHEMA_VALUES], outputs[SCHEMA_VALUES];
    SchemaAttr attrs[SCHEMA_ATTRS];
    SchemaClass classes[SCHEMA_CLASSES];
} Schema;
/* fault()s when the text is wrong. The schema lives as long as the process. */
const Schema *schema_of(const OpRow *op);
/* Parses TEXT into S; NULL, or what is wrong (static text). Names point into memory that is never freed. */
const char *schema_parse(Schema *s, const char *text);

/* ---- table.c */
/* All operators of the model, its subgraphs too, that no row describes become one error that lists them. Only for a compilation
 * that has failed: a branch that is not taken may hold anything. */
void ops_report_missing(Compilation *c);
/* The dtype that the schema gives output I: named directly, its class bound by an input or by another output, or the
 * class's only member. DT_NONE when the schema does not say. */
DType node_output_type(Compilation *c, const Node *n, int i);
/* Family file of a row, in compiler/ops: "shape.c". */
const char *op_file(const OpRow *op);

#endif
