/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c: the functions of neap/machine.h. */
#include <neap/machine.h>
#include "base/print.h"
#include "base/struct_size.h"
#include "sys/clock.h"
#include "sys/isa.h"
#include "sys/memory.h"
#include "sys/pool.h"
#include "base/fail.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

static void cpu_name(char *out, size_t room)
{
	char line[256];
	FILE *f = fopen("/proc/cpuinfo", "re");
	neap__print(out, room, "unknown");
	if (!f)
		return;
	while (fgets(line, sizeof line, f)) {
		char *value = strchr(line, ':');
		if (strncmp(line, "model name", 10) != 0 || !value)
			continue;
		value += strspn(value, ": \t");
		value[strcspn(value, "\n")] = '\0';
		neap__print(out, room, "%s", value);
		break;
	}
	fclose(f);
}

int neap_machine_describe(struct neap_machine *given)
{
	NEAP_NEED(given);
	struct neap_machine found = {.size = sizeof found}, *machine = &found;
	struct utsname uts;
	struct sysinfo info;
	enum neap__isa isa;

	NEAP_TRY(neap__struct_size(given->size, sizeof given->size, sizeof found, "neap_machine"));
	machine->processors = neap__processors();
	neap__print(machine->isa, sizeof machine->isa, "%s",
		neap__isa_choose(&isa) == 0 ? neap__isa_name(isa) : "none");
	cpu_name(machine->cpu, sizeof machine->cpu);
	if (uname(&uts) == 0)
		neap__print(
			machine->os, sizeof machine->os, "%.40s %.40s", uts.sysname, uts.release);
	machine->memory_free = neap__memory_free();
	if (sysinfo(&info) == 0)
		machine->memory_total = (uint64_t)info.totalram * info.mem_unit;
	neap__struct_give(given, machine, sizeof *machine);
	return 0;
}

double neap_clock(void)
{
	return neap__seconds();
}

double neap_cpu_clock(void)
{
	return neap__cpu_seconds();
}

uint64_t neap_resident_peak(void)
{
	return neap__resident_peak();
}

int neap_resident_reset(void)
{
	return neap__resident_reset();
}
