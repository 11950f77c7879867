/* opsets.c - the operator set versions that a model, or a function in it, imports. */
#include <string.h>

#include "reader.h"

static bool version_known(Reader *r, const char *domain, int64_t version, const char *place)
{
    const char *shown = *domain ? domain : "ai.onnx";
    if (version < 1 || version > INT32_MAX)
        diag_error(r->c, place, "opset %s %lld is no version", shown, (long long)version);
    else if (!*domain && version > READER_MAX_OPSET)
        diag_error(r->c, place, "opset ai.onnx %lld is too new; expected at most %d", (long long)version, READER_MAX_OPSET);
    else if (!*domain && version < READER_MIN_OPSET)
        diag_error(r->c, place, "opset ai.onnx %lld is too old; expected at least %d", (long long)version, READER_MIN_OPSET);
    else
        return true;
    return false;
}

Opsets opsets_read(Reader *r, Onnx__OperatorSetIdProto *const *list, size_t count, const char *place)
{
    Opsets o = {0};
    if (count > READER_MAX_IMPORTS) {
        diag_error(r->c, place, "%zu opset imports are too many; expected at most %u", count, READER_MAX_IMPORTS);
        return o;
    }
    o.list = NEW_ARRAY(r->c, Opset, count);
    for (size_t i = 0; i < count; i++) {
        const char *domain = domain_of(list[i]->domain);
        int64_t version = list[i]->has_version ? list[i]->version : 0;
        uint32_t k = 0;
        if (!version_known(r, domain, version, place))
            continue;
        while (k < o.count && strcmp(o.list[k].domain, domain))
            k++;
        if (k < o.count && o.list[k].version != version)
            diag_error(r->c, place, "opset '%s' is imported with versions %d and %lld", *domain ? domain : "ai.onnx",
                       o.list[k].version, (long long)version);
        if (k == o.count)
            o.list[o.count++] = (Opset){domain, (int)version};
    }
    return o;
}

static int version_in(const Opsets *o, const char *domain)
{
    for (uint32_t i = 0; i < o->count; i++)
        if (!strcmp(o->list[i].domain, domain))
            return o->list[i].version;
    return 0;
}

int opset_version(const Reader *r, const Scope *s, const char *domain)
{
    int version = s->call ? version_in(&s->call->opsets, domain) : 0;
    return version ? version : version_in(&r->opsets, domain);
}
