/* upload.h - host bytes to the device at the speed of the link: pinned staging, several copies in flight, checksums on the way. */
#ifndef PLAN_UPLOAD_H
#define PLAN_UPLOAD_H

#include "driver.h"

/* OFFSET and BYTES inside the piece. */
typedef struct plan_upload_target {
    uint64_t offset, bytes;
    plan_address to;
} plan_upload_target;

typedef struct plan_upload_piece {
    const unsigned char *from; /* mapped or plain memory, unchanged meanwhile */
    uint64_t bytes;            /* all of them are read */
    plan_upload_target targets[2];
    uint64_t sum;              /* written: plan_checksum of the bytes */
} plan_upload_piece;

/* Copies the targets of COUNT pieces, and waits. Threads of its own help when there is enough to do; they call the driver, and
 * no allocator. On failure some targets may be written. Errors: MEMORY, DRIVER. */
plan_status plan_upload(plan_driver *d, plan_upload_piece *pieces, uint32_t count);

#endif
