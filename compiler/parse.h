/* parse.h - the state of graph_parse.c (the tables) and graph_parse_body.c (values and nodes). */
#ifndef GCC_PLAN_PARSE_H
#define GCC_PLAN_PARSE_H

#include "external.h"
#include "scan.h"

typedef struct Parser {
    Scan s;
    Compilation *c;
    Graph *g;               /* of the lines that are read now; NULL outside */
    uint32_t values, nodes; /* that its head line promised */
    unsigned char *seen;    /* by value: 1 named as an operand or a list's element, 2 its text was read */
    bool main_done;
    int64_t *lo, *hi;       /* ranges of symbols, set at the end: dims simplify by them */
    uint32_t symbol_room;
    ExternalFiles files;
    ExternalFile model;     /* the model itself, for data inside it */
    size_t size;            /* of the text: bounds all counts */
} Parser;

/* Reads the head line of a graph, after its name's keyword; G's lines follow up to `end`. */
void parse_graph_begin(Parser *p, Graph *g);
/* One line of p->g. */
void parse_graph_line(Parser *p);
/* Room for one more element of an arena array that is read in order. */
void *parse_grown(Compilation *c, void *old, uint32_t count, uint32_t *room, size_t size);

#endif
