/* show.c - pieces of text that the reports share. */
#include "report.h"

#include <inttypes.h>
#include <string.h>

const char *plan_show_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

const char *plan_show_bytes(uint64_t bytes, char text[static 24]) {
    static const char *const units[] = {"KB", "MB", "GB", "TB", "PB", "EB"};
    if (bytes < 1024) {
        (void)snprintf(text, 24, "%" PRIu64 " B", bytes);
        return text;
    }
    double value = (double)bytes / 1024;
    size_t unit = 0;
    for (; value >= 1000 && unit < 5; unit++) value /= 1024;
    (void)snprintf(text, 24, value < 100 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

/* One side of an operation. SIZE[i] is the number of operations of the operand that ends at i. */
typedef struct shown {
    const plan_view *view;
    const plan_expr_record *expr;
    uint16_t size[PLAN_EXPR_LIMIT];
    FILE *out;
} shown;

static int binds(uint32_t op) {
    switch (op) {
    case PLAN_EXPR_CONST: case PLAN_EXPR_SYMBOL: case PLAN_EXPR_MIN: case PLAN_EXPR_MAX: case PLAN_EXPR_CEILDIV: return 3;
    case PLAN_EXPR_ADD: return 1;
    default: return 2;
    }
}

/* Recursion is bounded: an expression has at most PLAN_EXPR_LIMIT operations. */
static void show_operand(const shown *s, uint32_t end, int outer) {
    static const char *const infix[] = {"", "", " + ", " * ", " / ", "", " % "};
    const plan_expr_record *e = &s->expr[end];
    if (e->op == PLAN_EXPR_CONST) {
        fprintf(s->out, "%" PRId64, e->value);
        return;
    }
    if (e->op == PLAN_EXPR_SYMBOL) {
        fputs(plan_view_string(s->view, s->view->symbols[e->value].name), s->out);
        return;
    }
    uint32_t right = end - 1, left = right - s->size[right];
    int call = binds(e->op) == 3, strength = binds(e->op);
    if (call) fputs(e->op == PLAN_EXPR_MIN ? "min(" : e->op == PLAN_EXPR_MAX ? "max(" : "ceil(", s->out);
    else if (strength < outer) putc('(', s->out);
    show_operand(s, left, call ? 0 : strength);
    fputs(e->op == PLAN_EXPR_CEILDIV ? " / " : call ? ", " : infix[e->op], s->out);
    int right_needs = e->op == PLAN_EXPR_ADD ? 1 : e->op == PLAN_EXPR_MUL ? 2 : 3;
    show_operand(s, right, call && e->op != PLAN_EXPR_CEILDIV ? 0 : right_needs);
    if (call || strength < outer) putc(')', s->out);
}

void plan_show_expr(const plan_view *view, uint32_t first, uint32_t count, FILE *out) {
    shown s = {.view = view, .expr = view->exprs + first, .out = out};
    if (count == 0) return;
    for (uint32_t i = 0; i < count; i++) {
        s.size[i] = 1;
        if (s.expr[i].op <= PLAN_EXPR_SYMBOL) continue;
        uint32_t right = s.size[i - 1], left = s.size[i - 1 - right];
        s.size[i] = (uint16_t)(1 + right + left);
    }
    show_operand(&s, count - 1, 0);
}

void plan_show_box(const plan_view *view, const plan_signature_record *s, FILE *out) {
    for (uint32_t i = 0; i < s->box_count; i++) {
        const plan_box_record *box = &view->boxes[s->box + i];
        fprintf(out, "%s%s", i ? ", " : "", plan_view_string(view, view->symbols[box->symbol].name));
        if (box->lo == box->hi) fprintf(out, " = %" PRId64, box->lo);
        else fprintf(out, " %" PRId64 "..%" PRId64, box->lo, box->hi);
    }
}

void plan_show_chain(const plan_view *view, uint32_t proof, FILE *out) {
    for (; proof != PLAN_NONE; proof = view->proofs[proof].because) {
        const plan_proof_record *p = &view->proofs[proof];
        const char *node = plan_view_string(view, p->node);
        const char *fact = plan_view_string(view, p->fact);
        int equation = strstr(fact, " = ") || strstr(fact, ":="); /* says itself what is equal to what */
        fprintf(out, "  %s%-*s %s%s%s%s\n", equation ? "" : "= ", equation ? 46 : 44, fact, plan_view_string(view, p->rule),
                node[0] ? " '" : "", node, node[0] ? "'" : "");
    }
}

void plan_show_seams(const plan_view *view, const plan_signature_record *s, FILE *out) {
    for (uint32_t i = 0; i < s->seam_count; i++) {
        const plan_seam_record *seam = &view->seams[s->seam + i];
        fprintf(out, "  seam %" PRIu32 " at node '%s': %s: %s\n", i + 1, plan_view_string(view, seam->node),
                plan_seam_reason_text(seam->reason), plan_view_string(view, seam->detail));
        if (seam->remedy) fprintf(out, "         remedy: %s\n", plan_view_string(view, seam->remedy));
    }
}

void plan_show_conditional(const plan_view *view, const plan_signature_record *s, FILE *out) {
    uint32_t ifs = 0, whiles = 0, seams = 0;
    for (uint32_t i = s->block; i < s->block + s->block_count; i++) {
        if (view->blocks[i].seam != PLAN_NONE) seams++;
        else if (view->blocks[i].kind == PLAN_BLOCK_WHILE) whiles++;
        else ifs++;
    }
    fprintf(out, "  blocks  %" PRIu32 " IF node%s, %" PRIu32 " WHILE node%s, %" PRIu32 " that the host decides\n", ifs, plan_show_plural(ifs), whiles,
            plan_show_plural(whiles), seams);
}

void plan_show_blocks_at(const plan_view *view, const plan_signature_record *s, uint32_t launch, FILE *out) {
    for (uint32_t i = s->block; i < s->block + s->block_count; i++) {
        const plan_block_record *b = &view->blocks[i];
        if (b->launch != launch) continue;
        fprintf(out, "  -- %s '%s'%s: launches %" PRIu32 "..%" PRIu32 "\n", plan_block_kind_text(b->kind), plan_view_string(view, b->node),
                b->seam == PLAN_NONE ? "" : " (the host decides)", b->launch, b->launch + b->launch_count - 1);
    }
}
