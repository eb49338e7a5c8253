/* SPDX-License-Identifier: Apache-2.0 */
/* jsonio.h: JSON with exact numbers; NaN and infinities become null. */
#ifndef NEAP_TRAIN_JSONIO_H
#define NEAP_TRAIN_JSONIO_H

#include <cjson/cJSON.h>
#include <stdint.h>

/* The shortest decimal text that reads back to the same double. */
const char *neap__json_exact(char room[40], double value);

void neap__json_int(cJSON *object, const char *key, int64_t value);
void neap__json_bytes(cJSON *object, const char *key, uint64_t value);
void neap__json_number(cJSON *object, const char *key, double value);
void neap__json_text(cJSON *object, const char *key, const char *value); /* NULL: null */

#endif
