/* SPDX-License-Identifier: Apache-2.0 */
#include "train/jsonio.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const char *neap__json_exact(char room[40], double value)
{
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(room, 40, "%.*g", digits, value);
		if (strtod(room, NULL) == value)
			break;
	}
	return room;
}

void neap__json_int(cJSON *object, const char *key, int64_t value)
{
	char text[32];
	snprintf(text, sizeof text, "%" PRId64, value);
	cJSON_AddRawToObject(object, key, text);
}

void neap__json_bytes(cJSON *object, const char *key, uint64_t value)
{
	char text[32];
	snprintf(text, sizeof text, "%" PRIu64, value);
	cJSON_AddRawToObject(object, key, text);
}

void neap__json_number(cJSON *object, const char *key, double value)
{
	char text[40];
	if (isfinite(value))
		cJSON_AddRawToObject(object, key, neap__json_exact(text, value));
	else
		cJSON_AddNullToObject(object, key);
}

void neap__json_text(cJSON *object, const char *key, const char *value)
{
	if (value)
		cJSON_AddStringToObject(object, key, value);
	else
		cJSON_AddNullToObject(object, key);
}
