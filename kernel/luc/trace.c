// SPDX-License-Identifier: GPL-2.0
#include "luc.h"

#define CREATE_TRACE_POINTS
#include "trace_luc.h"
