/* SPDX-License-Identifier: Apache-2.0 */
/* process_report.h: what a whole run took as a process, for reports. */
#ifndef NEAP_CLI_PROCESS_REPORT_H
#define NEAP_CLI_PROCESS_REPORT_H

#include "cli.h"
#include "base/json.h"
#include <neap/train.h>

/* Writes the object "process": bytes at most, as reckoned and as measured, and their parts. */
void cli_json_process(struct neap__json *to, const struct neap_process_memory *memory);
/* Writes the object "device", or null: what a run used of the device that it ran on. */
void cli_json_device(struct neap__json *to, const struct neap_device_use *use);
/* The same as one line of a table; none without a device. */
void cli_print_device(const struct neap_device_use *use);
/* `cli_json_process` as one line of a table. bounded 0: sweeps might take half of what was free. */
void cli_print_process(const struct neap_process_memory *memory, int bounded);

#endif
