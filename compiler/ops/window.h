/* window.h - sliding windows over the one to three spatial axes of a tensor [N, C, spatial...]: what the pools, the
 * transposed convolutions and Col2Im share. Kernels see three spatial axes always: absent ones stand in front, with one
 * element, so that the operands have rank 5. */
#ifndef GCC_PLAN_OPS_WINDOW_H
#define GCC_PLAN_OPS_WINDOW_H

#include "compiler.h"

#define WINDOW_AXES 3

typedef struct Window {
    int axes;                                /* spatial axes that the node has */
    int64_t kernel[WINDOW_AXES], stride[WINDOW_AXES], dilation[WINDOW_AXES];
    Dim before[WINDOW_AXES], after[WINDOW_AXES]; /* pads; 0 while not known */
    Dim out[WINDOW_AXES];                    /* places of the window; 0 while not known */
} Window;

bool op_has(const Node *n, const char *name); /* the node's row has that attribute */
/* Value I of a list attribute, or OTHERWISE where the list is absent. */
int64_t list_value(const Node *n, const char *name, int i, int64_t otherwise);
/* The list attribute is absent or has COUNT elements of at least LEAST; else an error. */
bool list_fits(Compilation *c, const Node *n, const char *name, int count, int64_t least);
/* Extent of a window of `kernel` elements with dilation. */
int64_t window_extent(const Window *w, int axis);
/* Sets axes, kernel (the attribute kernel_shape, or GIVEN where that is absent), strides, dilations; checks the lists. */
bool window_read(Compilation *c, const Node *n, int axes, const int64_t *given, Window *w);
/* Sets pads and places of a window that slides over INPUT (spatial dims): explicit pads or auto_pad, and ceil_mode. */
bool window_slide(Compilation *c, const Node *n, const Dim *input, Window *w);
/* A view [N, C, spatial...] as one of rank 5. */
View window_view(Compilation *c, View v);
/* V with COUNT more axes of one element behind its first FIRST axes. */
View window_axes_added(Compilation *c, View v, int first, int count);
/* Macros K0 K1 K2 (kernel), ST0.. (strides), DI0.. (dilations), PB0.. PA0.. (pads before and after). */
void window_define(Lower *l, Kernel *k, const Window *w);

#endif
