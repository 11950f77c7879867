/* quantize.h - what the families of quantised operators share. */
#ifndef GCC_PLAN_OPS_QUANTIZE_H
#define GCC_PLAN_OPS_QUANTIZE_H

#include "compiler.h"

/* Input I, or a copy of it when its elements do not lie one after another. */
View dense_input(Lower *l, const Node *n, int i);
/* Least and largest number of an integer type of up to 16 bits. */
void quantized_range(DType t, double *low, double *high);

#endif
