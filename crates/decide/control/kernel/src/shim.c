/* What Rust needs to know of struct luc_auto without a second definition of it. */
#include <stddef.h>

#include "control.h"

size_t luc_law_auto_bytes(void);
u32 luc_law_auto_phase(const struct luc_auto *a);
u32 luc_law_auto_reason(const struct luc_auto *a);

size_t luc_law_auto_bytes(void)
{
	return sizeof(struct luc_auto);
}

u32 luc_law_auto_phase(const struct luc_auto *a)
{
	return a->phase;
}

u32 luc_law_auto_reason(const struct luc_auto *a)
{
	return a->reason;
}
