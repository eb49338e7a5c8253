/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debug_log.h: what a run decides, and why, on standard error if the environment has
 * NEAP_LOG=debug. Decisions only: nothing that happens once per step or per record is logged.
 */
#ifndef NEAP_BASE_DEBUG_LOG_H
#define NEAP_BASE_DEBUG_LOG_H

/* 1 if NEAP_LOG is "debug". Ask first if the arguments of a line take time to compute. */
int neap__debug_on(void);

/*
 * Writes "neap debug: ", the text and a line break in one call, so that lines of several threads do
 * not mix; text beyond 1,000 characters is cut. Does nothing unless neap__debug_on().
 */
void neap__debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
